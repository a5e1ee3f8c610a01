//! A flipped byte in any file of the trees is found and named, and never served.

use crate::opened;
use bunko_store::{Batch, Direction, KeyRange, KeyspaceId, Location, RecordId, RecordRange, StorageError, Store};
use bunko_testkit::directory::files_below;
use std::path::Path;
use std::sync::Arc;

const RECORDS: KeyspaceId = KeyspaceId(5);
const INDEX: KeyspaceId = KeyspaceId(6);
/// Maximum number of bytes that are flipped in one file, one at a time: each takes a start.
const FLIPS_MAX: usize = 40;

type Contents = (Vec<(u64, Location)>, Vec<(Vec<u8>, u64)>);

fn open(path: &Path) -> Result<Arc<Store>, StorageError> {
    opened::open(path, |_, _| {})
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number:04} of an index").into_bytes()
}

/// Makes several tables, in which newer ones hide entries of older ones.
fn fill(path: &Path) {
    let store = open(path).expect("opens");
    for part in 0..3_u64 {
        let mut batch = Batch::new();
        for number in (part * 80..part * 80 + 200).step_by(part as usize + 1) {
            let mut old = Vec::new();
            let replaced = store.latest().record(RECORDS, RecordId(number), &mut old).expect("readable");
            match replaced {
                Some(old) if number % 3 == 0 => {
                    batch.delete_record(RECORDS, RecordId(number), old);
                    batch.delete_key(INDEX, &key(number));
                }
                Some(old) => batch.replace_record(RECORDS, RecordId(number), vec![part as u8; 50], old),
                None => {
                    batch.insert_record(RECORDS, RecordId(number), vec![part as u8; 50]);
                    batch.put_key(INDEX, &key(number), RecordId(number));
                }
            }
        }
        let lsn = store.commit(&batch).expect("committed");
        store.write(lsn).expect("written");
        store.checkpoint().expect("checkpoint");
    }
    store.close().expect("closes");
}

/// Reads everything, in every way that a view offers.
fn read(store: &Store) -> Result<Contents, StorageError> {
    let view = store.snapshot();
    let view: &dyn bunko_store::View = &view;
    let mut walked = Vec::new();
    for direction in [Direction::Forward, Direction::Backward] {
        let (mut records, mut keys) = (Vec::new(), Vec::new());
        let mut cursor = view.records(RECORDS, RecordRange::ALL, direction);
        while let Some((record, location, _)) = cursor.next()? {
            records.push((record.0, location));
        }
        let mut cursor = view.keys(INDEX, KeyRange::ALL, direction);
        while let Some((key, record)) = cursor.next()? {
            keys.push((key.to_vec(), record.0));
        }
        records.sort_by_key(|(record, _)| *record);
        keys.sort();
        walked.push((records, keys));
    }
    let (mut records, mut keys) = (Vec::new(), Vec::new());
    for number in 0..400 {
        let location = view.record(RECORDS, RecordId(number), &mut Vec::new())?;
        records.extend(location.map(|location| (number, location)));
        keys.extend(view.key(INDEX, &key(number))?.map(|record| (key(number), record.0)));
    }
    assert!(walked.iter().all(|walked| *walked == (records.clone(), keys.clone())), "reads contradict each other");
    Ok((records, keys))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for file in files_below(from) {
        let copied = to.join(file.strip_prefix(from).expect("below it"));
        std::fs::create_dir_all(copied.parent().expect("a directory")).expect("made");
        // Segments are large, and no test writes to them here.
        std::fs::hard_link(&file, &copied).or_else(|_| std::fs::copy(&file, &copied).map(drop)).expect("copied");
    }
}

#[test]
fn a_flipped_byte_of_the_trees_is_found_and_named() {
    let work = tempfile::tempdir().expect("temporary directory");
    let whole = work.path().join("whole");
    fill(&whole);
    let store = open(&whole).expect("opens");
    let (records, keys) = read(&store).expect("readable");
    assert!(records.len() > 200 && keys.len() == records.len(), "{} records, {} keys", records.len(), keys.len());
    store.close().expect("closes");
    drop(store);
    for file in files_below(&whole.join("trees")) {
        let name = file.strip_prefix(&whole).expect("below it");
        let bytes = std::fs::read(&file).expect("readable");
        for at in (0..bytes.len()).step_by(bytes.len().div_ceil(FLIPS_MAX)) {
            let dbpath = work.path().join(format!("{}-{at}", file.file_name().expect("a file").display()));
            copy(&whole, &dbpath);
            let damaged = dbpath.join(name);
            // Breaks the hard link first, so that the original stays intact.
            std::fs::remove_file(&damaged).expect("removed");
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&damaged, &flipped).expect("written");
            match open(&dbpath).and_then(|store| read(&store)) {
                Err(error @ StorageError::Corrupt { .. }) => {
                    let (error, damaged) = (error.to_string(), damaged.display().to_string());
                    assert!(error.contains(&damaged), "{damaged} at {at}: {error}");
                }
                Ok(read) => panic!("{} at {at}: not noticed, served {read:?}", name.display()),
                Err(other) => panic!("{} at {at}: {other}", name.display()),
            }
            // The store's threads may still be making a file; the temporary directory's removal deletes what is left.
            let _ = std::fs::remove_dir_all(&dbpath);
        }
    }
}
