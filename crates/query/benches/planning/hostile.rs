//! Measures the planning of filters that would take long to plan.

use super::hostile_filters::{self, Hostile, INDEXES};
use super::{inserted, processor_ns};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Collection, IndexSpec, Namespace};
use bunko_operation::OperationContext;
use bunko_query::{FindQuery, QueryScope, plan};
use bunko_testkit::shell;
use std::hint::black_box;
use std::sync::Arc;

const DOCUMENTS: i32 = 2_000;
/// Times that each filter is planned; the fastest counts.
const ROUNDS: usize = 3;

fn parsed(text: &str) -> DocumentBuf {
    shell::parse_document(text).expect("a document")
}

/// A collection with these indexes. Some fields hold few values, so that estimates have a choice.
fn filled(catalog: &Catalog, name: &str, hostile: &Hostile) -> Arc<Collection> {
    let namespace = Namespace::new("test", name).expect("a valid name");
    let unlimited = OperationContext::unlimited();
    let collection = catalog.collection_or_create(&namespace, &*unlimited).expect("created");
    let spec = |number: usize| {
        let mut spec = DocumentBuf::new().with("key", &parsed(&(hostile.indexes)(number)));
        spec.append("name", format!("index{number}").as_str());
        spec.extend(parsed(hostile.options).as_ref());
        IndexSpec::parse(spec.as_ref()).expect("a specification")
    };
    let specs: Vec<IndexSpec> = (0..INDEXES).map(spec).collect();
    catalog.create_indexes(&collection, &specs, &*unlimited).expect("built");
    inserted(
        catalog,
        &namespace,
        (0..DOCUMENTS).map(|number| {
            DocumentBuf::new().with("_id", number).with("a", number % 50).with("b", number).with("f1", number % 7)
        }),
    );
    collection
}

/// Prints the processor time of parsing and simplifying each filter, and of making and opening its plan.
pub fn measure(catalog: &Catalog) {
    let only = std::env::var("ONLY").unwrap_or_default();
    for (number, hostile) in hostile_filters::all().enumerate().filter(|(_, hostile)| hostile.name.contains(&only)) {
        let collection = filled(catalog, &format!("hostile{number}"), &hostile);
        let find = parsed(&hostile.find);
        let (mut parsing, mut planning) = (u64::MAX, u64::MAX);
        let mut is_stopped = false;
        for _ in 0..ROUNDS {
            let began = processor_ns();
            let query = query_of(&find);
            let between = processor_ns();
            let plan = black_box(plan(&collection, query).expect("a plan"));
            is_stopped = plan.is_stopped();
            drop(black_box(plan.open().expect("opened")));
            (parsing, planning) = (parsing.min(between - began), planning.min(processor_ns() - between));
        }
        let ms = |nanoseconds: u64| nanoseconds as f64 / 1_000_000.0;
        let end = if is_stopped { ", stopped" } else { "" };
        println!("{}: {:.1} ms to parse, {:.1} ms to plan and open{end}", hostile.name, ms(parsing), ms(planning));
    }
}

fn query_of(find: &DocumentBuf) -> FindQuery {
    let part = |name| find.as_ref().get(name).and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let scope = Arc::new(QueryScope::new(0, OperationContext::unlimited()));
    let mut query = FindQuery::new(part("filter"), scope).expect("a filter");
    query.simplify();
    query.set_sort(part("sort")).expect("a sort");
    query.hint = find.as_ref().get("hint").and_then(|hint| bunko_query::Hint::parse(hint).expect("a hint"));
    query.limit = find.as_ref().get("limit").map(|_| 10);
    query
}
