//! Arbitrary bytes from a peer: frames cut off, unwrapped and read to the leaves.
#![no_main]

#[path = "../../crates/wire/tests/all/frames/everything.rs"]
mod everything;

use bunko_wire::{Codec, Message, MessageFlags, OpCode, put_sequence, split_frame};
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;

/// Greatest claimed size that is accepted, in bytes: zeroing 48 MB again and again would find nothing new.
const LIMIT_BYTES: usize = 1 << 20;

thread_local! {
    static CODEC: RefCell<Codec> = RefCell::new(Codec::new());
}

fuzz_target!(|input: &[u8]| {
    CODEC.with_borrow_mut(|codec| {
        // An error is right; a panic, or a value that does not hold what it promises, is not.
        let _ = everything::read_frames(codec, input, LIMIT_BYTES);
    });
    if let Ok(Some((header, _, consumed))) = split_frame(input, LIMIT_BYTES)
        && header.op_code == OpCode::Message
        && let Ok(message) = Message::parse(&input[..consumed])
    {
        written_again_it_reads_the_same(&message);
    }
});

fn written_again_it_reads_the_same(message: &Message<'_>) {
    let header = message.header;
    let flags = message.flags.with(MessageFlags::CHECKSUM_PRESENT);
    let mut frame = Vec::new();
    let start = bunko_wire::begin_message(&mut frame, header.request_id, header.response_to, flags);
    frame.extend_from_slice(message.body.as_bytes());
    for sequence in message.sequences() {
        put_sequence(&mut frame, sequence.identifier, sequence.documents.clone().map(|document| document.as_bytes()));
    }
    start.finish(&mut frame).expect("as short as before");
    let again = Message::parse(&frame).expect("what we write is valid");
    assert_eq!(again.body, message.body);
    assert!(again.sequences().map(|sequence| sequence.identifier).eq(message.sequences().map(|s| s.identifier)));
    for (again, before) in again.sequences().zip(message.sequences()) {
        assert!(again.documents.clone().eq(before.documents.clone()));
    }
}
