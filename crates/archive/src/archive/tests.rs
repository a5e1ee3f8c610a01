//! Tests that damage anywhere in a small archive is found.

use super::*;
use crate::crc64::checksum;
use bunko_bson::{DocumentBuf, ValueRef};
use std::io::BufReader;

/// Two collections interleaved, a view, a time series, the oplog.
fn small() -> Vec<u8> {
    let names = [("d", "a", "collection"), ("d", "b", "collection"), ("d", "v", "view"), ("d", "t", "timeseries")];
    let entry = |(database, collection, kind): (&str, &str, &str)| NamespaceEntry {
        database: database.to_owned(),
        collection: collection.to_owned(),
        kind: kind.to_owned(),
        ..NamespaceEntry::default()
    };
    let namespaces = names.into_iter().chain([("", "oplog", "")]).map(entry).collect();
    let mut out = Prelude { header: Header::default(), namespaces }.encode();
    for (database, collection, numbers) in
        [("d", "a", 0..3), ("d", "b", 3..4), ("d", "a", 4..5), ("d", "v", 0..0), ("d", "system.buckets.t", 7..8)]
    {
        begin_block(&mut out, database, collection);
        numbers.for_each(|number| out.extend(document(number)));
        end_block(&mut out);
    }
    end_of_namespace(&mut out, "d", "a", checksum(&[0, 1, 2, 4].map(document).concat()));
    end_of_namespace(&mut out, "d", "v", 0);
    begin_block(&mut out, "", "oplog");
    out.extend(document(9));
    end_block(&mut out);
    end_of_namespace(&mut out, "", "oplog", checksum(&document(9)));
    end_of_namespace(&mut out, "d", "b", checksum(&document(3)));
    end_of_namespace(&mut out, "d", "system.buckets.t", checksum(&document(7)));
    out
}

fn document(number: i32) -> Vec<u8> {
    DocumentBuf::new().with("_id", number).with("s", "text").into_bytes()
}

/// All documents with their namespaces, in order.
fn read(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, ArchiveError> {
    let (_, mut reader) = Reader::open(bytes)?;
    let mut documents = Vec::new();
    while let Some(part) = reader.next(Vec::new())? {
        if let ArchivePiece::Documents { database, collection, documents: part } = part {
            documents.push((format!("{database}.{collection}"), part.bytes));
        }
    }
    assert_eq!(reader.offset(), bytes.len() as u64);
    Ok(documents)
}

fn error(bytes: &[u8]) -> ArchiveError {
    read(bytes).expect_err("damaged")
}

/// `archive` with one occurrence of `from` replaced, counted from 0.
fn replaced(archive: &[u8], from: &[u8], occurrence: usize, to: &[u8]) -> Vec<u8> {
    let at = archive.windows(from.len()).enumerate().filter(|(_, bytes)| *bytes == from).nth(occurrence);
    let at = at.expect("there").0;
    [&archive[..at], to, &archive[at + from.len()..]].concat()
}

#[test]
fn it_is_read_as_it_was_written() {
    let read = read(&small()).expect("whole");
    let expected = [
        ("d.a", [0, 1, 2].map(document).concat()),
        ("d.b", document(3)),
        ("d.a", document(4)),
        ("d.system.buckets.t", document(7)),
        (".oplog", document(9)),
    ];
    assert_eq!(read, expected.map(|(name, bytes)| (name.to_owned(), bytes)));
}

#[test]
fn every_truncation_is_found_where_it_is() {
    let archive = small();
    for end in 0..archive.len() {
        let error = error(&archive[..end]);
        assert_eq!(error.offset, end as u64, "{error}");
        assert!(error.to_string().contains("truncated"), "{error}");
    }
}

#[test]
fn every_flipped_bit_is_found_or_harmless() {
    let archive = small();
    let whole = read(&archive).expect("whole");
    for at in 0..archive.len() {
        for bit in 0..8 {
            let mut damaged = archive.clone();
            damaged[at] ^= 1 << bit;
            match read(&damaged) {
                Err(error) => assert!(error.offset <= archive.len() as u64, "{error}"),
                // The prelude's texts have no checksum, and an additional empty block changes nothing.
                Ok(read) => assert_eq!(read, whole, "byte {at}, bit {bit}"),
            }
        }
    }
}

#[test]
fn a_damaged_block_is_named() {
    let archive = small();
    for (damaged, message) in [
        (replaced(&archive, b"EOF", 0, b"EOG"), "unknown field 'EOG' in a block's header"),
        (replaced(&archive, b"\x08EOF\0\0", 0, b"\x08EOF\0\x01"), "0x0000001a where the terminator must stand"),
        (replaced(&archive, b"CRC\0\0", 0, b"CRC\0\x07"), "checksum 0x0000000000000007 before the namespace's end"),
        (replaced(&archive, &document(1), 0, &document(2)), "the documents' checksum is"),
        (replaced(&archive, &document(0), 0, &[]), "the documents' checksum is"),
        (replaced(&archive, &document(1)[..4], 1, &[4, 0, 0, 0]), "a document says that it is 4 bytes long"),
        (replaced(&archive, &document(1)[..4], 1, &[0, 0, 0, 2]), "33554432 bytes long, not 5 to 16793600"),
        (replaced(&archive, &document(1)[..4], 1, &[22, 0, 0, 0]), "a document ends with"),
        (replaced(&archive, b"0.1", 0, b"0.2"), "version '0.2' of the format, expected '0.1'"),
        (replaced(&archive, &archive[..4], 0, b"PK\x03\x04"), "begins with 0x04034b50, an archive with 0x8199e26d"),
        (replaced(&archive, b"\x02\0\0\0b\0", 0, b"\x02\0\0\0a\0"), "a namespace stands twice in the prelude"),
        (replaced(&archive, b"\x02\0\0\0b\0", 0, b"\x02\0\0\0c\0"), "the prelude does not name this namespace"),
        (replaced(&archive, b"\x02\0\0\0b\0", 1, b"\x02\0\0\0v\0"), "the documents' checksum is"),
        ([&archive[..], &archive[archive.len() - 4..]].concat(), "a terminator where a header must stand"),
    ] {
        let error = error(&damaged).to_string();
        assert!(error.contains(message), "{error}\nexpected: {message}");
    }
}

#[test]
fn nothing_follows_a_namespaces_end() {
    let mut archive = small();
    let at = archive.len();
    begin_block(&mut archive, "d", "v");
    let message =
        format!("invalid archive at offset {at}, in the block of 'd.v' at offset {at}: the namespace has ended before");
    assert_eq!(error(&archive).to_string(), message);
}

#[test]
fn a_selection_may_lack_namespaces() {
    let archive = small();
    let prelude_bytes = Reader::open(&archive[..]).expect("whole").1.offset() as usize;
    let mut selection = archive[..prelude_bytes].to_vec();
    begin_block(&mut selection, "d", "a");
    end_block(&mut selection);
    let (_, mut reader) = Reader::open_selection(&selection[..]).expect("a prelude");
    let error = reader.next(Vec::new()).expect_err("begun and not ended").to_string();
    assert!(error.contains("1 namespaces of the prelude have not ended, the first is 'd.a'"), "{error}");
    end_of_namespace(&mut selection, "d", "a", 0);
    let (_, mut reader) = Reader::open_selection(&selection[..]).expect("a prelude");
    assert!(matches!(reader.next(Vec::new()).expect("whole"), Some(ArchivePiece::End { .. })));
    assert_eq!(reader.next(Vec::new()).expect("whole"), None);
}

#[test]
fn parts_keep_to_their_limit() {
    let archive = small();
    for limit in 1..200 {
        let (_, reader) = Reader::open(BufReader::with_capacity(1 + limit % 7, &archive[..])).expect("whole");
        let mut reader = reader.with_part_bytes(limit);
        let mut bytes = Vec::new();
        while let Some(part) = reader.next(Vec::new()).expect("whole") {
            if let ArchivePiece::Documents { documents, .. } = part {
                assert!(documents.count == 1 || documents.bytes.len() <= limit);
                bytes.extend(documents.bytes);
            }
        }
        assert_eq!(bytes, [0, 1, 2, 3, 4, 7, 9].map(document).concat());
    }
}

#[test]
fn a_prelude_says_more_than_we_know() {
    let header = DocumentBuf::new().with("version", VERSION).with("future", ValueRef::Null);
    let entry = DocumentBuf::new().with("db", "d").with("collection", "c").with("size", 1_i64 << 40);
    let archive = [&MAGIC.to_le_bytes()[..], &header.into_bytes(), &entry.into_bytes(), &[0xff; 4]].concat();
    let (prelude, _) = Reader::open(&archive[..]).expect("lenient");
    assert_eq!(prelude.namespaces[0].size_bytes, 1 << 40);
    assert_eq!(Reader::open(&prelude.encode()[..]).expect("ours").0, prelude);
}

#[test]
fn a_prelude_without_an_end_is_given_up() {
    let entry = |number: usize| NamespaceEntry {
        collection: number.to_string(),
        metadata: "m".repeat(1 << 20),
        ..NamespaceEntry::default()
    };
    let namespaces = (0..130).map(entry).collect();
    let archive = Prelude { header: Header::default(), namespaces }.encode();
    let error = Reader::open(&archive[..]).map(drop).expect_err("too long");
    assert!(matches!(error.reason, Reason::PreludeTooLong), "{error}");
}
