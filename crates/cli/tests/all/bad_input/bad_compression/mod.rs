//! Compressed frames that misstate their contents.

use crate::bad_input::{GROWTH_BYTES_MAX, MESSAGE, assert_closes, ping};
use crate::peer::{Peer, Running, frame, header, int32_at, message};
use bunko_wire::{Codec, Compressor, HEADER_BYTES, MAX_FRAME_BYTES, MessageFlags, OpCode};
use std::time::{Duration, Instant};

const COMPRESSED: i32 = 2012;

/// An OP_COMPRESSED frame with arbitrary claims.
fn envelope(op_code: i32, claimed: i32, compressor: u8, data: &[u8]) -> Vec<u8> {
    frame(COMPRESSED, &[&op_code.to_le_bytes(), &claimed.to_le_bytes(), &[compressor][..], data].concat())
}

#[test]
fn lies_about_compressed_sizes_close_their_connections() {
    let running = Running::start();
    let mut codec = Codec::new();
    let plain = message(1, MessageFlags::NONE, ping().as_ref());
    for compressor in Compressor::ALL {
        let mut wrapped = Vec::new();
        codec.compress(&plain, compressor, &mut wrapped).expect("compresses");
        let truth = int32_at(&wrapped, 20);
        for lie in [truth - 1, truth + 1, 0, -1, i32::MIN, i32::MAX, MAX_FRAME_BYTES as i32] {
            let mut lying = wrapped.clone();
            lying[20..24].copy_from_slice(&lie.to_le_bytes());
            assert_closes(&running, &format!("{}: {lie} instead of {truth}", compressor.name()), &lying);
        }
        let mut cut = wrapped.clone();
        cut.pop();
        let length = cut.len() as u32;
        cut[..4].copy_from_slice(&length.to_le_bytes());
        assert_closes(&running, &format!("{}: cut", compressor.name()), &cut);
        let nested = envelope(COMPRESSED, wrapped.len() as i32 - 16, 0, &wrapped[16..]);
        assert_closes(&running, "nested", &nested);
        running.assert_logged("OP_COMPRESSED within OP_COMPRESSED");
    }
    assert_closes(&running, "unknown compressor", &envelope(MESSAGE, 5, 4, &plain[16..]));
    running.assert_logged("unknown compressor id 4");
    assert_closes(&running, "unknown opcode inside", &envelope(2011, 5, 0, &plain[16..21]));
    assert_closes(&running, "no data at all", &frame(COMPRESSED, &[]));
    running.assert_serves();
}

#[test]
fn compressed_bombs_cost_no_memory() {
    let running = Running::start();
    let mut codec = Codec::new();
    // A frame of the largest size, nearly all zeros, which expands most.
    let mut zeros = vec![0; MAX_FRAME_BYTES];
    zeros[..HEADER_BYTES].copy_from_slice(&header(MAX_FRAME_BYTES as i32, OpCode::Message.code()));
    let before = running.resident_bytes();
    for compressor in Compressor::ALL {
        let mut bomb = Vec::new();
        codec.compress(&zeros, compressor, &mut bomb).expect("compresses");
        let mut understated = bomb.clone();
        understated[20..24].copy_from_slice(&1000_i32.to_le_bytes());
        let mut overstated = bomb.clone();
        overstated[20..24].copy_from_slice(&i32::MAX.to_le_bytes());
        for bytes in [understated, overstated, bomb] {
            assert_closes(&running, compressor.name(), &bytes);
        }
    }
    // The allocator returns memory once the process was idle for a second, and each thread returns what it freed
    // itself. This many connections give every thread work; after them no request is sent for longer than that second.
    let growth = || {
        let mut peers: Vec<Peer> = (0..64).map(|_| running.peer()).collect();
        for peer in &mut peers {
            assert_eq!(peer.text("admin", "{ping: 1}"), "{ok: 1.0}");
        }
        running.resident_bytes().saturating_sub(before)
    };
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut held = growth();
    while held >= GROWTH_BYTES_MAX + MAX_FRAME_BYTES as u64 {
        assert!(Instant::now() < deadline, "{held} bytes are still held");
        std::thread::sleep(Duration::from_millis(2500));
        held = growth();
    }
    running.assert_serves();
}
