//! Writers that outrun the flush wait, but not on threads that serve other operations.

use crate::alone;
use bunko_bson::DocumentBuf;
use bunko_catalog::{Catalog, Namespace, Order};
use bunko_engines::EngineOptions;
use bunko_operation::{OperationContext, RunOn};
use bunko_store::{Lag, STALL, STALLS_MAX, StillFiles, Store, StoreOptions};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Writers are behind at four times this many bytes, and far behind at eight times.
const UNFLUSHED_BYTES_MAX: u64 = 4000;

fn insert(catalog: &Catalog, id: i32, operation: &OperationContext) -> Duration {
    let namespace = Namespace::new("db", "c").expect("valid");
    let document = DocumentBuf::new().with("_id", id);
    let documents = [Cow::Borrowed(document.as_ref().as_bytes())];
    let began = Instant::now();
    catalog.insert(&namespace, &documents, Order::Ordered, operation).expect("inserted");
    began.elapsed()
}

#[test]
fn a_writer_that_is_ahead_of_the_flush_holds_no_thread_that_serves_others() {
    let _alone = alone();
    let engine = bunko_engines::find("lsm").expect("an engine of the table");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = StoreOptions { unflushed_bytes_max: UNFLUSHED_BYTES_MAX, ..StoreOptions::at_rest() };
    let table = bunko_engines::table(engine, &EngineOptions::default());
    let store = Store::open(directory.path(), options, table).expect("opens");
    let catalog = Catalog::open(Arc::clone(&store), Box::new(|| [7; 16])).expect("opens");
    let still = StillFiles::hold(&store);
    let own = OperationContext::unlimited();
    let mut ids = 1..;
    let mut next = || ids.next().expect("without end");
    while store.lag() == Lag::None {
        insert(&catalog, next(), &own);
    }
    assert_eq!(store.lag(), Lag::Behind);
    let longest = STALL * STALLS_MAX as u32;
    let shared = OperationContext::unlimited();
    shared.enter(RunOn::SharedThread, Instant::now());
    let quickest = (0..3).map(|_| insert(&catalog, next(), &shared)).min();
    assert!(quickest < Some(longest / 4), "{quickest:?}");
    assert_eq!(store.lag(), Lag::Behind);
    assert!(insert(&catalog, next(), &own) >= longest);
    // Far behind, writers wait on any thread, because memory is finite.
    while store.lag() == Lag::Behind {
        insert(&catalog, next(), &shared);
    }
    assert!(insert(&catalog, next(), &shared) >= longest);
    drop(still);
    store.checkpoint().expect("checkpoint");
    assert_eq!(store.lag(), Lag::None);
    assert!(store.statistics().stalled_writes >= 2);
    store.close().expect("closed");
}
