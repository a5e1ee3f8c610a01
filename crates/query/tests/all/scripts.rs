//! Runs `tests/scripts` on every engine: the answers of finds and their plans, in readable files.
//!
//! - `collection`: starts with an empty collection.
//! - `insert`: documents, one per line.
//! - `index`: key patterns, one per line, each followed by its options if there are any.
//! - `find`: the fields of a find command; prints the documents.
//! - `plan`: the fields of a find; prints the winning plan, one stage per line.
//! - `rejected`: the fields of a find; prints the plans that lost a trial.
//! - `because`: the fields of a find; prints the unused indexes, each with the reason.
//! - `fill`: a number of documents, then a document of moduli: each field of the n-th document is n modulo its modulus;
//!   other values stay.
//! - `estimates`: the fields of a find; prints the stages with estimates and what was found, and the rejected plans.
//! - `cache`: prints the collection's plan cache.
//! - `run`: the fields of a find; prints the stages with their statistics.
//! - `explain`: the fields of a find; prints the whole reply of verbosity `executionStats`.
//! - `missing`: as `explain`, for a collection that does not exist.
//! - `count`, `count-run`: the fields of a count; prints the number, or the stages with their statistics.
//! - `distinct`: a path, then the fields of a find; `distinct-run` prints the stages with their statistics.

use crate::temporary::{self, Database, document, find_query};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Collection;
use bunko_engines::ENGINES;
use bunko_errors::{Failure, Result};
use bunko_operation::{Interruption, MemoryLimits, OperationContext};
use bunko_query::{
    CountPlan, Explained, FindQuery, Origin, QueryScope, Verbosity, count, distinct, distinct_query, explain_count,
    explain_plan, plan,
};
use bunko_testkit::{script, shell};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// The name of each script's collection.
const NAME: &str = "c";

#[test]
fn scripts() {
    for engine in ENGINES {
        eprintln!("engine {}", engine.name);
        let database = Database::open(engine);
        script::run("tests/scripts", |case| {
            if case.directive == "collection" {
                // All files share one name, since the file system decides the order in which they run.
                database
                    .catalog
                    .drop_collection(&temporary::namespace(NAME), &*OperationContext::unlimited())
                    .expect("dropped");
                return database.collection(NAME).namespace().to_string();
            }
            run(&database, NAME, &case.directive, &case.input)
                .unwrap_or_else(|failure| format!("{}: {}", failure.code().name(), failure.message()))
        });
        if std::env::var_os("REWRITE").is_some() {
            // The other engines must give the same answers, and must not rewrite the file.
            break;
        }
    }
}

fn run(database: &Database, name: &str, directive: &str, input: &str) -> Result<String> {
    let mut lines = input.lines();
    if directive == "insert" {
        lines.try_for_each(|line| database.insert(name, line))?;
        return Ok(String::new());
    }
    if directive == "fill" {
        let count: i64 = lines.next().and_then(|count| count.parse().ok()).expect("a number");
        let moduli = document(lines.next().expect("moduli"));
        for number in 0..count {
            let fields = moduli.as_ref().iter().map(|field| match bunko_bson::number::as_i64_exact(field.value) {
                Some(modulus) => format!("{}: {}", field.name, number % modulus),
                None => format!("{}: {}", field.name, shell::print(field.value)),
            });
            database.insert(name, &format!("{{_id: {number}, {}}}", fields.collect::<Vec<_>>().join(", ")))?;
        }
        return Ok(String::new());
    }
    if directive == "index" {
        for line in lines {
            let (key, options) = line.split_once("} {").map_or((line.to_owned(), "{}".to_owned()), |(key, options)| {
                (format!("{key}}}"), format!("{{{options}"))
            });
            database.index(name, &document(&key), &document(&options))?;
        }
        return Ok(String::new());
    }
    let path = if directive.starts_with("distinct") { lines.next().expect("a path") } else { "" };
    let find = document(&lines.collect::<Vec<_>>().join(" "));
    let query = find_query(find.as_ref())?;
    let collection = database.collection(name);
    Ok(match directive {
        "find" => found(&collection, query)?,
        "plan" => tree(winning(&explained(&collection, query, Verbosity::QueryPlanner)?)),
        "rejected" => rejected(&explained(&collection, query, Verbosity::QueryPlanner)?, tree),
        "because" => because(&explained(&collection, query, Verbosity::QueryPlanner)?),
        "estimates" => {
            let reply = explained(&collection, query, Verbosity::ExecutionStats)?;
            format!("{}rejected\n{}", estimates(executed(&reply)), rejected(&reply, estimates))
        }
        "cache" => cached(&collection),
        "run" => tree(executed(&explained(&collection, query, Verbosity::ExecutionStats)?)),
        "explain" => pretty(explained(&collection, query, Verbosity::ExecutionStats)?.as_ref()),
        "missing" => {
            pretty(explain_plan(explain_of("test.missing", &query, Verbosity::ExecutionStats), None, None).as_ref())
        }
        "count" => count(&collection, query)?.to_string(),
        "count-run" => tree(executed(&explained_count(&collection, find.as_ref())?)),
        "distinct" => shell::print(ValueRef::Array(distinct(&collection, path, query)?.as_ref())),
        "distinct-run" => {
            let query = distinct_query(query, path);
            tree(executed(&explained(&collection, query, Verbosity::ExecutionStats)?))
        }
        unknown => panic!("unknown directive {unknown}"),
    })
}

fn found(collection: &Arc<Collection>, query: FindQuery) -> Result<String> {
    let mut execution = plan(collection, query)?.open()?;
    let mut lines = Vec::new();
    while let Some(document) = execution.next()? {
        lines.push(shell::print(ValueRef::Document(document)));
    }
    Ok(lines.join("\n"))
}

fn explain_of<'a>(namespace: &'a str, query: &'a FindQuery, verbosity: Verbosity) -> Explained<'a> {
    Explained { namespace, query, verbosity, elapsed: Duration::ZERO, failure: None, origin: Origin::Query }
}

fn explained(collection: &Arc<Collection>, query: FindQuery, verbosity: Verbosity) -> Result<DocumentBuf> {
    let plan = plan(collection, query)?.contested()?;
    let mut execution = plan.open()?;
    while verbosity.runs() && execution.next()?.is_some() {}
    let namespace = collection.namespace();
    Ok(explain_plan(explain_of(namespace.as_str(), plan.query(), verbosity), Some(&plan), Some(&execution)))
}

fn rejected(reply: &DocumentBuf, print: fn(DocumentRef<'_>) -> String) -> String {
    let planner = reply.as_ref().get("queryPlanner").and_then(ValueRef::as_document).expect("a planner's part");
    let plans = planner.get("rejectedPlans").and_then(ValueRef::as_array).expect("an array");
    plans.iter().filter_map(ValueRef::as_document).map(print).collect::<Vec<_>>().join("or\n")
}

fn because(reply: &DocumentBuf) -> String {
    let planner = reply.as_ref().get("queryPlanner").and_then(ValueRef::as_document).expect("a planner's part");
    let reasons = planner.get("rejectedBecause").and_then(ValueRef::as_document);
    let line = |index: &str, reason: ValueRef<'_>| format!("{index}: {}", reason.as_str().expect("a sentence"));
    reasons.into_iter().flatten().map(|reason| line(reason.name, reason.value)).collect::<Vec<_>>().join("\n")
}

/// For each cached plan: the query that it came from, its index, and whether it is active.
fn cached(collection: &Collection) -> String {
    let mut lines = Vec::new();
    for plan in collection.plan_cache().all() {
        let facts = plan.facts.as_ref().as_ref();
        let of = |name| facts.get(name).and_then(ValueRef::as_document).expect(name);
        let query = of("createdFromQuery").get("query").expect("a query");
        let state = if plan.is_active { "active" } else { "on trial" };
        lines.push(format!("{} {state}, {} works:\n{}", shell::print(query), plan.works, tree(of("cachedPlan"))));
    }
    lines.join("")
}

fn explained_count(collection: &Arc<Collection>, find: DocumentRef<'_>) -> Result<DocumentBuf> {
    let counting = CountPlan::new(collection, find_query(find)?)?;
    let counted = counting.run()?;
    let query = find_query(find)?;
    let of = explain_of("test.c", &query, Verbosity::ExecutionStats);
    Ok(explain_count(of, Some(&counting), Some(&counted)))
}

fn part<'d>(document: &'d DocumentBuf, outer: &str, inner: &str) -> DocumentRef<'d> {
    let outer = document.as_ref().get(outer).and_then(ValueRef::as_document).expect(outer);
    outer.get(inner).and_then(ValueRef::as_document).expect(inner)
}

fn winning(reply: &DocumentBuf) -> DocumentRef<'_> {
    part(reply, "queryPlanner", "winningPlan")
}

fn executed(reply: &DocumentBuf) -> DocumentRef<'_> {
    part(reply, "executionStats", "executionStages")
}

/// One line per stage: its name, then its notable fields.
fn tree(stage: DocumentRef<'_>) -> String {
    let mut text = String::new();
    put_tree(&mut text, stage, 0, &|name| !NOT_SHOWN.contains(&name) && !name.ends_with("Estimate"));
    text
}

/// As [`tree`], with only the index, the estimates, and the numbers of a run.
fn estimates(stage: DocumentRef<'_>) -> String {
    let mut text = String::new();
    put_tree(&mut text, stage, 0, &|name| {
        name.ends_with("Estimate") && name != "executionTimeMillisEstimate"
            || matches!(name, "indexName" | "keysExamined" | "docsExamined" | "nReturned")
    });
    text
}

/// Fields that are equal in all plans of these scripts, or that follow from the fields shown.
const NOT_SHOWN: &[&str] = &[
    "isCached",
    "stage",
    "inputStage",
    "inputStages",
    "keyPattern",
    "multiKeyPaths",
    "isSparse",
    "isPartial",
    "indexVersion",
    "isUnique",
    "memLimit",
    "type",
    "estimatesMetadata",
    "needYield",
    "saveState",
    "restoreState",
    "advanced",
    "alreadyHasObj",
    "usedDisk",
    "spills",
    "spilledBytes",
    "spilledDataStorageSize",
    "spilledRecords",
    "totalDataSizeSorted",
];

fn put_tree(text: &mut String, stage: DocumentRef<'_>, depth: usize, is_shown: &dyn Fn(&str) -> bool) {
    let name = stage.get("stage").and_then(ValueRef::as_str).expect("a name");
    write!(text, "{}{name}", "  ".repeat(depth)).expect("text");
    for element in stage.iter().filter(|element| is_shown(element.name)) {
        let is_dull = matches!((element.name, element.value), ("isMultiKey", ValueRef::Boolean(false)))
            || matches!((element.name, element.value), ("direction", ValueRef::String("forward")));
        if !is_dull {
            write!(text, " {}={}", element.name, shell::print(element.value)).expect("text");
        }
    }
    text.push('\n');
    if let Some(input) = stage.get("inputStage").and_then(ValueRef::as_document) {
        put_tree(text, input, depth + 1, is_shown);
    }
    if let Some(inputs) = stage.get("inputStages").and_then(ValueRef::as_array) {
        inputs.iter().filter_map(ValueRef::as_document).for_each(|input| put_tree(text, input, depth + 1, is_shown));
    }
}

/// A document with each nested document on its own lines.
fn pretty(document: DocumentRef<'_>) -> String {
    let mut text = String::new();
    put_pretty(&mut text, document, 0);
    text
}

fn put_pretty(text: &mut String, document: DocumentRef<'_>, depth: usize) {
    for element in document {
        write!(text, "{}{}:", "  ".repeat(depth), element.name).expect("text");
        match element.value {
            ValueRef::Document(inner) if !inner.is_empty() => {
                text.push('\n');
                put_pretty(text, inner, depth + 1);
            }
            value => writeln!(text, " {}", shell::print(value)).expect("text"),
        }
    }
}

#[test]
fn executions_can_wait_in_a_cursor() {
    fn is_sendable<T: Send + 'static>() {}
    is_sendable::<bunko_query::Execution>();
    is_sendable::<bunko_query::Plan>();
}

struct Killed;

impl Interruption for Killed {
    fn reason(&self) -> Option<Failure> {
        Some(Failure::new(bunko_errors::ErrorCode::INTERRUPTED, "operation was interrupted"))
    }
}

#[test]
fn interruptions_and_drops_end_an_execution() {
    let database = Database::open(&ENGINES[0]);
    for number in 0..300 {
        database.insert("c", &format!("{{_id: {number}}}")).expect("inserted");
    }
    let collection = database.collection("c");
    let run_out = |operation: Arc<OperationContext>| {
        let mut query = find_query(document("{filter: {a: {$exists: true}}}").as_ref()).expect("a query");
        query.scope = Arc::new(QueryScope::new(0, operation));
        let mut execution = plan(&collection, query).expect("a plan").open().expect("opens");
        let outcome = execution.next().map(|document| document.is_some()).map_err(|failure| failure.code());
        (outcome, execution.statistics().docs_examined)
    };
    assert_eq!(run_out(OperationContext::unlimited()), (Ok(false), 300));
    let killed = OperationContext::new(Arc::new(Killed), MemoryLimits::none());
    assert_eq!(run_out(killed), (Err(bunko_errors::ErrorCode::INTERRUPTED), 15));
    database.catalog.drop_collection(&temporary::namespace("c"), &*OperationContext::unlimited()).expect("dropped");
    assert_eq!(run_out(OperationContext::unlimited()).0, Err(bunko_errors::ErrorCode::QUERY_PLAN_KILLED));
}

#[test]
fn a_plan_survives_the_loss_of_its_index_and_the_first_array_in_it() {
    let database = Database::open(&ENGINES[0]);
    database.insert("c", "{_id: 1, a: 1}").expect("inserted");
    database.index("c", &document("{a: 1}"), &DocumentBuf::new()).expect("built");
    let collection = database.collection("c");
    let filter = "{filter: {a: {$gt: 1, $lt: 5}}}";
    let before = plan(&collection, find_query(document(filter).as_ref()).expect("a query")).expect("a plan");
    let ids = || {
        let mut execution = before.open().expect("opens");
        let mut ids = Vec::new();
        while let Some((record, _)) = execution.next_record().expect("runs") {
            ids.push(record.0);
        }
        ids.len()
    };
    assert_eq!(ids(), 0);
    // No single element is within the range, but one is above its start and another below its end.
    database.insert("c", "{_id: 2, a: [0, 9]}").expect("inserted");
    assert_eq!(ids(), 1);
    database.catalog.drop_indexes(&collection, &["a_1"], &*OperationContext::unlimited()).expect("dropped");
    assert_eq!(ids(), 1);
}

#[test]
fn a_kept_plan_is_given_up_where_it_does_too_much() {
    let database = Database::open(&ENGINES[0]);
    for number in 0..600 {
        // Few documents have their own `a`, and few others their own `b`.
        let (a, b) = if number < 20 { (number, 7) } else { (100, number) };
        database.insert("c", &format!("{{_id: {number}, a: {a}, b: {b}}}")).expect("inserted");
    }
    for key in ["{a: 1}", "{b: 1}"] {
        database.index("c", &document(key), &DocumentBuf::new()).expect("built");
    }
    let collection = database.collection("c");
    let run = |filter: &str| {
        let query = find_query(document(&format!("{{filter: {filter}}}")).as_ref()).expect("a query");
        let mut execution = plan(&collection, query).expect("a plan").open().expect("opens");
        let mut found = 0;
        while execution.next().expect("runs").is_some() {
            found += 1;
        }
        (found, execution.statistics().keys_examined)
    };
    let is_in_use = || collection.plan_cache().all().iter().map(|plan| plan.is_active).collect::<Vec<_>>();
    assert_eq!((run("{a: 3, b: 7}"), is_in_use()), ((1, 1), vec![false]));
    assert_eq!((run("{a: 4, b: 7}"), is_in_use()), ((1, 1), vec![true]));
    // By `a` the plan would examine 580 keys.
    assert_eq!((run("{a: 100, b: 200}"), is_in_use()), ((1, 1), vec![true]));
    assert_eq!(run("{a: 100, b: 300}"), (1, 1));
    collection.plan_cache().clear(None);
    assert!(is_in_use().is_empty());
}

#[test]
fn long_plans_are_known_before_they_run() {
    let database = Database::open(&ENGINES[0]);
    for number in 0..2_100 {
        database.insert("c", &format!("{{_id: {number}, k: {}}}", number % 7)).expect("inserted");
    }
    database.index("c", &document("{k: 1}"), &DocumentBuf::new()).expect("built");
    let collection = database.collection("c");
    let is_long = |find: &str| {
        let query = find_query(document(find).as_ref()).expect("a query");
        plan(&collection, query).expect("a plan").is_long(&collection)
    };
    for find in [
        "{filter: {_id: 5}}",
        "{filter: {_id: {$in: [5, 6]}}, sort: {k: 1}}",
        "{limit: 10}",
        "{filter: {k: 5}, skip: 3, limit: 10}",
        "{sort: {k: -1}, limit: 10}",
    ] {
        assert!(!is_long(find), "{find}");
    }
    for find in [
        "{}",
        "{filter: {x: 5}, limit: 1}",
        "{filter: {k: {$gt: 5}}}",
        "{filter: {k: 5, x: 1}, limit: 1}",
        "{sort: {x: -1}, limit: 10}",
        "{skip: 3000, limit: 10}",
    ] {
        assert!(is_long(find), "{find}");
    }
}
