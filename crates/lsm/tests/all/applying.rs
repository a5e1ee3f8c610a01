//! CPU time of a secondary for each document, beside that of the primary's storage; run on request, on any machine:
//! `cargo test --release -p bunko-lsm --test all applying -- --ignored --nocapture`.

use bunko_lsm::{Compression, LsmOptions};
use bunko_store::{Batch, EngineTable, KeyspaceId, Lsn, Presence, RecordId, Store, StoreOptions};

const DOCUMENTS: u64 = 200_000;
const DOCUMENT_BYTES: usize = 300;
const RECORDS: KeyspaceId = KeyspaceId(1);
const PRIMARY: KeyspaceId = KeyspaceId(2);
const INDEX: KeyspaceId = KeyspaceId(3);

fn table() -> EngineTable {
    EngineTable::only(bunko_lsm::kind(LsmOptions { cache_bytes: 8 << 20, compression: Compression::Lz4 }))
}

/// Nanoseconds that this thread has run.
fn thread_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}

fn measured(work: impl FnOnce()) -> u64 {
    let before = thread_ns();
    work();
    (thread_ns() - before) / DOCUMENTS
}

fn write(store: &Store, per_batch: u64) {
    for first in (0..DOCUMENTS).step_by(per_batch as usize) {
        let mut batch = Batch::new();
        for id in first..first + per_batch {
            let key = id.to_be_bytes();
            batch.insert_record(RECORDS, RecordId(id + 1), vec![7; DOCUMENT_BYTES]);
            batch.put_primary_key(PRIMARY, &key, RecordId(id + 1), Presence::New);
            batch.put_key(INDEX, &(id.wrapping_mul(2_654_435_761)).to_be_bytes(), RecordId(id + 1));
        }
        store.commit(&batch).expect("committed");
    }
}

#[test]
#[ignore = "prints figures"]
fn applying() {
    for per_batch in [1, 100] {
        let directories = [(); 2].map(|()| tempfile::tempdir().expect("temporary directory"));
        let primary = Store::open(directories[0].path(), StoreOptions::at_rest(), table()).expect("opens");
        let secondary = Store::open_member(directories[1].path(), StoreOptions::at_rest(), table(), Lsn(0));
        let secondary = secondary.expect("opens");
        let writing = measured(|| write(&primary, per_batch));
        let end = Lsn(primary.last_position().end);
        primary.write(Lsn(end.0 - 1)).expect("written");
        let mut pieces = Vec::new();
        let mut reader = primary.read_raw_log(secondary.places().start, u64::MAX).expect("there");
        while reader.position() < end {
            let mut piece = Vec::new();
            reader.read(1 << 20, &mut piece).expect("readable");
            pieces.push(piece);
        }
        let appending = measured(|| {
            for piece in &pieces {
                secondary.append_raw(secondary.last_position(), piece).expect("appended");
            }
        });
        secondary.set_committed(end);
        let applying = measured(|| assert_eq!(secondary.apply_committed().expect("applied"), end));
        println!("{per_batch:3} a batch: primary {writing} ns, secondary {appending} + {applying} ns a document");
        secondary.close().and(primary.close()).expect("closes");
    }
}
