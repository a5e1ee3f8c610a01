//! Measures the processor time of two indexes that are read together, beside one of them alone, by the size of the
//! documents: `cargo bench -p bunko-query --bench intersections`.

#![forbid(unsafe_code)]

use bunko_bson::DocumentBuf;
use bunko_catalog::{Catalog, Collection, IndexSpec, Namespace, Order};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_operation::OperationContext;
use bunko_query::{FindQuery, Hint, Plan, QueryScope, plan};
use bunko_store::{Store, StoreOptions};
use std::borrow::Cow;
use std::hint::black_box;
use std::sync::Arc;

const DOCUMENTS: i32 = 100_000;
const ROUNDS: u32 = 20;
const SIZES: [usize; 5] = [100, 400, 800, 1_600, 3_200];

/// Processor time of this thread, in nanoseconds. Other programs on the machine do not affect it.
/// Source: Linux, Documentation/scheduler/sched-stats.
fn processor_ns() -> u64 {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux kernel with scheduler statistics");
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Documents of about `size` bytes; `a` has ten values, `b` eleven, and each pair of values is as frequent as every
/// other.
fn filled(catalog: &Catalog, size: usize) -> Arc<Collection> {
    let namespace = Namespace::new("test", &format!("c{size}")).expect("a valid name");
    let unlimited = OperationContext::unlimited();
    let collection = catalog.collection_or_create(&namespace, &*unlimited).expect("created");
    let spec = |field: &str| {
        let spec = DocumentBuf::new().with("key", &DocumentBuf::new().with(field, 1_i32)).with("name", field);
        IndexSpec::parse(spec.as_ref()).expect("a specification")
    };
    catalog.create_indexes(&collection, &["a", "b"].map(spec), &*unlimited).expect("built");
    let text: String = (0..size).map(|at| char::from(b'a' + (at * at % 23) as u8)).collect();
    for start in (0..DOCUMENTS).step_by(1_000) {
        let document = |number: i32| {
            let numbered = DocumentBuf::new().with("_id", number).with("a", number % 10).with("b", number / 10 % 11);
            numbered.with("text", text.as_str())
        };
        let documents: Vec<DocumentBuf> = (start..start + 1_000).map(document).collect();
        let bytes: Vec<_> = documents.iter().map(|document| Cow::Borrowed(document.as_ref().as_bytes())).collect();
        catalog.insert(&namespace, &bytes, Order::Ordered, &*unlimited).expect("inserted");
    }
    collection
}

/// Microseconds of a run, and the number of results.
fn run(plan: &Plan) -> (f64, u32) {
    let began = processor_ns();
    let mut results = 0;
    for _ in 0..ROUNDS {
        let mut execution = plan.open().expect("opened");
        while black_box(execution.next().expect("read")).is_some() {
            results += 1;
        }
    }
    ((processor_ns() - began) as f64 / f64::from(ROUNDS) / 1_000.0, results / ROUNDS)
}

fn main() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let engines = bunko_engines::table(&ENGINES[0], &EngineOptions::default());
    let store = Store::open(directory.path(), StoreOptions::at_rest(), engines).expect("opens");
    let catalog = Catalog::open(store, Box::new(|| [7; 16])).expect("an empty catalog");
    for size in SIZES {
        let collection = filled(&catalog, size);
        let query = |hint: Option<&str>| {
            let scope = Arc::new(QueryScope::new(0, OperationContext::unlimited()));
            let filter = DocumentBuf::new().with("a", 1_i32).with("b", 2_i32);
            let mut query = FindQuery::new(filter.as_ref(), scope).expect("a filter");
            query.hint = hint.map(|name| Hint::Name(name.to_owned()));
            query
        };
        let alone = plan(&collection, query(Some("b"))).expect("a plan");
        let both = plan(&collection, query(None)).expect("a plan").intersections().expect("planned").remove(0);
        for round in 1..=2 {
            let ((alone, results), (both, same)) = (run(&alone), run(&both));
            assert_eq!(results, same, "the same documents");
            println!("{size} bytes, round {round}: one index {alone:.0} us, both {both:.0} us, {results} results");
        }
    }
}
