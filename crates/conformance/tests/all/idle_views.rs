//! Open views cost memory for the versions that they see, not for those written meanwhile.

use bunko_conformance::document::Document;
use bunko_conformance::roster;
use bunko_conformance::subject::Subject;
use bunko_store::{Batch, KeyspaceId, RecordId, Store, View};

const RECORDS: KeyspaceId = KeyspaceId(5);
const INDEX: KeyspaceId = KeyspaceId(6);
const ROUNDS: u32 = 2000;
/// Less than a tenth of the memory of all versions from the rounds.
const GROWTH_BYTES_MAX: u64 = 16 << 10;

/// Replaces the only document, and the record of the only key.
fn write(store: &Store, round: u32) {
    let mut batch = Batch::new();
    let document = Document { seed: round, length: 200 }.bytes();
    match store.latest().record(RECORDS, RecordId(1), &mut Vec::new()).expect("readable") {
        Some(old) => batch.replace_record(RECORDS, RecordId(1), document, old),
        None => batch.insert_record(RECORDS, RecordId(1), document),
    }
    batch.put_key(INDEX, b"key", RecordId(u64::from(round)));
    store.commit(&batch).expect("committed");
}

fn memory_bytes(store: &Store) -> u64 {
    let statistics = store.statistics();
    statistics.unflushed_bytes + statistics.engines_bytes
}

fn assert_sees(view: &dyn View, round: u32) {
    let mut document = Vec::new();
    view.record(RECORDS, RecordId(1), &mut document).expect("readable").expect("there");
    assert_eq!(document, Document { seed: round, length: 200 }.bytes());
    assert_eq!(view.key(INDEX, b"key").expect("readable"), Some(RecordId(u64::from(round))));
}

#[test]
fn repeated_writes_beside_idle_views_do_not_pile_up() {
    roster::each_engine(|own| {
        let mut subject = Subject::new(own);
        let store = std::sync::Arc::clone(subject.store());
        write(&store, 1);
        let old = store.snapshot();
        for round in 2..20 {
            write(&store, round);
        }
        let middle = store.snapshot();
        write(&store, 20);
        let before = memory_bytes(&store);
        for round in 21..ROUNDS {
            write(&store, round);
        }
        let growth = memory_bytes(&store).saturating_sub(before);
        assert!(growth < GROWTH_BYTES_MAX, "{}: {growth} bytes", own.name);
        assert_sees(&old, 1);
        assert_sees(&middle, 19);
        assert_sees(store.latest(), ROUNDS - 1);
        drop((old, middle, store));
        subject.close();
    });
}
