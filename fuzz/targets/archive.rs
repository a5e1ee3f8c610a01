//! Arbitrary input of `bunko restore`: an archive or a .bson file, compressed or not, and a collection's metadata.
#![no_main]

use bunko_archive::archive::{ArchivePiece, Reader};
use bunko_archive::metadata::Metadata;
use bunko_archive::{bson_file, compression};
use libfuzzer_sys::fuzz_target;
use std::io::{Cursor, Read};
use std::num::NonZeroUsize;

/// Greatest decoded length of a stream, in bytes: a bomb is read bit by bit and need not be read to its end.
const DECODED_BYTES_MAX: u64 = 4 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    match kind % 5 {
        0 => read_archive(input),
        1 => read_bson(input),
        2 => {
            if let Ok(text) = std::str::from_utf8(input)
                && let Ok(metadata) = Metadata::parse(text)
            {
                let again = Metadata::parse(&metadata.to_json()).expect("what we write is valid");
                assert_eq!(again.to_json(), metadata.to_json());
            }
        }
        kind => {
            let one = NonZeroUsize::MIN;
            let Ok(stream) = compression::open(Box::new(Cursor::new(input.to_vec())), one) else { return };
            let mut plain = Vec::new();
            if stream.take(DECODED_BYTES_MAX).read_to_end(&mut plain).is_ok() && kind == 4 {
                read_archive(&plain);
            }
        }
    }
});

fn read_archive(input: &[u8]) {
    let Ok((prelude, mut reader)) = Reader::open(input) else { return };
    drop(prelude.encode());
    let mut count = 0;
    while let Ok(Some(part)) = reader.next(Vec::new()) {
        if let ArchivePiece::Documents { documents, .. } = part {
            assert_eq!(documents.iter().count(), documents.count);
            count += documents.bytes.len();
        }
        assert!(count <= input.len(), "more documents than there were bytes");
        assert!(reader.offset() <= input.len() as u64);
    }
}

fn read_bson(input: &[u8]) {
    let mut reader = bson_file::Reader::new(input);
    let mut count = 0;
    while let Ok(Some(documents)) = reader.next(Vec::new()) {
        assert_eq!(documents.iter().count(), documents.count);
        count += documents.bytes.len();
    }
    assert!(count <= input.len());
}
