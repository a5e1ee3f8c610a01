//! Room in the server's memory for large messages: for the message itself, for the message that is compressed in it,
//! and for its command while it runs. All of it is drawn at once, before the message is read, so that no message waits
//! for room while it holds some for which others wait.

use bunko_operation::{Draw, Purpose, ServerMemory};
use bunko_wire::{Codec, Header, OpCode};
use std::sync::Arc;

/// Messages up to this length are not counted, so that an administrator can always send a small command.
pub(crate) const LARGE_BYTES: usize = 64 * 1024;
/// Memory of a command while it runs, as a multiple of its message: an insert's documents stand in a batch, and in the
/// buffer of the log.
const EXECUTION_FACTOR: u64 = 2;

/// Counts a reply of this many bytes that stands in memory twice, until the result is dropped; `None` for a short
/// reply.
pub(crate) fn count_copy(memory: &Arc<ServerMemory>, bytes: usize) -> Option<Draw> {
    (bytes > LARGE_BYTES).then(|| memory.count(bytes as u64, Purpose::Reply))
}

/// Memory that a large message takes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    bytes: u64,
    /// The part for the command while it runs.
    execution: u64,
    /// The message, decompressed.
    content: usize,
}

impl Cost {
    /// The cost of a whole frame; `None` where it is not large. Two comparisons show that most frames are not.
    #[inline]
    pub fn of(header: &Header, frame: &[u8]) -> Option<Self> {
        let may_be_large = frame.len() > LARGE_BYTES || header.op_code == OpCode::Compressed;
        if may_be_large { Self::of_start(frame, frame.len()) } else { None }
    }

    /// The cost of a frame of `length` bytes of which the first have come; `None` if the frame is not large.
    pub fn of_start(start: &[u8], length: usize) -> Option<Self> {
        let inner = Codec::inner_bytes(start);
        let content = length.max(inner);
        let execution = content as u64 * EXECUTION_FACTOR;
        (content > LARGE_BYTES).then(|| Self { bytes: (length + inner) as u64 + execution, execution, content })
    }

    /// How long the message is, decompressed, in bytes.
    pub fn content_bytes(&self) -> usize {
        self.content
    }

    /// Room for the message, if there is room now.
    pub fn draw(&self, memory: &Arc<ServerMemory>) -> Option<RoomTaken> {
        memory.draw(self.bytes, Purpose::Message).map(|draw| self.place(draw))
    }

    /// Bytes that `place` lacks for the message: all of them without a place.
    pub fn missing(&self, place: Option<&RoomTaken>) -> u64 {
        self.bytes.saturating_sub(place.map_or(0, |place| place.draw.bytes()))
    }

    /// Room for the message, made of the drawn bytes.
    pub fn place(&self, draw: Draw) -> RoomTaken {
        RoomTaken { draw, execution: self.execution, is_whole: true }
    }
}

/// Room that a message has.
#[derive(Debug)]
pub(crate) struct RoomTaken {
    draw: Draw,
    execution: u64,
    is_whole: bool,
}

impl RoomTaken {
    /// Bytes that were drawn for the command while it runs.
    pub fn execution(&self) -> u64 {
        self.execution
    }

    /// Whether there is room for the whole message.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Gives up all but room for the bytes that have come.
    pub fn shrink(&mut self, bytes: usize) {
        self.draw.set(bytes as u64);
        self.is_whole = false;
    }

    /// Adds `draw`, so that there is room for the whole message again.
    pub fn fill(&mut self, draw: Draw) {
        self.draw.join(draw);
        self.is_whole = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_wire::{Compressor, MessageFlags, write_message};

    fn frame(bytes: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        write_message(&mut frame, 1, 0, MessageFlags::NONE, |out| out.resize(out.len() + bytes, 0)).expect("short");
        frame
    }

    fn cost(frame: &[u8]) -> Option<Cost> {
        let (header, _) = Header::of_whole(frame).expect("a whole frame");
        Cost::of(&header, frame)
    }

    #[test]
    fn small_messages_cost_nothing_and_large_ones_all_that_they_become() {
        assert_eq!(cost(&frame(1000)), None);
        let plain = frame(LARGE_BYTES);
        assert_eq!(cost(&plain).map(|cost| cost.bytes), Some(3 * plain.len() as u64));
        // A few bytes that become many.
        let mut wrapped = Vec::new();
        Codec::new().compress(&plain, Compressor::Zstd, &mut wrapped).expect("compresses");
        assert!(wrapped.len() < 1000);
        let inside = cost(&wrapped).expect("large inside");
        assert_eq!((inside.bytes, inside.content_bytes()), ((wrapped.len() + 3 * plain.len()) as u64, plain.len()));
        assert_eq!(Cost::of_start(&plain[..16], plain.len()), cost(&plain));
    }

    #[test]
    fn a_place_that_is_given_up_keeps_what_has_come() {
        let memory = ServerMemory::new(1 << 30);
        let large = cost(&frame(1 << 20)).expect("large");
        let mut place = large.draw(&memory).expect("there is room");
        assert!(place.is_whole() && large.missing(Some(&place)) == 0);
        place.shrink(1000);
        assert_eq!((place.is_whole(), memory.held(), large.missing(Some(&place))), (false, 1000, large.bytes - 1000));
        place.fill(memory.draw(large.missing(Some(&place)), Purpose::Message).expect("there is room"));
        assert!(place.is_whole() && memory.held() == large.bytes);
        drop(place);
        assert_eq!(memory.held(), 0);
    }
}
