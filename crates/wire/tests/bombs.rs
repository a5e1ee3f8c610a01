//! Frames that lie about their size, and the memory that each costs before it is refused.

use bunko_wire::{Codec, Compressor, MAX_FRAME_BYTES, WireError};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the allocations of the current thread. The Zstandard library allocates outside; its working memory has a
/// fixed size when it decompresses in one call.
struct Counting;

thread_local! {
    static LARGEST_BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST_BYTES.with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

// The allocator is the whole program's, so this file is a program of its own.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The largest single allocation that `action` makes, in bytes.
fn largest_allocation(action: impl FnOnce()) -> usize {
    LARGEST_BYTES.set(0);
    action();
    LARGEST_BYTES.get()
}

/// A compressed OP_MSG of `length` zero bytes, with its true size. Zeros are not a document, but compress very well.
fn bomb(compressor: Compressor, length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = [16 + length as i32, 1, 0, 2013].iter().flat_map(|field| field.to_le_bytes()).collect();
    frame.resize(16 + length, 0);
    let mut wrapped = Vec::new();
    Codec::new().compress(&frame, compressor, &mut wrapped).expect("compresses");
    wrapped
}

fn claim(mut wrapped: Vec<u8>, size: i32) -> Vec<u8> {
    wrapped[20..24].copy_from_slice(&size.to_le_bytes());
    wrapped
}

fn refused(wrapped: &[u8]) -> (WireError, usize) {
    let mut codec = Codec::new();
    let mut inner = Vec::new();
    let mut result = Ok(());
    let largest = largest_allocation(|| result = codec.decompress(wrapped, MAX_FRAME_BYTES, &mut inner));
    assert!(inner.is_empty());
    (result.expect_err("a lying size is an error"), largest)
}

#[test]
fn any_size_but_the_true_one_is_refused() {
    let size = 10_000;
    for compressor in Compressor::ALL {
        let true_bomb = bomb(compressor, size);
        let mut inner = Vec::new();
        assert_eq!(Codec::new().decompress(&true_bomb, MAX_FRAME_BYTES, &mut inner), Ok(()));
        assert_eq!(inner.len(), 16 + size);
        let size = size as i32;
        for lie in [i32::MIN, -1, 0, 1, size / 2, size - 1, size + 1, size * 2, i32::MAX] {
            let (error, _) = refused(&claim(true_bomb.clone(), lie));
            let expected = matches!(error, WireError::BadUncompressedSize { .. } | WireError::BadCompressedData { .. });
            assert!(expected, "{} claiming {lie}: {error}", compressor.name());
        }
    }
}

#[test]
fn a_bomb_above_the_limit_costs_nothing() {
    for compressor in Compressor::ALL {
        let small = bomb(compressor, 100_000);
        for lie in [MAX_FRAME_BYTES as i32 - 15, MAX_FRAME_BYTES as i32, i32::MAX] {
            let (error, largest) = refused(&claim(small.clone(), lie));
            assert_eq!(error, WireError::BadUncompressedSize { claimed: lie });
            assert!(largest < 1000, "{} allocated {largest} bytes", compressor.name());
        }
    }
}

#[test]
fn a_few_bytes_that_claim_48_megabytes_cost_nothing() {
    let lie = MAX_FRAME_BYTES as i32 - 16;
    for compressor in Compressor::ALL {
        let (error, largest) = refused(&claim(bomb(compressor, 500), lie));
        assert_eq!(error, WireError::BadUncompressedSize { claimed: lie });
        assert!(largest < 1000, "{} allocated {largest} bytes", compressor.name());
    }
}

#[test]
fn a_bomb_that_claims_little_gets_little() {
    for compressor in Compressor::ALL {
        let (_, largest) = refused(&claim(bomb(compressor, 40_000_000), 100));
        // Zlib's window and tables take little more than 32 KiB for any data.
        assert!(largest < 100_000, "{} allocated {largest} bytes", compressor.name());
    }
}

#[test]
fn a_zstandard_frame_without_its_size_is_held_to_the_claim() {
    // Magic number; descriptor and window (single segment off: no size); one last block of 5000 repeated bytes.
    let block = (5000_u32 << 3 | 1 << 1 | 1).to_le_bytes();
    let data = [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50][..], &block[..3], &[7]].concat();
    let with = |claimed: i32| {
        let fields = [25 + data.len() as i32, 1, 0, 2012, 2013, claimed];
        let mut frame: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        frame.push(3);
        frame.extend_from_slice(&data);
        frame
    };
    let mut inner = Vec::new();
    assert_eq!(Codec::new().decompress(&with(5000), MAX_FRAME_BYTES, &mut inner), Ok(()));
    assert_eq!(inner[16..], [7; 5000]);
    for lie in [1, 4999, 5001, 100_000] {
        let (error, _) = refused(&with(lie));
        let claimed = lie as usize;
        assert_eq!(error, WireError::BadCompressedData { compressor: Some(Compressor::Zstd), claimed });
    }
}

#[test]
fn bytes_after_the_compressed_data_are_refused() {
    for compressor in Compressor::ALL {
        let mut longer = bomb(compressor, 10_000);
        longer.push(0);
        let length = longer.len() as u32;
        longer[..4].copy_from_slice(&length.to_le_bytes());
        assert!(matches!(refused(&longer).0, WireError::BadCompressedData { .. }), "{}", compressor.name());
    }
}

#[test]
fn data_that_names_its_own_size_contradicts_the_claim_before_memory_is_spent() {
    for compressor in [Compressor::Snappy, Compressor::Zstd] {
        // The claimed size is within the reach of that many compressed bytes.
        let (error, largest) = refused(&claim(bomb(compressor, 1_000_000), 900_000));
        assert_eq!(error, WireError::BadUncompressedSize { claimed: 900_000 });
        assert!(largest < 1000, "{} allocated {largest} bytes", compressor.name());
    }
}
