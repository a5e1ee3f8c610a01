//! Whatever the plan, the answer is that of a scan of the collection: random documents, indexes, filters and sorts, on
//! each engine in turn.

mod temporary;

use bunko_bson::{DocumentBuf, StringOrder, ValueRef};
use bunko_catalog::{Collection, Index, index_keys};
use bunko_engines::ENGINES;
use bunko_errors::Result;
use bunko_expression::FieldPath;
use bunko_operation::OperationContext;
use bunko_query::{Distinct, DistinctOf, FindQuery, count, distinct, plan};
use bunko_testkit::shell;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeSet;
use std::sync::Arc;
use temporary::{Database, document, find_query};

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        24 => (0..6_i32).prop_map(|number| number.to_string()),
        2 => Just("2.5".to_owned()),
        3 => prop::sample::select(vec!["'a'", "'ab'", "'abc'", "'b'", "''"]).prop_map(str::to_owned),
        3 => Just("null".to_owned()),
        2 => prop::sample::select(vec!["NaN", "Infinity", "NumberLong(3)", "NumberDecimal('2.5')", "true", "MinKey",
            "MaxKey", "/^ab/", "ISODate('2020-01-01T00:00:00Z')", "BinData(0, 'AQID')", "{}", "[]"])
            .prop_map(str::to_owned),
    ]
}

fn value() -> impl Strategy<Value = String> {
    let nested = prop_oneof![6 => scalar(), 1 => Just("undefined".to_owned())];
    nested.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..4).prop_map(|values| format!("[{}]", values.join(", "))),
            3 => fields(inner),
        ]
    })
}

fn fields(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    vec((prop::sample::select(vec!["b", "b", "b", "c", "c", "0"]), value), 0..3)
        .prop_map(|fields| braced(fields.into_iter().map(|(name, value)| format!("'{name}': {value}"))))
}

fn braced(fields: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

/// Fields `a`, `d` and `e` hold anything, `s` and `t` no arrays, so that their indexes can give an order.
fn stored() -> impl Strategy<Value = String> {
    let any = (prop::sample::select(vec!["a", "a", "a", "d", "d", "e"]), value());
    let pairs = vec((0..6_i32, 0..6_i32), 1..3).prop_map(|pairs| {
        let pairs = pairs.into_iter().map(|(b, c)| format!("{{b: {b}, c: {c}}}"));
        ("a", format!("[{}]", pairs.collect::<Vec<_>>().join(", ")))
    });
    let deep = vec(vec((0..3_i32, 0..3_i32), 0..3), 1..3).prop_map(|elements| {
        let inner = |pairs: Vec<(i32, i32)>| {
            let pairs = pairs.into_iter().map(|(c, d)| format!("{{c: {c}, d: {d}}}"));
            format!("{{b: [{}], c: {{d: 1}}}}", pairs.collect::<Vec<_>>().join(", "))
        };
        match &elements[..] {
            [only] => ("a", inner(only.clone())),
            several => ("a", format!("[{}]", several.iter().cloned().map(inner).collect::<Vec<_>>().join(", "))),
        }
    });
    let plain = (prop::sample::select(vec!["s", "t"]), (0..6_i32).prop_map(|number| number.to_string()));
    vec(prop_oneof![3 => any, 1 => pairs, 1 => deep, 4 => plain], 0..5).prop_map(|fields| {
        let mut names = BTreeSet::new();
        braced(
            fields.into_iter().filter(|(name, _)| names.insert(*name)).map(|(name, value)| format!("{name}: {value}")),
        )
    })
}

fn path() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        5 => Just("a"),
        5 => Just("a.b"),
        3 => Just("a.c"),
        2 => Just("d"),
        3 => Just("s"),
        3 => Just("t"),
        3 => prop::sample::select(vec!["d.b", "e", "a.0", "a.0", "a.b.c", "a.b.c", "a.b.d", "a.0.b", "a.c.d"]),
    ]
}

fn operand() -> impl Strategy<Value = String> {
    prop_oneof![5 => scalar(), 1 => vec(scalar(), 0..3).prop_map(|values| format!("[{}]", values.join(", ")))]
}

fn not_regex() -> impl Strategy<Value = String> {
    operand().prop_filter("a regex cannot be compared", |operand| !operand.contains('/'))
}

fn condition() -> impl Strategy<Value = String> {
    let compare = (prop::sample::select(vec!["$eq", "$gt", "$gte", "$lt", "$lte", "$gte", "$lte"]), not_regex())
        .prop_map(|(op, operand)| format!("{op}: {operand}"));
    let list = (prop::sample::select(vec!["$in", "$in", "$nin", "$all"]), vec(operand(), 0..4))
        .prop_map(|(op, operands)| format!("{op}: [{}]", operands.join(", ")));
    let other = prop::sample::select(vec![
        "$exists: true",
        "$exists: false",
        "$size: 1",
        "$type: 'number'",
        "$mod: [2, 0]",
        "$regex: '^a'",
        "$regex: '^ab.*c'",
        "$ne: null",
        "$ne: 2",
        "$not: {$gt: 2}",
    ])
    .prop_map(str::to_owned);
    let basic = prop_oneof![6 => compare, 3 => list, 2 => other];
    let element =
        vec(basic.clone(), 1..3).prop_map(|conditions| format!("$elemMatch: {}", braced(conditions.into_iter())));
    let object = (
        prop::sample::select(vec!["b", "c", "b.c", "0"]),
        basic.clone(),
        prop::sample::select(vec!["b", "c"]),
        basic.clone(),
    )
        .prop_map(|(one, first, other, second)| {
            format!("$elemMatch: {{'{one}': {{{first}}}, $and: [{{{other}: {{{second}}}}}]}}")
        });
    prop_oneof![10 => basic, 1 => element, 1 => object]
}

fn predicate() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (path(), scalar()).prop_map(|(path, value)| format!("{{'{path}': {value}}}")),
        5 => (path(), condition()).prop_map(|(path, condition)| format!("{{'{path}': {{{condition}}}}}")),
        3 => (path(), -1..6_i32, 0..4_i32).prop_map(|(path, low, width)| {
            format!("{{'{path}': {{$gte: {low}, $lt: {}}}}}", low + width)
        }),
        2 => (prop::sample::select(vec!["s", "t"]), vec(0..6_i32, 2..4)).prop_map(|(path, list)| {
            format!("{{{path}: {{$in: {list:?}}}}}")
        }),
        1 => (0..6_i32, 0..6_i32).prop_map(|(b, c)| format!("{{'a.b': {b}, 'a.c': {c}}}")),
        1 => (0..3_i32, 0..3_i32).prop_map(|(c, d)| format!("{{'a.b.c': {c}, 'a.b.d': {d}}}")),
        1 => (0..3_i32, 0..3_i32).prop_map(|(c, d)| format!("{{'a.b': {{$elemMatch: {{c: {c}, d: {{$lte: {d}}}}}}}}}")),
    ]
}

fn filter() -> impl Strategy<Value = String> {
    let list = |name: &'static str, parts: Vec<String>| format!("{{{name}: [{}]}}", parts.join(", "));
    predicate().prop_recursive(3, 8, 3, move |inner| {
        prop_oneof![
            4 => vec(inner.clone(), 1..4).prop_map(move |parts| list("$and", parts)),
            3 => vec(inner.clone(), 1..4).prop_map(move |parts| list("$or", parts)),
            1 => vec(inner, 1..3).prop_map(move |parts| list("$nor", parts)),
        ]
    })
}

fn pattern() -> impl Strategy<Value = String> {
    let telling = prop::sample::select(vec![
        "{'a.b': 1, 'a.c': 1}",
        "{'a.c': 1, 'a.b': -1}",
        "{'a.b.c': 1, 'a.b.d': 1}",
        "{'a.b.d': 1, 'a.c.d': 1, s: 1}",
        "{s: 1, t: 1}",
        "{s: -1, t: 1}",
    ]);
    prop_oneof![2 => any_pattern(), 1 => telling.prop_map(str::to_owned)]
}

/// Documents with arrays on its paths are refused.
fn hashed_pattern() -> impl Strategy<Value = String> {
    let patterns = [
        "{'$**': 1}",
        "{'a.$**': -1}",
        "{s: 'hashed'}",
        "{t: 'hashed', s: 1}",
        "{s: -1, t: 'hashed'}",
        "{a: 'hashed'}",
    ];
    prop::sample::select(patterns.to_vec()).prop_map(str::to_owned)
}

fn any_pattern() -> impl Strategy<Value = String> {
    vec((path(), prop::bool::ANY), 1..4).prop_map(|parts| {
        let mut paths = BTreeSet::new();
        braced(
            parts
                .into_iter()
                .filter(|(path, _)| paths.insert(*path))
                .map(|(path, ascending)| format!("'{path}': {}", if ascending { 1 } else { -1 })),
        )
    })
}

/// Options of an index, most often none.
fn options() -> impl Strategy<Value = String> {
    let partial = predicate().prop_map(|filter| format!("{{partialFilterExpression: {filter}}}"));
    let implied = prop::sample::select(vec![
        "{partialFilterExpression: {a: {$gte: 2}}}",
        "{partialFilterExpression: {s: {$exists: true}}}",
        "{partialFilterExpression: {$or: [{s: {$lt: 3}}, {a: {$in: [1, 2, 3]}}]}}",
        "{partialFilterExpression: {'a.b': {$lte: 4}, t: {$type: 'int'}}}",
        "{sparse: true}",
        "{sparse: true}",
        "{hidden: true}",
    ]);
    prop_oneof![4 => Just("{}".to_owned()), 1 => partial, 3 => implied.prop_map(str::to_owned)]
}

#[derive(Debug)]
struct Scene {
    documents: Vec<String>,
    indexes: Vec<String>,
    /// One for each index; some are refused.
    options: Vec<String>,
    /// How many of the documents are there before the indexes.
    early: usize,
    finds: Vec<Find>,
}

#[derive(Debug)]
struct Find {
    filter: String,
    sort: Sort,
    skip: u8,
    limit: Option<u8>,
}

#[derive(Clone, Debug)]
enum Sort {
    None,
    By(String),
    /// By the key pattern of an index.
    AsIndex(usize),
    /// Against it.
    AgainstIndex(usize),
}

impl Sort {
    fn pattern(&self, indexes: &[String]) -> Option<String> {
        match self {
            Self::None => None,
            Self::By(pattern) => Some(pattern.clone()),
            Self::AsIndex(number) => Some(indexes[number % indexes.len()].replace("'hashed'", "1").replace("$**", "b")),
            Self::AgainstIndex(number) => Some(
                indexes[number % indexes.len()]
                    .replace("'hashed'", "1")
                    .replace("$**", "b")
                    .replace(": 1", ": x")
                    .replace(": -1", ": 1")
                    .replace(": x", ": -1"),
            ),
        }
    }
}

fn sort() -> impl Strategy<Value = Sort> {
    prop_oneof![
        Just(Sort::None),
        pattern().prop_map(Sort::By),
        (0..4_usize).prop_map(Sort::AsIndex),
        (0..4_usize).prop_map(Sort::AgainstIndex),
    ]
}

fn scene() -> impl Strategy<Value = Scene> {
    let find = (filter(), sort(), 0..3_u8, prop::option::weighted(0.3, 1..5_u8))
        .prop_map(|(filter, sort, skip, limit)| Find { filter, sort, skip, limit });
    let index = (prop_oneof![5 => pattern(), 1 => hashed_pattern()], options());
    (vec(stored(), 0..25), vec(index, 1..5), 0..25_usize, vec(find, 1..12)).prop_map(
        |(documents, indexes, early, finds)| {
            let (indexes, options) = indexes.into_iter().unzip();
            Scene { documents, indexes, options, early, finds }
        },
    )
}

fn query(find: &str) -> FindQuery {
    find_query(document(find).as_ref()).unwrap_or_else(|failure| panic!("{find}: {failure}"))
}

/// The records that a find yields, each with its sort key.
fn answer(collection: &Arc<Collection>, find: &str) -> Result<Vec<(u64, Vec<u8>)>> {
    let plan = plan(collection, query(find))?;
    let mut execution = plan.open()?;
    let mut rows = Vec::new();
    while let Some((record, document)) = execution.next_record()? {
        let mut key = Vec::new();
        if let Some(sort) = &plan.query().sort {
            sort.append_key(&mut key, document, &OperationContext::unlimited(), StringOrder::BYTES)?;
        }
        rows.push((record.0, key));
    }
    Ok(rows)
}

fn records(rows: &[(u64, Vec<u8>)]) -> Vec<u64> {
    let mut records: Vec<u64> = rows.iter().map(|(record, _)| *record).collect();
    records.sort_unstable();
    records
}

fn keys(rows: &[(u64, Vec<u8>)]) -> Vec<&[u8]> {
    rows.iter().map(|(_, key)| key.as_slice()).collect()
}

fn populate(database: &Database, name: &str, scene: &Scene) {
    database.collection(name);
    let early = scene.early.min(scene.documents.len());
    let insert = |position: usize, text: &str| {
        let mut whole = DocumentBuf::new().with("_id", position as i32);
        whole.extend(document(text).as_ref());
        // Refused where the indexes meet parallel arrays.
        let _ = database.insert(name, &shell::print(ValueRef::Document(whole.as_ref())));
    };
    scene.documents[..early].iter().enumerate().for_each(|(position, text)| insert(position, text));
    for (index, options) in scene.indexes.iter().zip(&scene.options) {
        let _ = database.index(name, &document(index), &document(options));
    }
    scene.documents[early..].iter().enumerate().for_each(|(position, text)| insert(early + position, text));
}

/// The records before and from a key on; those with keys on both sides count once.
fn in_two_windows(collection: &Arc<Collection>, filter: &str, index: &Index) -> Vec<u64> {
    let key = braced(index.fields.iter().map(|field| format!("'{}': 3", field.path)));
    let sides = ["min", "max"].map(|side| {
        let find = format!("{{filter: {filter}, hint: '{}', {side}: {key}}}", index.name);
        answer(collection, &find).expect("a window")
    });
    let mut found = records(&sides.concat());
    found.dedup();
    found
}

/// The indexes that a hint may name and that hold all documents; by the others a hint finds only what they hold.
fn whole_indexes(collection: &Collection) -> Vec<Arc<Index>> {
    let is_whole = |index: &Arc<Index>| {
        !index.is_hidden && !index.is_sparse && index.partial_filter.is_none() && index.kind.name() != "wildcard"
    };
    collection.ready_indexes().into_iter().filter(is_whole).collect()
}

fn text(document: &DocumentBuf) -> String {
    shell::print(ValueRef::Document(document.as_ref()))
}

/// With `returnKey` an index tells keys that the documents have, as often as it finds documents; with `showRecordId` each
/// document comes with its record, whatever the plan.
fn check_told(collection: &Arc<Collection>, filter: &str, wanted: &[u64]) {
    let told = |find: &str| {
        let mut execution = plan(collection, query(find)).expect(find).open().expect(find);
        let mut told = Vec::new();
        while let Some(document) = execution.next().expect(find) {
            told.push(document.to_owned());
        }
        told
    };
    let mut numbers: Vec<u64> = told(&format!("{{filter: {filter}, showRecordId: true}}"))
        .iter()
        .map(|document| match document.as_ref().get("$recordId") {
            Some(ValueRef::Int64(record)) => record as u64,
            other => panic!("{filter}: {other:?}"),
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, wanted, "{filter} with record ids");
    for index in whole_indexes(collection) {
        let find = format!("{{filter: {filter}, hint: '{}', sort: {{_id: 1}}, returnKey: true}}", index.name);
        let keys = told(&find);
        let documents = told(&format!("{{filter: {filter}, hint: '{}', sort: {{_id: 1}}}}", index.name));
        assert_eq!(keys.len(), documents.len(), "{find}");
        for (key, document) in keys.iter().zip(&documents) {
            let mut told = Vec::new();
            for (field, value) in index.fields.iter().zip(key.as_ref().iter()) {
                assert_eq!(value.name, field.path, "{find}");
                StringOrder::BYTES.append_key(&mut told, value.value, field.direction);
            }
            let own = index_keys(&index, document.as_ref()).expect("was indexed").keys;
            assert!(own.contains(&told), "{find}: {} of {}", text(key), text(document));
        }
    }
}

/// Fields that are needed alone are those of the documents, whatever gives them.
fn check_covered(collection: &Arc<Collection>, filter: &str) {
    for index in whole_indexes(collection).iter().filter(|index| index.kind.name().is_empty()) {
        let paths: Vec<&str> = index.fields.iter().map(|field| field.path.as_str()).collect();
        for some in [&paths[..], &paths[paths.len() - 1..]] {
            let projection = braced(some.iter().map(|path| format!("'{path}': 1")).chain(["_id: 0".to_owned()]));
            // Paths may lead through each other, and an `_id` may be among them.
            let Ok(shape) = find_query(document(&format!("{{projection: {projection}}}")).as_ref()) else { continue };
            let list = some.iter().map(|path| format!("'{path}'")).collect::<Vec<_>>().join(", ");
            let shaped = |rest: &str| {
                let find = format!("{{filter: {filter}, {rest}}}");
                let mut execution = plan(collection, query(&find)).expect(&find).open().expect(&find);
                let mut found = Vec::new();
                while let Some((record, document)) = execution.next_record().expect(&find) {
                    let mut buffer = Vec::new();
                    let projected = shape.projected(document, &mut buffer).expect("a simple projection");
                    let mut fields: Vec<_> = projected.iter().collect();
                    fields.sort_unstable_by_key(|field| field.name);
                    let sorted = fields.iter().fold(DocumentBuf::new(), |all, field| all.with(field.name, field.value));
                    found.push((record.0, text(&sorted)));
                }
                found.sort_unstable();
                found
            };
            let scanned = shaped("hint: {$natural: 1}");
            let covered = shaped(&format!("hint: '{}', needed: [{list}]", index.name));
            assert_eq!(covered, scanned, "{filter} with {} for {list}", index.name);
        }
    }
}

/// Distinct values are those of a scan of the collection; of equal ones any may be told.
fn check_distinct(collection: &Arc<Collection>, filter: &str) {
    let told = |path: &str, hint: &str| {
        let query = query(&format!("{{filter: {filter}{hint}}}"));
        let values = distinct(collection, path, query).expect("distinct values");
        values.as_ref().iter().map(|value| key_of(value)).collect::<Vec<_>>()
    };
    for path in ["a", "a.b", "a.c", "a.b.c", "d", "s", "t", "a.0"] {
        let scanned = told(path, ", hint: {$natural: 1}");
        assert_eq!(told(path, ""), scanned, "distinct {path} of {filter}");
        for index in whole_indexes(collection) {
            let hinted = told(path, &format!(", hint: '{}'", index.name));
            assert_eq!(hinted, scanned, "distinct {path} of {filter} with {}", index.name);
        }
    }
}

/// Of each group, whose documents have one value at a path, there is a document among those that a plan yields, and none of others.
fn check_groups(collection: &Arc<Collection>, filter: &str) {
    for path in ["a", "a.b", "d", "s", "t"] {
        let field = FieldPath::parse(path).expect("a path");
        let groups = |of: Option<DistinctOf>, hint: &str| {
            let mut query = query(&format!("{{filter: {filter}{hint}}}"));
            query.distinct = of.map(|of| Distinct { path: path.into(), of });
            let mut execution = plan(collection, query).expect("a plan").open().expect("opened");
            let mut groups = BTreeSet::new();
            while let Some(document) = execution.next().expect("documents") {
                let value = field.follow(ValueRef::Document(document));
                let value = value.or_null();
                groups.insert(key_of(if matches!(value, ValueRef::Undefined) { ValueRef::Null } else { value }));
            }
            groups
        };
        let scanned = groups(None, ", hint: {$natural: 1}");
        for of in [DistinctOf::Groups, DistinctOf::FirstOfGroups] {
            assert_eq!(groups(Some(of), ""), scanned, "groups by {path} of {filter}");
            for index in whole_indexes(collection) {
                let hinted = groups(Some(of), &format!(", hint: '{}'", index.name));
                assert_eq!(hinted, scanned, "groups by {path} of {filter} with {}", index.name);
            }
        }
    }
}

fn key_of(value: ValueRef<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    StringOrder::BYTES.append_key(&mut key, value, bunko_bson::key_string::Direction::Ascending);
    key
}

fn check(collection: &Arc<Collection>, find: &Find, sort: Option<String>) {
    let Find { filter, skip, limit, .. } = find;
    let expected = answer(collection, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}")).expect("a scan");
    let wanted = records(&expected);
    // By trial, by another that confirms it, and by what is kept of them.
    for run in 0..3 {
        let found = answer(collection, &format!("{{filter: {filter}}}")).expect("a plan");
        assert_eq!(records(&found), wanted, "{filter}, run {run}");
    }
    let counted = count(collection, query(&format!("{{filter: {filter}}}"))).expect("counted");
    assert_eq!(counted, wanted.len() as u64, "counted {filter}");
    let numbered = answer(collection, &format!("{{filter: {filter}, needed: []}}")).expect("a plan");
    assert_eq!(records(&numbered), wanted, "{filter} where nothing is read");
    for index in whole_indexes(collection) {
        let hinted = answer(collection, &format!("{{filter: {filter}, hint: '{}'}}", index.name)).expect("a hint");
        assert_eq!(records(&hinted), wanted, "{filter} with {}", index.name);
        let numbered = answer(collection, &format!("{{filter: {filter}, hint: '{}', needed: []}}", index.name));
        assert_eq!(records(&numbered.expect("a hint")), wanted, "{filter} by {} where nothing is read", index.name);
        assert_eq!(in_two_windows(collection, filter, &index), wanted, "{filter} in two windows of {}", index.name);
    }
    check_told(collection, filter, &wanted);
    check_covered(collection, filter);
    check_distinct(collection, filter);
    check_groups(collection, filter);
    let Some(sort) = sort else { return };
    let window = format!("skip: {skip}, limit: {}", limit.unwrap_or(0));
    // Parallel arrays cannot be sorted.
    let Ok(sorted) =
        answer(collection, &format!("{{filter: {filter}, sort: {sort}, {window}, hint: {{$natural: 1}}}}"))
    else {
        return;
    };
    for hint in whole_indexes(collection).iter().map(|index| format!(", hint: '{}'", index.name)).chain([String::new()])
    {
        let find = format!("{{filter: {filter}, sort: {sort}, {window}{hint}}}");
        let by_plan = answer(collection, &find).expect("a sorted plan");
        assert_eq!(keys(&by_plan), keys(&sorted), "{find}");
        if limit.is_none() && *skip == 0 {
            assert_eq!(records(&by_plan), wanted, "{find}");
        }
    }
}

#[test]
fn indexed_plans_answer_as_collection_scans_do() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let databases: Vec<_> = ENGINES.iter().map(Database::open).collect();
    let mut collections = 0;
    let numbers = std::cell::RefCell::new(&mut collections);
    runner
        .run(&scene(), |scene| {
            let (name, database) = {
                let mut number = numbers.borrow_mut();
                **number += 1;
                (format!("c{number}"), &databases[**number % databases.len()])
            };
            populate(database, &name, &scene);
            let collection = database.collection(&name);
            assert!(collection.validate().expect("validated").is_valid(), "{scene:?}");
            check_distinct(&collection, "{}");
            check_groups(&collection, "{}");
            for find in &scene.finds {
                check(&collection, find, find.sort.pattern(&scene.indexes));
            }
            database
                .catalog
                .drop_collection(&temporary::namespace(&name), &*OperationContext::unlimited())
                .expect("dropped");
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_generators_make_what_can_be_read() {
    let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    runner
        .run(&(stored(), filter(), pattern()), |(stored, filter, pattern)| {
            document(&stored);
            query(&format!("{{filter: {filter}, sort: {pattern}}}"));
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}
