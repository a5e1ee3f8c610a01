//! Bytes of a record that is longer than a message: they arrive in several messages, and are put together here.

use crate::wire::Fields;
use bunko_replica::MemberId;
use bunko_store::SEGMENT_BYTES;
use parking_lot::Mutex;

/// The place of a message's bytes in the span that it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Where the span begins in the log.
    pub(crate) at: u64,
    /// Number of the span's bytes in earlier messages.
    pub(crate) offset: u64,
}

impl Piece {
    pub(crate) fn parse(fields: Fields<'_>) -> Result<Self, String> {
        Ok(Self { at: fields.whole("at")?, offset: fields.whole("offset")? })
    }
}

/// The span whose bytes have begun to arrive. There is one at a time, of a segment's length at most, so that a member holds no
/// more than that.
#[derive(Default)]
pub(crate) struct Pieces(Mutex<Option<Begun>>);

struct Begun {
    from: MemberId,
    at: u64,
    bytes: Vec<u8>,
}

impl Pieces {
    /// Adds bytes. The first ones replace a span that has not been completed.
    /// # Errors
    /// If the bytes do not follow those that have arrived, or the span is longer than a segment; the span is dropped then.
    pub(crate) fn add(&self, from: MemberId, piece: Piece, bytes: &[u8]) -> Result<(), String> {
        let mut held = self.0.lock();
        let Piece { at, offset } = piece;
        let mut begun = match held.take() {
            _ if offset == 0 => Begun { from, at, bytes: Vec::new() },
            Some(begun) if begun.from == from && begun.at == at && begun.bytes.len() as u64 == offset => begun,
            _ => return Err(format!("a piece of the log at {at} without the {offset} bytes before it")),
        };
        if offset + bytes.len() as u64 > SEGMENT_BYTES {
            return Err(format!("pieces of the log at {at} are longer than a segment"));
        }
        begun.bytes.extend_from_slice(bytes);
        *held = Some(begun);
        Ok(())
    }

    /// The bytes of the span, of which the last have been added.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.lock().take().map(|begun| begun.bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together_in_their_order_only() {
        let pieces = Pieces::default();
        let add = |from, at, offset, bytes: &[u8]| pieces.add(MemberId(from), Piece { at, offset }, bytes);
        assert!(add(1, 70, 0, b"lost").is_ok());
        assert!(add(1, 90, 0, b"ab").is_ok() && add(1, 90, 2, b"cd").is_ok());
        assert_eq!(pieces.take(), b"abcd");
        assert_eq!(pieces.take(), b"");
        for (from, at, offset) in [(2, 90, 2), (1, 91, 2), (1, 90, 1), (1, 90, 3)] {
            assert!(add(1, 90, 0, b"ab").is_ok());
            assert!(add(from, at, offset, b"cd").is_err(), "{from} {at} {offset}");
            assert_eq!(pieces.take(), b"");
        }
        assert!(add(1, 90, 0, &vec![0; SEGMENT_BYTES as usize + 1]).is_err());
    }
}
