//! Keys of documents with arrays, compared with a model that derives them in another way.

use bunko_bson::{ArrayBuf, DocumentBuf, Value, ValueRef, key_string, order};
use bunko_catalog::{Catalog, CreateOptions, Index, IndexSpec, index_keys};
use bunko_errors::ErrorCode;
use bunko_operation::OperationContext;
use bunko_store::{Store, StoreOptions};
use bunko_testkit::shell;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

fn document(text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Indexes on these paths, of a collection in memory.
struct Indexes(Arc<Catalog>);

impl Indexes {
    fn new() -> Self {
        let engine = bunko_engines::find("memory").expect("an engine of the table");
        let table = bunko_engines::table(engine, &bunko_engines::EngineOptions::default());
        let store = Store::open(std::path::Path::new("touched by nobody"), StoreOptions::at_rest(), table);
        Self(Catalog::open(store.expect("opens"), Box::new(|| [1; 16])).expect("opens"))
    }

    fn on(&self, paths: &[&str]) -> Arc<Index> {
        let namespace = bunko_catalog::Namespace::parse("test.keys").expect("a name");
        self.0.drop_collection(&namespace, &*OperationContext::unlimited()).expect("dropped");
        let (collection, _) =
            self.0.create(&namespace, CreateOptions::default(), &*OperationContext::unlimited()).expect("created");
        let mut key = DocumentBuf::new();
        for path in paths {
            key.append(path, 1_i32);
        }
        let spec = IndexSpec::parse(DocumentBuf::new().with("key", &key).with("name", "i").as_ref()).expect("a spec");
        self.0.create_indexes(&collection, &[spec], &*OperationContext::unlimited()).expect("built");
        collection.index("i").expect("built")
    }
}

/// The keys as arrays of values, in order; or the failure's code and message.
fn keys(index: &Index, document: &DocumentBuf) -> Result<String, (ErrorCode, String)> {
    let keys =
        index_keys(index, document.as_ref()).map_err(|failure| (failure.code(), failure.message().to_owned()))?;
    let directions: Vec<_> = index.fields.iter().map(|field| field.direction).collect();
    let decoded = keys.keys.iter().map(|key| {
        let values = key_string::decode(key, &directions).expect("a key");
        shell::print(ValueRef::Array(values.iter().map(Value::as_ref).collect::<ArrayBuf>().as_ref()))
    });
    Ok(decoded.collect::<Vec<_>>().join(" "))
}

#[test]
fn fields_below_one_array_are_walked_together() {
    let indexes = Indexes::new();
    for (paths, text, expected) in [
        (&["a.b.c", "a.b.d"][..], "{a: {b: [{c: 1, d: 2}, {c: 3, d: 4}]}}", "[1, 2] [3, 4]"),
        (&["a.b.c", "a.b.d"], "{a: [{b: [{c: 1, d: 2}]}, {b: {c: 3}}]}", "[1, 2] [3, null]"),
        (
            &["a.b", "a.c", "x"],
            "{a: [{b: 1, c: [2, 3]}, {b: [4, 5], c: 6}], x: 7}",
            "[1, 2, 7] [1, 3, 7] [4, 6, 7] [5, 6, 7]",
        ),
        (&["a", "a.b"], "{a: [{b: 1}, 2]}", "[2, null] [{b: 1}, 1]"),
        (&["a", "a.b"], "{a: []}", "[undefined, null]"),
        (&["a.b", "a.c"], "{a: [{b: []}]}", "[undefined, null]"),
        (&["a.b"], "{a: [[{b: 1}]]}", "[null]"),
        (&["a.0"], "{a: [[1, 2], 3]}", "[1] [2]"),
        (&["a.0.b"], "{a: [{b: 1}, {b: 2}]}", "[1]"),
        (&["a.0.b", "a.c"], "{a: [{b: 1, c: 2}, {b: 3, c: 4}]}", "[1, 2] [1, 4]"),
        (&["a.5", "a.b"], "{a: [{b: 1}]}", "[null, 1]"),
        (&["a.b", "c"], "{}", "[null, null]"),
    ] {
        let found = keys(&indexes.on(paths), &document(text)).expect("indexable");
        assert_eq!(found.replace("NumberInt(", "").replace(')', ""), expected, "{paths:?} of {text}");
    }
}

#[test]
fn arrays_side_by_side_are_refused_at_any_depth() {
    let indexes = Indexes::new();
    for (paths, text, names) in [
        (["a", "b"], "{a: [1, 2], b: [3]}", "[b] [a]"),
        (["a.b", "a.c"], "{a: {b: [1, 2], c: [3, 4]}}", "[c] [b]"),
        (["a.b.c", "a.b.d"], "{a: [{b: {c: 1}}, {b: {c: [], d: [1]}}]}", "[d] [c]"),
        (["a.x.b", "a.y.c"], "{a: {x: [{b: 1}], y: [{c: 1}]}}", "[y] [x]"),
    ] {
        let (code, message) = keys(&indexes.on(&paths), &document(text)).expect_err("parallel");
        assert_eq!(code, ErrorCode::CANNOT_INDEX_PARALLEL_ARRAYS, "{text}");
        assert_eq!(message, format!("cannot index parallel arrays {names}"), "{text}");
    }
}

#[test]
fn a_name_is_not_both_a_position_and_a_field_of_an_element() {
    let index = Indexes::new().on(&["a.0"]);
    let (code, message) = keys(&index, &document("{a: [{'0': 1}]}")).expect_err("ambiguous");
    assert_eq!(code, ErrorCode(16746));
    assert!(message.contains("field: '0' for array: [ { 0: 1 } ]"), "{message}");
}

/// All choices of one element for each array on the paths. Paths that share an array share the choice.
///
/// The model goes path by path and array by array, and identifies an array by its place in the document.
struct Model<'d> {
    document: &'d DocumentBuf,
}

impl Model<'_> {
    /// Each key is one choice of a position for each array on the paths. Arrays are identified by their places.
    fn keys(&self, paths: &[&str]) -> Option<Vec<Vec<Value>>> {
        let mut found = Vec::new();
        let mut open = vec![Vec::<(String, usize)>::new()];
        while let Some(chosen) = open.pop() {
            let outcomes: Vec<_> = paths.iter().map(|path| self.value(path, &chosen)).collect();
            let mut unchosen = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
            match unchosen.next() {
                None => found.push(outcomes.into_iter().filter_map(Result::ok).collect()),
                Some((place, count)) => {
                    if unchosen.any(|(other, _)| other != place) {
                        return None;
                    }
                    open.extend((0..*count).map(|position| {
                        let mut chosen = chosen.clone();
                        chosen.push((place.clone(), position));
                        chosen
                    }));
                }
            }
        }
        Some(found)
    }

    /// The value at a path, or the first array without a chosen element: its place and its length.
    fn value(&self, path: &str, chosen: &[(String, usize)]) -> Result<Value, (String, usize)> {
        let mut value = Value::Document(self.document.clone());
        let mut place = String::new();
        for name in path.split('.') {
            let Value::Document(inner) = value else { return Ok(Value::Null) };
            let Some(next) = inner.as_ref().get(name) else { return Ok(Value::Null) };
            place = format!("{place}.{name}");
            value = next.to_value();
            let Value::Array(array) = &value else { continue };
            let is_last = path.len() + 1 == place.replace(|c: char| c == '#' || c.is_ascii_digit(), "").len();
            let Some((_, position)) = chosen.iter().find(|(other, _)| *other == place) else {
                return Err((place, array.count().max(1)));
            };
            if array.count() == 0 {
                return Ok(if is_last { Value::Undefined } else { Value::Null });
            }
            let element = array.as_ref().get(*position).expect("chosen").to_value();
            place = format!("{place}#{position}");
            if is_last {
                return Ok(element);
            }
            value = element;
        }
        Ok(value)
    }
}

fn value() -> impl Strategy<Value = String> {
    let scalar = (0..4_i32).prop_map(|number| number.to_string());
    scalar.prop_recursive(4, 16, 3, |inner| {
        let fields = vec((prop::sample::select(vec!["b", "c", "d"]), inner.clone()), 0..4);
        prop_oneof![
            2 => vec(inner, 0..4).prop_map(|values| format!("[{}]", values.join(", "))),
            3 => fields.prop_map(|fields| {
                let mut fields = fields;
                fields.sort_by_key(|(name, _)| *name);
                fields.dedup_by_key(|(name, _)| *name);
                let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                format!("{{{}}}", fields.join(", "))
            }),
        ]
    })
}

#[test]
fn keys_are_those_of_the_model() {
    const PATHS: &[&[&str]] = &[
        &["a"],
        &["a.b"],
        &["a.b", "a.c"],
        &["a.b.c", "a.b.d"],
        &["a.b.c", "a.c", "a.d"],
        &["a", "a.b", "a.b.c"],
        &["a.b", "e"],
        &["a.b.c", "e.b"],
    ];
    let indexes = Indexes::new();
    let indexes: Vec<_> = PATHS.iter().map(|paths| (paths, indexes.on(paths))).collect();
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(a in value(), e in value())| {
        let document = document(&format!("{{a: {a}, e: {e}}}"));
        for (paths, index) in &indexes {
            let found = index_keys(index, document.as_ref());
            let Some(mut expected) = Model { document: &document }.keys(paths) else {
                let failure = found.expect_err("parallel arrays");
                prop_assert_eq!(failure.code(), ErrorCode::CANNOT_INDEX_PARALLEL_ARRAYS);
                continue;
            };
            let found = found.unwrap_or_else(|failure| panic!("{paths:?} of {document:?}: {failure}"));
            let compare = |one: &Vec<Value>, other: &Vec<Value>| {
                let orders = one.iter().zip(other).map(|(one, other)| order::compare(one.as_ref(), other.as_ref()));
                orders.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
            };
            expected.sort_by(compare);
            expected.dedup_by(|one, other| compare(one, other).is_eq());
            let expected: Vec<Vec<u8>> = expected.iter().map(|values| {
                let mut key = Vec::new();
                for value in values {
                    key_string::append(&mut key, value.as_ref(), key_string::Direction::Ascending);
                }
                key
            }).collect();
            prop_assert_eq!(found.keys.into_iter().collect::<Vec<_>>(), expected, "{:?} of {:?}", paths, document);
        }
    });
}
