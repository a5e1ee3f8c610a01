//! Bytes flipped all over the data file: every read returns the written data, or an error that names the file.

use crate::*;
use bunko_store::{Clock, Engine, Opening, RecordRange};
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;

/// Contents of a file, as the tests read them.
#[derive(PartialEq)]
struct Contents {
    records: Vec<(u64, Vec<u8>)>,
    keys: Vec<(Vec<u8>, u64)>,
}

fn long_key(number: u64) -> Vec<u8> {
    [vec![b'x'; 600], number.to_be_bytes().to_vec()].concat()
}

/// Makes a small file with every kind of content: several levels, overflow pages, long keys, free pages. Returns its
/// note from the manifest.
fn fill(directory: &Path) -> bunko_bson::DocumentBuf {
    let store = open(directory).expect("opens");
    for round in 0..3_u64 {
        let mut batch = Batch::new();
        for number in 1 + 40 * round..41 + 40 * round {
            let length = if number % 40 == 0 { 9000 } else { 60 };
            batch.insert_record(RECORDS, RecordId(number), vec![number as u8; length]);
            let text = format!("key{number:04}-{}", "k".repeat(120));
            batch.put_key(INDEX, text.as_bytes(), RecordId(number));
            if number % 20 == 0 {
                batch.put_key(INDEX, &long_key(number), RecordId(number));
            }
        }
        commit(&store, &batch);
        store.checkpoint().expect("checkpoint");
    }
    let mut batch = Batch::new();
    for number in 30..50 {
        let mut bytes = Vec::new();
        let old = store.latest().record(RECORDS, RecordId(number), &mut bytes).expect("readable").expect("present");
        batch.delete_record(RECORDS, RecordId(number), old);
    }
    commit(&store, &batch);
    store.close().expect("closes");
    drop(store);
    let manifest = std::fs::read(directory.join("manifest.bson")).expect("readable");
    note_in(&manifest)
}

/// The engine's note. A manifest is a sequence of documents, each after the four bytes of its checksum.
fn note_in(manifest: &[u8]) -> bunko_bson::DocumentBuf {
    let mut note = Vec::new();
    let mut rest = manifest;
    while let Some((length, _)) = rest.get(4..).and_then(|document| document.split_first_chunk()) {
        let (part, behind) = rest[4..].split_at(u32::from_le_bytes(*length) as usize);
        let part = bunko_bson::DocumentRef::parse(part).expect("a document");
        if let Some(bunko_bson::ValueRef::Binary { bytes, .. }) = part.get("note") {
            note.extend_from_slice(bytes);
        }
        rest = behind;
    }
    bunko_bson::DocumentRef::parse(&note).expect("a note").to_owned()
}

fn engine(directory: &Path, note: &bunko_bson::DocumentBuf) -> Result<Arc<dyn Engine>, StorageError> {
    let opening = Opening { directory, log: Arc::default(), clock: Clock::machine(), note: Some(note.as_ref()) };
    (bunko_mmap::kind(MmapOptions::default()).open)(opening)
}

/// Reads everything, in every way that a view offers.
fn read(directory: &Path, note: &bunko_bson::DocumentBuf) -> Result<[Contents; 3], StorageError> {
    let engine = engine(directory, note)?;
    let view = engine.latest();
    let walked = |direction| {
        let records = records(view, RecordRange::ALL, direction)?;
        Ok(Contents { records, keys: keys(view, KeyRange::ALL, direction)? })
    };
    let forward = walked(Direction::Forward)?;
    let mut backward = walked(Direction::Backward)?;
    backward.records.reverse();
    backward.keys.reverse();
    let mut looked_up = Contents { records: Vec::new(), keys: Vec::new() };
    let mut bytes = Vec::new();
    for number in 1..121 {
        if view.record(RECORDS, RecordId(number), &mut bytes)?.is_some() {
            looked_up.records.push((number, bytes.clone()));
        }
    }
    let short = (1..121).map(|number| format!("key{number:04}-{}", "k".repeat(120)).into_bytes());
    for key in short.chain((1..121).map(long_key)) {
        if let Some(record) = view.key(INDEX, &key)? {
            looked_up.keys.push((key, record.0));
        }
    }
    Ok([forward, backward, looked_up])
}

#[test]
fn a_flipped_byte_is_never_served() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let note = fill(directory.path());
    let path = data_file(directory.path());
    let [expected, ..] = read(directory.path(), &note).expect("readable");
    assert_eq!((expected.records.len(), expected.keys.len()), (100, 126));
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).expect("opens");
    let mut used = vec![0; 80 * 4096];
    file.read_exact_at(&mut used, 0).expect("read");
    let mut noticed = BTreeSet::new();
    let mut pages_noticed = BTreeSet::new();
    for at in 0..used.len() {
        let in_page = at % 4096;
        // Tries every byte of LMDB's own structures, and some bytes of our entries.
        let is_tried = used[at / 4096 * 4096..][..4096].iter().any(|byte| *byte != 0)
            && (in_page < 32 || at < 2 * 4096 && in_page < 152 || at % 61 == 0);
        if !is_tried {
            continue;
        }
        file.write_all_at(&[used[at] ^ 1 << (at % 8)], at as u64).expect("written");
        match read(directory.path(), &note) {
            Ok(found) => assert!(found.iter().all(|found| *found == expected), "served after a flip at {at}"),
            Err(StorageError::Corrupt { file, found, .. }) => {
                assert_eq!(file, path, "{found}");
                noticed.insert(found);
                pages_noticed.insert(at / 4096);
            }
            Err(other) => panic!("a flip at {at}: {other}"),
        }
        file.write_all_at(&used[at..=at], at as u64).expect("written");
    }
    assert!(noticed.len() >= 10 && pages_noticed.len() >= 15, "{noticed:?} {pages_noticed:?}");
}

#[test]
fn a_damaged_document_is_named_with_its_place() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let note = fill(directory.path());
    let path = data_file(directory.path());
    let bytes = std::fs::read(&path).expect("readable");
    // The document of 9000 bytes is on its own overflow pages, after a header and its location.
    let at = bytes.windows(8000).position(|window| window.iter().all(|byte| *byte == 120)).expect("there") as u64;
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opens");
    file.write_all_at(&[0], at + 7000).expect("written");
    let engine = engine(directory.path(), &note).expect("opens");
    match engine.latest().record(RECORDS, RecordId(120), &mut Vec::new()) {
        Err(StorageError::Corrupt { file, offset_bytes, found }) => {
            assert_eq!((file, offset_bytes), (path, at / 4096 * 4096));
            assert_eq!(found, "a document that fails its checksum");
        }
        other => panic!("expected corruption, got {other:?}"),
    }
    // Other documents can still be read.
    assert!(engine.latest().record(RECORDS, RecordId(119), &mut Vec::new()).expect("readable").is_some());
}
