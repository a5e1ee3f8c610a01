//! No truncation, no changed byte and no noise makes a reader panic or read outside its frame.

use crate::frames;
use crate::frames::everything::read_frames;
use bunko_wire::{Codec, MAX_FRAME_BYTES, split_frame};
use proptest::prelude::*;

/// Greatest claimed size that is accepted, in bytes: otherwise a mutated length costs this test 48 MB of zeros each
/// time.
const LIMIT_BYTES: usize = 1 << 20;

#[test]
fn every_truncation_waits_or_is_refused() {
    let mut codec = Codec::new();
    for (name, frame) in frames::samples() {
        for length in 0..frame.len() {
            assert_eq!(split_frame(&frame[..length], MAX_FRAME_BYTES), Ok(None), "{name} of {length} bytes");
            if length < 16 {
                continue;
            }
            // The same truncation with a header that claims the shorter length. A query without its projection is
            // whole.
            let mut shortened = frame[..length].to_vec();
            shortened[..4].copy_from_slice(&(length as u32).to_le_bytes());
            let refused = read_frames(&mut codec, &shortened, LIMIT_BYTES).is_err();
            let whole = (name == "query" && length == query_without_projection(&frame))
                || (name == "sequences" && sequence_ends(&frame).contains(&length));
            assert_eq!(refused, !whole, "{name} of {length} bytes");
        }
    }
}

/// Offset at which the sample's query ends: header, flags, "test.t", skip, number to return, document.
fn query_without_projection(frame: &[u8]) -> usize {
    let start = 16 + 4 + 7 + 4 + 4;
    start + u32::from_le_bytes(*frame[start..].first_chunk().expect("a length")) as usize
}

/// Offsets at which the sample's body and its first sequence end.
fn sequence_ends(frame: &[u8]) -> [usize; 2] {
    let length_at = |at: usize| u32::from_le_bytes(*frame[at..].first_chunk().expect("a length")) as usize;
    let body_end = 21 + length_at(21);
    [body_end, body_end + 1 + length_at(body_end + 1)]
}

#[test]
fn every_changed_byte_is_survived() {
    let mut codec = Codec::new();
    let mut refused = 0;
    for (_, frame) in frames::samples() {
        let mut mutated = frame.clone();
        for position in 0..frame.len() {
            for change in 1..=255 {
                mutated[position] = frame[position] ^ change;
                refused += usize::from(read_frames(&mut codec, &mutated, LIMIT_BYTES).is_err());
            }
            mutated[position] = frame[position];
        }
    }
    assert!(refused > 0, "some changes are noticed");
}

#[test]
fn a_checksum_notices_every_changed_byte() {
    let samples = frames::samples();
    let (_, frame) = samples.iter().find(|(name, _)| *name == "checksum").expect("there");
    // The length and the opcode decide what is read at all, and the flags whether there is a checksum, so they stay.
    for position in (4..12).chain(20..frame.len()) {
        for bit in 0..8 {
            let mut mutated = frame.clone();
            mutated[position] ^= 1 << bit;
            assert!(bunko_wire::Message::parse(&mutated).is_err(), "byte {position} bit {bit}");
        }
    }
}

proptest! {
    #[test]
    fn noise_behind_a_header_is_survived(
        op_code in prop::sample::select(vec![1, 2004, 2005, 2007, 2012, 2013]),
        noise in proptest::collection::vec(prop_oneof![0_u8..8, any::<u8>()], 0..300),
    ) {
        let header = [16 + noise.len() as i32, 1, 0, op_code];
        let mut frame: Vec<u8> = header.iter().flat_map(|field| field.to_le_bytes()).collect();
        frame.extend_from_slice(&noise);
        let _ = read_frames(&mut Codec::new(), &frame, LIMIT_BYTES);
        let _ = read_frames(&mut Codec::new(), &noise, LIMIT_BYTES);
    }

    #[test]
    fn several_changes_are_survived(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut codec = Codec::new();
        for (_, mut frame) in frames::samples() {
            for (position, byte) in &changes {
                let position = position.index(frame.len());
                frame[position] = *byte;
            }
            let _ = read_frames(&mut codec, &frame, LIMIT_BYTES);
        }
    }
}
