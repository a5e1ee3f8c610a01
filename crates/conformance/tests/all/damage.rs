//! Whatever happens to a byte or a file of a data directory, reads return the written data, or an error that names a
//! file of that directory; never other data, and never a panic.

use bunko_conformance::comparison::{self, Difference};
use bunko_conformance::directory::{Directory, entries};
use bunko_conformance::document::{Document, key};
use bunko_conformance::model::{Model, Stored, value_key};
use bunko_conformance::roster;
use bunko_conformance::subject::{self, Subject};
use bunko_engines::Entry;
use bunko_store::{Batch, KeyspaceId, Presence, RecordId, StorageError, Store, Survival};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of bytes of each file that are flipped, unless `BUNKO_CONFORMANCE_CASES` gives another number.
const FLIPS: u64 = 3;
/// Number of these bytes at either end of the file.
const FLIPS_AT_ENDS: u64 = 1;
/// Lengths of documents that fill a segment of the log, and of a last one that begins the next; all are deleted again.
const LARGE_BYTES: [u32; 5] = [16_500_000, 16_500_000, 16_500_000, 16_500_000, 2_000_000];
/// A keyspace that is not compared.
const MARKER: KeyspaceId = KeyspaceId(0);

/// A data directory at rest, and its contents.
struct Sample {
    directory: Directory,
    model: Model,
    own: &'static Entry,
    rest: Rest,
}

/// How a store was stopped.
#[derive(Clone, Copy, Debug)]
enum Rest {
    Closed,
    /// Killed after a sync, with one later record that proves the sync.
    Killed,
}

impl Sample {
    /// Makes collections in every durable engine: some of their documents are flushed, some have moved out of the log,
    /// and some are only in the log.
    fn new(own: &'static Entry, rest: Rest) -> Self {
        let mut subject = Subject::new(own);
        let mut model = Model::default();
        let mut numbers = Vec::new();
        for name in subject.store().engine_names() {
            let survival = roster::survival(bunko_engines::find(name).expect("listed"));
            if survival == Survival::Durable {
                let number = model.create(name, survival);
                let collection = &model.collections[&number];
                let mut batch = Batch::new();
                for keyspace in [collection.records, collection.ids, collection.values] {
                    batch.create_keyspace(keyspace, name, &[]);
                }
                subject.store().commit(&batch).expect("created");
                numbers.push(number);
            }
        }
        let store = Arc::clone(subject.store());
        for &number in &numbers {
            insert(&store, &mut model, number, 0..12, 700);
        }
        for length in LARGE_BYTES {
            insert(&store, &mut model, numbers[0], 40..41, length);
            delete_last(&store, &mut model, numbers[0]);
        }
        store.compact().expect("compacts");
        for &number in &numbers {
            insert(&store, &mut model, number, 12..18, 30);
        }
        store.checkpoint().expect("checkpoint");
        for &number in &numbers {
            insert(&store, &mut model, number, 18..24, 100);
        }
        if matches!(rest, Rest::Killed) {
            sync(&store);
            let mut batch = Batch::new();
            batch.insert_record(MARKER, RecordId(1), Document { seed: 0, length: 40 }.bytes());
            let lsn = store.commit(&batch).expect("committed");
            store.write(lsn).expect("written");
        }
        let end = store.statistics().log.next_lsn;
        drop(store);
        if matches!(rest, Rest::Closed) {
            subject.close();
        }
        let directory = Directory::copy_of(subject.path());
        subject::remove_preallocated(&directory.path().join("log"), end);
        Self { directory, model, own, rest }
    }

    /// All files below the directory except locks. For a killed store only the log's files, in which it differs from a
    /// closed one.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut rooms = vec![self.directory.path().to_owned()];
        while let Some(room) = rooms.pop() {
            for path in entries(&room) {
                if path.is_dir() {
                    rooms.push(path);
                } else if path.extension().is_none_or(|extension| extension != "lock") {
                    files.push(path.strip_prefix(self.directory.path()).expect("below").to_owned());
                }
            }
        }
        files.retain(|file| matches!(self.rest, Rest::Closed) || file.starts_with("log"));
        files.sort();
        files
    }

    /// Harms a copy of the directory, opens it, and returns a description of what went wrong, if anything did.
    fn complaint(&self, harm: &dyn Fn(&Path)) -> Option<String> {
        let copy = Directory::default();
        assert!(copy.fill(self.directory.path()), "the sample cannot be copied");
        harm(copy.path());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let store = subject::open(copy.path(), self.own)?;
            comparison::all(store.latest(), &self.model)?;
            comparison::all(&store.snapshot(), &self.model)?;
            comparison::statistics(&store, &self.model)
        }));
        match outcome {
            Ok(Ok(())) => None,
            Ok(Err(Difference::Failed(error))) if names_a_file(&error, copy.path()) => None,
            Ok(Err(Difference::Failed(error))) => Some(format!("names no file of the directory: {error}")),
            Ok(Err(Difference::Wrong(what))) => Some(format!("not noticed: {what}")),
            Err(_) => Some("panics".to_owned()),
        }
    }
}

fn names_a_file(error: &StorageError, directory: &Path) -> bool {
    match error {
        StorageError::Io { path, .. }
        | StorageError::Corrupt { file: path, .. }
        | StorageError::OtherFormat { path, .. }
        | StorageError::OtherEngine { path, .. } => path.starts_with(directory),
        _ => false,
    }
}

pub fn insert(store: &Store, model: &mut Model, number: u32, ids: std::ops::Range<u8>, length: u32) {
    for id in ids {
        let collection = model.collection_mut(number);
        let stored = Stored { document: Document { seed: u32::from(id), length }, id, value: id };
        let record = RecordId(collection.insert(stored));
        let mut batch = Batch::new();
        batch.insert_record(collection.records, record, stored.document.bytes());
        batch.put_primary_key(collection.ids, &key(id), record, Presence::New);
        batch.put_key(collection.values, &value_key(id, record.0), record);
        let lsn = store.commit(&batch).expect("committed");
        store.write(lsn).expect("written");
    }
}

pub fn delete_last(store: &Store, model: &mut Model, number: u32) {
    let collection = model.collection_mut(number);
    let (&record, &stored) = collection.documents.last_key_value().expect("one at least");
    let location = store.latest().record(collection.records, RecordId(record), &mut Vec::new()).expect("readable");
    let mut batch = Batch::new();
    batch.delete_key(collection.ids, &key(stored.id));
    batch.delete_key(collection.values, &value_key(stored.value, record));
    batch.delete_record(collection.records, RecordId(record), location.expect("there"));
    collection.delete(record);
    store.commit(&batch).expect("committed");
}

/// Returns once everything is on disk.
fn sync(store: &Store) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let last = bunko_store::Lsn(store.statistics().log.next_lsn - 1);
    store.on_durable(last, Box::new(move |outcome| sender.send(outcome.is_ok()).expect("somebody waits")));
    assert!(receiver.recv().expect("called back"), "the log cannot be synced");
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn a_flipped_byte_is_noticed_or_does_no_harm() {
    let flips = std::env::var("BUNKO_CONFORMANCE_CASES").ok();
    let flips = flips.map_or(FLIPS, |flips| flips.parse().expect("BUNKO_CONFORMANCE_CASES is a number"));
    roster::each_durable_engine(|own| {
        let mut complaints = Vec::new();
        for rest in [Rest::Closed, Rest::Killed] {
            let sample = Sample::new(own, rest);
            assert_eq!(sample.complaint(&|_| ()), None, "{}, {rest:?}, unharmed", own.name);
            for file in sample.files() {
                for offset in offsets(&sample.directory.path().join(&file), flips) {
                    let complaint = sample.complaint(&|directory| flip(&directory.join(&file), offset));
                    complaints.extend(
                        complaint.map(|what| format!("{}, {rest:?}, {} at {offset}: {what}", own.name, file.display())),
                    );
                }
            }
        }
        assert_none(&complaints);
    });
}

/// Offsets of the bytes to flip: at both ends of the used part, and evenly in between, shifted so that files are not
/// hit at equal offsets. Zeros may be unused, so only a few of them are chosen.
fn offsets(file: &Path, count: u64) -> Vec<u64> {
    let bytes = fs::read(file).expect("readable");
    let used: Vec<u64> = (0..bytes.len() as u64).filter(|&offset| bytes[offset as usize] != 0).collect();
    let unused = (0..bytes.len() as u64).filter(|&offset| bytes[offset as usize] == 0).step_by(bytes.len() / 2 + 1);
    let ends = used.iter().take(FLIPS_AT_ENDS as usize).chain(used.iter().rev().take(FLIPS_AT_ENDS as usize));
    let step = (used.len() as u64 / count.max(1)).max(1);
    let between = used.iter().skip((step / 3) as usize).step_by(step as usize);
    let mut offsets: Vec<u64> = ends.chain(between).copied().chain(unused).collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

fn flip(path: &Path, offset: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("opens");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("readable");
    file.write_all_at(&[byte[0] ^ 0x55], offset).expect("writable");
}

#[test]
fn a_missing_or_shortened_file_is_noticed_or_does_no_harm() {
    roster::each_durable_engine(|own| {
        let mut complaints = Vec::new();
        for rest in [Rest::Closed, Rest::Killed] {
            let sample = Sample::new(own, rest);
            for file in sample.files() {
                let name = format!("{}, {rest:?}, {}", own.name, file.display());
                let gone = sample.complaint(&|directory| fs::remove_file(directory.join(&file)).expect("removed"));
                complaints.extend(gone.map(|what| format!("{name} missing: {what}")));
                let halved = sample.complaint(&|directory| halve(&directory.join(&file)));
                complaints.extend(halved.map(|what| format!("{name} cut in half: {what}")));
                let emptied = sample.complaint(&|directory| drop(File::create(directory.join(&file)).expect("cut")));
                complaints.extend(emptied.map(|what| format!("{name} emptied: {what}")));
            }
            for room in entries(sample.directory.path()).into_iter().filter(|path| path.is_dir()) {
                let room = room.strip_prefix(sample.directory.path()).expect("below").to_owned();
                let gone = sample.complaint(&|directory| fs::remove_dir_all(directory.join(&room)).expect("removed"));
                complaints
                    .extend(gone.map(|what| format!("{}, {rest:?}, {} missing: {what}", own.name, room.display())));
            }
        }
        assert_none(&complaints);
    });
}

fn halve(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).expect("opens");
    let length = file.metadata().expect("there").len();
    file.set_len(length / 2).expect("cut");
}

#[test]
fn a_directory_of_another_engine_is_refused() {
    roster::each_durable_engine(|own| {
        let mut subject = Subject::new(own);
        subject.close();
        for other in bunko_engines::ENGINES.iter().filter(|other| other.name != own.name) {
            match subject::open(subject.path(), other) {
                Err(StorageError::OtherEngine { found, asked, .. }) => {
                    assert_eq!((found.as_str(), asked.as_str()), (own.name, other.name));
                }
                outcome => panic!("{} opens what {} made: {:?}", other.name, own.name, outcome.map(|_| ())),
            }
        }
    });
}

#[test]
fn a_missing_segment_amid_the_log_is_noticed() {
    roster::each_durable_engine(|own| {
        let subject = Subject::new(own);
        let store = subject.store();
        let mut model = Model::default();
        let number = model.create(own.name, Survival::Durable);
        insert(store, &mut model, number, 0..1, 40);
        // Three segments, all of which are newer than the last checkpoint.
        for (id, length) in (1..).zip([LARGE_BYTES, LARGE_BYTES].concat()) {
            insert(store, &mut model, number, id..id + 1, length);
        }
        sync(store);
        insert(store, &mut model, number, 20..21, 40);
        let sample = Sample { directory: Directory::copy_of(subject.path()), model, own, rest: Rest::Killed };
        let mut complaints = Vec::new();
        for file in sample.files() {
            let gone = sample.complaint(&|directory| fs::remove_file(directory.join(&file)).expect("removed"));
            complaints.extend(gone.map(|what| format!("{}, {} missing: {what}", own.name, file.display())));
        }
        assert_none(&complaints);
    });
}

/// Contents of all files below a directory, except locks.
pub fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for path in entries(directory) {
        if path.is_dir() {
            found.extend(contents(&path));
        } else if !path.to_string_lossy().contains("lock") {
            let bytes = fs::read(&path).expect("readable");
            found.insert(path, bytes);
        }
    }
    found
}

/// Checks that a start of the harmed sample is refused, and leaves all files unchanged.
fn assert_refused_untouched(sample: &Sample, harm: &dyn Fn(&Path)) {
    let copy = Directory::default();
    assert!(copy.fill(sample.directory.path()), "the sample cannot be copied");
    harm(copy.path());
    let before = contents(copy.path());
    let refusal = subject::open(copy.path(), sample.own).map(drop).expect_err("refused");
    assert!(names_a_file(&refusal, copy.path()), "{}: {refusal}", sample.own.name);
    let after = contents(copy.path());
    for (path, bytes) in &before {
        assert!(after.get(path) == Some(bytes), "{}: {} was changed by: {refusal}", sample.own.name, path.display());
    }
    let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(new.is_empty(), "{}: {new:?} were made by: {refusal}", sample.own.name);
}

#[test]
fn a_refused_start_changes_nothing() {
    roster::each_durable_engine(|own| {
        let sample = Sample::new(own, Rest::Killed);
        let segments = entries(&sample.directory.path().join("log"));
        let last = segments.last().expect("one at least").file_name().expect("named").to_owned();
        assert_refused_untouched(&sample, &|directory| {
            let log = directory.join("log");
            fs::write(log.join("000000000777.recycled"), b"what was a segment").expect("written");
            fs::write(log.join("000000000778.tmp"), b"half of a segment").expect("written");
            let used = fs::read(log.join(&last)).expect("readable");
            // A document of the second-last record; the last record proves that this one was durable.
            let used = used.iter().rposition(|byte| *byte != 0).expect("in use");
            flip(&log.join(&last), used as u64 - 200);
        });
    });
}

#[test]
fn data_without_manifest_and_log_is_refused() {
    roster::each_durable_engine(|own| {
        let sample = Sample::new(own, Rest::Closed);
        assert_refused_untouched(&sample, &|directory| {
            fs::remove_file(directory.join("manifest.bson")).expect("removed");
            fs::remove_dir_all(directory.join("log")).expect("removed");
        });
    });
}
