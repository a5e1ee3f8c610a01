//! Point reads beside raw LMDB, in one interleaved run:
//!
//! ```sh
//! cargo run --release -p bunko-mmap --example point_reads -- [records]
//! ```
//!
//! All contenders read the same records in the same random order from files with equal contents, warm, into a buffer of
//! their own. Raw LMDB is `mdb_get` in one open read transaction, once without a checksum and once with the document's
//! checksum verified. Ours is `View::record` of the latest state after a checkpoint, which verifies the checksum.
//! Figures are CPU time of the reading thread.

use bunko_mmap::MmapOptions;
use bunko_store::{Batch, EngineTable, KeyspaceId, RecordId, Store, StoreOptions, View};
use bunko_testkit::random::{Random, scramble};
use heed::types::Bytes;
use heed::{Database, EnvOpenOptions, PutFlags, RoTxn};
use std::path::Path;
use std::sync::Arc;

const RECORDS: KeyspaceId = KeyspaceId(1);
const DOCUMENT_BYTES: usize = 1024;
/// Bytes before a document in our file; the raw file has as many.
const HEADER_BYTES: usize = 20;
const ROUNDS: usize = 15;
const READS: u64 = 200_000;

fn document(number: u64) -> Vec<u8> {
    (0..DOCUMENT_BYTES as u64 / 8).flat_map(|word| (number.wrapping_mul(word + 1)).to_le_bytes()).collect()
}

/// The same pseudorandom record numbers in the same order for all contenders.
fn numbers(round: usize, records: u64) -> impl Iterator<Item = u64> {
    let mut random = Random(scramble(round as u64));
    (1..=READS).map(move |_| random.below(records) + 1)
}

fn open_store(path: &Path) -> Arc<Store> {
    let options = StoreOptions { unflushed_bytes_max: 256 << 20, ..StoreOptions::at_rest() };
    Store::open(path, options, EngineTable::only(bunko_mmap::kind(MmapOptions::default()))).expect("opens")
}

fn fill_store(store: &Store, records: u64) {
    for number in 1..=records {
        let mut batch = Batch::new();
        batch.insert_record(RECORDS, RecordId(number), document(number));
        let lsn = store.commit(&batch).expect("committed");
        store.write(lsn).expect("written");
        if number % 100_000 == 0 {
            store.checkpoint().expect("checkpoint");
        }
    }
    store.checkpoint().expect("checkpoint");
}

/// CPU time of this thread, which other load on the machine affects less.
fn cpu_nanos() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes only to `time`.
    let outcome = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(outcome, 0, "a thread knows its CPU time");
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn time(reads: impl FnOnce() -> u64) -> f64 {
    let started = cpu_nanos();
    let bytes = reads();
    let elapsed = cpu_nanos() - started;
    assert_eq!(bytes, READS * DOCUMENT_BYTES as u64);
    elapsed / READS as f64
}

fn read_ours(view: &dyn View, round: usize, records: u64) -> f64 {
    let mut buffer = Vec::new();
    time(|| {
        let read = |number| {
            view.record(RECORDS, RecordId(number), &mut buffer).expect("readable").expect("present");
            buffer.len() as u64
        };
        numbers(round, records).map(read).sum()
    })
}

/// Called with a document that LMDB lends, before it is copied.
type Inspect = fn(&[u8]);

fn read_raw(
    database: Database<Bytes, Bytes>,
    reading: &RoTxn<'_>,
    inspect: Inspect,
    round: usize,
    records: u64,
) -> f64 {
    let mut buffer = Vec::new();
    time(|| {
        let read = |number: u64| {
            let value = database.get(reading, &number.to_be_bytes()).expect("readable").expect("present");
            inspect(&value[HEADER_BYTES..]);
            buffer.clear();
            buffer.extend_from_slice(&value[HEADER_BYTES..]);
            buffer.len() as u64
        };
        numbers(round, records).map(read).sum()
    })
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    let records = std::env::args().nth(1).map_or(300_000, |records| records.parse().expect("a number of records"));
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open_store(directory.path());
    fill_store(&store, records);

    let raw_directory = tempfile::tempdir().expect("temporary directory");
    // SAFETY: no other process or thread opens the file.
    let env = unsafe { EnvOpenOptions::new().map_size(1 << 38).max_dbs(8).open(raw_directory.path()) }.expect("opens");
    let mut writing = env.write_txn().expect("begins");
    let database: Database<Bytes, Bytes> = env.create_database(&mut writing, Some("records")).expect("made");
    for number in 1..=records {
        let value = [vec![0; HEADER_BYTES], document(number)].concat();
        database.put_with_flags(&mut writing, PutFlags::APPEND, &number.to_be_bytes(), &value).expect("put");
    }
    writing.commit().expect("commits");
    let reading = env.read_txn().expect("begins");

    let verify: Inspect = |document| {
        std::hint::black_box(bunko_checksum::crc32c(document));
    };
    let contenders: [(&str, &dyn Fn(usize) -> f64); 3] = [
        ("raw LMDB", &|round| read_raw(database, &reading, |_| {}, round, records)),
        ("raw LMDB and a checksum", &|round| read_raw(database, &reading, verify, round, records)),
        ("mmap", &|round| read_ours(store.latest(), round, records)),
    ];
    let mut figures = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        // The contenders take turns in coming first, and the first round warms all of them.
        for turn in 0..contenders.len() {
            let contender = (round + turn) % contenders.len();
            let figure = contenders[contender].1(round);
            if round > 0 {
                figures[contender].push(figure);
            }
        }
    }
    let medians = figures.map(median);
    println!("{records} records of {DOCUMENT_BYTES} bytes, median of {} rounds of {READS} reads", ROUNDS - 1);
    for ((name, _), nanos) in contenders.iter().zip(medians) {
        println!("{name}: {nanos:.0} ns, {:.2} of raw", nanos / medians[0]);
    }
    store.close().expect("closes");
}
