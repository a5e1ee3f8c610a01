//! Measures the processor time of planning a find: `cargo bench -p bunko-query --bench planning`. `ONLY` selects hostile
//! filters by a part of their name.

#![forbid(unsafe_code)]

mod hostile;
#[path = "../../tests/all/hostile_filters.rs"]
mod hostile_filters;

use bunko_bson::DocumentBuf;
use bunko_catalog::{Catalog, Collection, IndexSpec, Namespace, Order};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_operation::OperationContext;
use bunko_query::{FindQuery, QueryScope, plan};
use bunko_store::{Store, StoreOptions};
use std::borrow::Cow;
use std::hint::black_box;
use std::sync::Arc;

const DOCUMENTS: i32 = 20_000;
const PLANS: u32 = 20_000;
const FIELDS: usize = 20;

/// Processor time of this thread, in nanoseconds. Other programs on the machine do not affect it.
/// Source: Linux, Documentation/scheduler/sched-stats.
fn processor_ns() -> u64 {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux kernel with scheduler statistics");
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// A collection whose fields `f0` and so on have ever more distinct values, with indexes on the first ones.
fn filled(catalog: &Catalog, name: &str, indexes: usize) -> Arc<Collection> {
    let namespace = Namespace::new("test", name).expect("a valid name");
    let unlimited = OperationContext::unlimited();
    let collection = catalog.collection_or_create(&namespace, &*unlimited).expect("created");
    let specs: Vec<IndexSpec> = (0..indexes)
        .map(|field| {
            let key = DocumentBuf::new().with(&format!("f{field}"), 1_i32);
            let spec = DocumentBuf::new().with("key", &key).with("name", format!("f{field}_1").as_str());
            IndexSpec::parse(spec.as_ref()).expect("a specification")
        })
        .collect();
    catalog.create_indexes(&collection, &specs, &*unlimited).expect("built");
    let document = |number: i32| {
        (0..FIELDS as i32).fold(DocumentBuf::new().with("_id", number), |document, field| {
            document.with(&format!("f{field}"), number % (2 << field.min(14)))
        })
    };
    inserted(catalog, &namespace, (0..DOCUMENTS).map(document));
    collection
}

/// Inserts documents, a thousand at a time.
fn inserted(catalog: &Catalog, namespace: &Namespace, documents: impl Iterator<Item = DocumentBuf>) {
    let documents: Vec<DocumentBuf> = documents.collect();
    for some in documents.chunks(1_000) {
        let bytes: Vec<_> = some.iter().map(|document| Cow::Borrowed(document.as_ref().as_bytes())).collect();
        catalog.insert(namespace, &bytes, Order::Ordered, &*OperationContext::unlimited()).expect("inserted");
    }
}

fn main() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let engines = bunko_engines::table(&ENGINES[0], &EngineOptions::default());
    let store = Store::open(directory.path(), StoreOptions::at_rest(), engines).expect("opens");
    let catalog = Catalog::open(store, Box::new(|| [7; 16])).expect("an empty catalog");
    measure_usual(&catalog);
    hostile::measure(&catalog);
}

/// Prints the processor time of planning filters as applications send them.
fn measure_usual(catalog: &Catalog) {
    let (one, many) = (filled(catalog, "one", 1), filled(catalog, "many", FIELDS));
    let two = DocumentBuf::new().with("f0", 1_i32).with("f14", 7_i32);
    let eight = (0..8).fold(DocumentBuf::new(), |filter, field| filter.with(&format!("f{field}"), 1_i32));
    let cases = [
        ("one index", &one, DocumentBuf::new().with("f0", 1_i32)),
        ("twenty indexes, one serves", &many, DocumentBuf::new().with("f7", 1_i32)),
        ("twenty indexes, two are estimated", &many, two),
        ("twenty indexes, eight are estimated", &many, eight),
    ];
    for (name, collection, filter) in &cases {
        let query = || {
            let scope = Arc::new(QueryScope::new(0, OperationContext::unlimited()));
            Arc::new(FindQuery::new(filter.as_ref(), scope).expect("a filter"))
        };
        let (planned, opened) = (query(), query());
        plan(collection, Arc::clone(&opened)).expect("a plan").open().expect("opened");
        let began = processor_ns();
        for _ in 0..PLANS {
            black_box(plan(collection, Arc::clone(black_box(&planned))).expect("a plan"));
        }
        let between = processor_ns();
        for _ in 0..PLANS {
            let plan = plan(collection, Arc::clone(black_box(&opened))).expect("a plan");
            black_box(plan.open().expect("opened"));
        }
        let steps = plan(collection, planned).expect("a plan").planning_steps();
        let each = |nanoseconds: u64| nanoseconds as f64 / f64::from(PLANS) / 1_000.0;
        println!(
            "{name}: {:.2} us to plan in {steps} steps, {:.2} us to plan, choose and open",
            each(between - began),
            each(processor_ns() - between)
        );
    }
}
