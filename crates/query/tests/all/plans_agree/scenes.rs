//! Random collections with indexes and queries.

use crate::plans_agree::filters::{any_path, element_of_a, filter, pointed, predicate, tests_of_values};
use crate::plans_agree::values::{braced, fraction, stored, with_elements};
use crate::temporary::{Database, document};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::KEY_PREFIX_BYTES;
use bunko_testkit::shell;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

pub fn pattern() -> impl Strategy<Value = String> {
    let telling = prop::sample::select(vec![
        "{'a.b': 1, 'a.c': 1}",
        "{'a.c': 1, 'a.b': -1}",
        "{'a.b.c': 1, 'a.b.d': 1}",
        "{'a.b.d': 1, 'a.c.d': 1, s: 1}",
        "{'a.0': 1}",
        "{a: 1, t: 1}",
        "{a: -1, s: 1}",
        "{s: 1, t: 1}",
        "{s: 1, t: 1}",
        "{s: -1, t: 1}",
        "{t: 1, s: 1}",
    ]);
    prop_oneof![2 => any_pattern(), 1 => telling.prop_map(str::to_owned)]
}

/// Key patterns whose indexes refuse arrays on their paths, and wildcard patterns.
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

fn place_pattern() -> impl Strategy<Value = String> {
    let patterns = [
        "{g: '2d'}",
        "{g: '2d', t: 1}",
        "{g: '2dsphere'}",
        "{h: '2dsphere'}",
        "{h: '2dsphere', s: 1}",
        "{s: -1, h: '2dsphere'}",
    ];
    prop::sample::select(patterns.to_vec()).prop_map(str::to_owned)
}

fn any_pattern() -> impl Strategy<Value = String> {
    vec((any_path(), prop::bool::ANY), 1..4).prop_map(|parts| {
        let mut paths = BTreeSet::new();
        braced(
            parts
                .into_iter()
                .filter(|(path, _)| paths.insert(*path))
                .map(|(path, ascending)| format!("'{path}': {}", if ascending { 1 } else { -1 })),
        )
    })
}

/// Index options, most often none.
fn options() -> impl Strategy<Value = String> {
    let partial = predicate().prop_map(|filter| format!("{{partialFilterExpression: {filter}}}"));
    let implied = prop::sample::select(vec![
        "{partialFilterExpression: {a: {$gte: 2}}}",
        "{partialFilterExpression: {s: {$exists: true}}}",
        "{partialFilterExpression: {$or: [{s: {$lt: 3}}, {a: {$in: [1, 2, 3]}}]}}",
        "{partialFilterExpression: {'a.b': {$lte: 4}, t: {$type: 'int'}}}",
        "{partialFilterExpression: {g: {$exists: true}}}",
        "{partialFilterExpression: {h: {$exists: true}}}",
        "{partialFilterExpression: {g: {$geoWithin: {$box: [[0, 0], [3, 3]]}}}}",
        "{partialFilterExpression: {h: {$geoWithin: {$centerSphere: [[2, 2], 0.05]}}}}",
        "{hidden: true}",
    ]);
    let of_itself = prop::sample::select(vec![
        "{sparse: true}",
        "{sparse: true}",
        "{collation: {locale: 'en', strength: 2}}",
        "{collation: {locale: 'en', strength: 2}}",
        "{collation: {locale: 'en', strength: 2}}",
        "{partialFilterExpression: {'@0': {$exists: true}}}",
        "{partialFilterExpression: {'@0': {$gte: 'ab'}}}",
        "{partialFilterExpression: {'@0': {$gt: 2}}}",
        "{collation: {locale: 'en', strength: 2}, partialFilterExpression: {'@0': {$gte: 'ab'}}}",
    ]);
    prop_oneof![
        4 => Just("{}".to_owned()),
        1 => partial,
        2 => implied.prop_map(str::to_owned),
        3 => of_itself.prop_map(str::to_owned),
    ]
}

/// Contents and queries of one collection.
#[derive(Debug)]
pub struct Scene {
    pub documents: Vec<String>,
    pub indexes: Vec<String>,
    /// Options per index; some of them fail.
    pub options: Vec<String>,
    /// Number of documents inserted before the indexes are built.
    pub early: usize,
    pub finds: Vec<Find>,
}

/// One query.
#[derive(Debug)]
pub struct Find {
    pub filter: String,
    pub sort: Sort,
    pub skip: u8,
    pub limit: Option<u8>,
    /// Whether strings are compared in the order of an index with a collation, if there is one.
    pub is_collated: bool,
    /// Whether values, groups and keys are compared too.
    pub is_thorough: bool,
}

impl Find {
    /// Replaces placeholders for paths by those of the indexes, so that conditions and indexes often meet.
    pub fn settle(&mut self, indexes: &[String]) {
        settle(&mut self.filter, indexes);
    }
}

fn settle(filter: &mut String, indexes: &[String]) {
    let names: Vec<_> = indexes.iter().flat_map(|pattern| paths_of(pattern)).collect();
    for placeholder in 0..3 {
        let path = names.get(placeholder % names.len().max(1)).map_or("a", String::as_str);
        *filter = filter.replace(&format!("@{placeholder}"), path);
    }
}

/// The paths that a key pattern orders by.
fn paths_of(pattern: &str) -> Vec<String> {
    let pattern = document(&sortable(pattern));
    pattern.as_ref().iter().map(|field| field.name.to_owned()).collect()
}

#[derive(Clone, Debug)]
pub enum Sort {
    None,
    By(String),
    /// By the key pattern of an index.
    AsIndex(usize),
    /// By the reverse of an index's key pattern.
    AgainstIndex(usize),
    /// By the fields of an index after its first.
    BehindFirst(usize),
}

impl Sort {
    /// The key pattern to sort by; `indexes` are the key patterns of the indexes.
    pub fn pattern(&self, indexes: &[String]) -> Option<String> {
        match self {
            Self::None => None,
            Self::By(pattern) => Some(pattern.clone()),
            Self::AsIndex(number) => Some(sortable(&indexes[number % indexes.len()])),
            Self::AgainstIndex(number) => Some(reversed(&sortable(&indexes[number % indexes.len()]))),
            Self::BehindFirst(number) => {
                let pattern = sortable(&indexes[number % indexes.len()]);
                let (_, others) = pattern.split_once(", ")?;
                Some(if number % 2 == 0 { format!("{{{others}") } else { reversed(&format!("{{{others}")) })
            }
        }
    }
}

fn reversed(pattern: &str) -> String {
    pattern.replace(": 1", ": x").replace(": -1", ": 1").replace(": x", ": -1")
}

/// A key pattern with only directions.
fn sortable(pattern: &str) -> String {
    pattern.replace("'hashed'", "1").replace("'2dsphere'", "1").replace("'2d'", "1").replace("$**", "b")
}

fn sort() -> impl Strategy<Value = Sort> {
    prop_oneof![
        Just(Sort::None),
        pattern().prop_map(Sort::By),
        (0..4_usize).prop_map(Sort::AsIndex),
        (0..4_usize).prop_map(Sort::AgainstIndex),
        (0..4_usize).prop_map(Sort::BehindFirst),
    ]
}

pub fn scene() -> impl Strategy<Value = Scene> {
    let parts = (vec(stored(), 0..30), indexes(), 0..30_usize, vec(find(), 4..16));
    let (is_long, is_repeated) = (prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    (parts, is_long, is_repeated).prop_map(|((documents, indexes, early, finds), is_long, is_repeated)| {
        let (indexes, mut options): (Vec<_>, Vec<_>) = indexes.into_iter().unzip();
        for (options, index) in options.iter_mut().zip(&indexes) {
            settle(options, std::slice::from_ref(index));
        }
        let mut scene = Scene { documents, indexes, options, early, finds };
        if is_long {
            scene.lengthen();
        }
        if is_repeated {
            scene.repeat();
        }
        scene.finds.iter_mut().for_each(|find| find.settle(&scene.indexes));
        scene
    })
}

/// Collections whose compound indexes lead through arrays, and conditions on single elements of these.
pub fn scene_of_elements() -> impl Strategy<Value = Scene> {
    let patterns =
        ["{'a.b': 1, 'a.c': 1}", "{'a.c': -1, 'a.b': 1}", "{'a.b.c': 1, 'a.b.d': 1}", "{'a.b.d': 1, 'a.c': 1}"];
    let indexes = prop::sample::subsequence(patterns.map(str::to_owned).to_vec(), 1..3);
    let find = |filter| Find { filter, sort: Sort::None, skip: 0, limit: None, is_collated: false, is_thorough: false };
    let finds = vec(element_of_a().prop_map(find), 4..12);
    (vec(with_elements(), 4..20), indexes, 0..20_usize, finds).prop_map(|(documents, indexes, early, finds)| {
        let options = vec!["{}".to_owned(); indexes.len()];
        Scene { documents, indexes, options, early, finds }
    })
}

impl Scene {
    /// Makes strings so long that their keys are shortened. Some differ only after the part that is kept.
    fn lengthen(&mut self) {
        let long = format!("'ab{}", "-".repeat(KEY_PREFIX_BYTES + 64));
        let texts = self.documents.iter_mut().chain(self.finds.iter_mut().map(|find| &mut find.filter));
        texts.for_each(|text| *text = text.replace("'ab", &long));
    }

    /// Makes documents so frequent that scans seek from value to value.
    fn repeat(&mut self) {
        self.documents.truncate(REPEATED);
        self.documents = [self.documents.as_slice(); TIMES].concat();
    }
}

/// Number of documents that are repeated, and how often.
const REPEATED: usize = 5;
const TIMES: usize = 10;

/// Indexes of one collection. At times each of two alternatives has one.
fn indexes() -> impl Strategy<Value = Vec<(String, String)>> {
    let both = ["{s: 1, t: 1}", "{d: -1}"].map(|pattern| (pattern.to_owned(), "{}".to_owned()));
    let added = vec(index(), 0..3).prop_map(move |others| [both.to_vec(), others].concat());
    prop_oneof![9 => vec(index(), 1..5), 1 => added]
}

/// A key pattern and options.
pub fn index() -> impl Strategy<Value = (String, String)> {
    (prop_oneof![5 => pattern(), 2 => hashed_pattern(), 1 => place_pattern()], options())
}

pub fn find() -> impl Strategy<Value = Find> {
    let asked =
        prop_oneof![3 => (filter(), sort()), 3 => (predicate(), sort()), 4 => (pointed(), sort()), 2 => telling_find()];
    let window = (0..3_u8, prop::option::weighted(0.3, 1..5_u8));
    let kind = (prop::bool::weighted(0.25), prop::bool::weighted(0.25));
    (asked, window, kind).prop_map(|((filter, sort), (skip, limit), (is_collated, is_thorough))| Find {
        filter,
        sort,
        skip,
        limit,
        is_collated,
        is_thorough,
    })
}

/// Filters and sorts that fit some of the indexes: lists before the field of the sort, alternatives with an index each,
/// and conditions that keys are checked for.
fn telling_find() -> impl Strategy<Value = (String, Sort)> {
    let order = prop::sample::select(vec!["{t: 1}", "{t: -1}", "{t: -1, s: 1}"]);
    let by_index = (0..4_usize).prop_map(Sort::BehindFirst);
    let sorts = prop_oneof![order.clone().prop_map(|order| Sort::By(order.to_owned())), by_index];
    let lists = (prop::sample::select(vec!["s", "@0", "@0"]), vec(0..4_i32, 2..4), sorts)
        .prop_map(|(path, list, sort)| (format!("{{'{path}': {{$in: {list:?}}}}}"), sort));
    let test = || prop::sample::select(vec!["{$mod: [2, 0]}", "{$mod: [2, 1]}", "{$mod: [3, 1]}", "{$gte: 1}", "2"]);
    let between = prop::sample::select(vec!["t", "d", "d"]);
    let alternatives =
        (0..3_i32, test(), between, 0..2_i32, test(), order).prop_map(|(s, one, between, beside, other, order)| {
            let again = s + beside;
            let filter = format!("{{$or: [{{s: {s}, t: {one}}}, {{{between}: 2}}, {{s: {again}, t: {other}}}]}}");
            (filter, Sort::By(order.to_owned()))
        });
    let checked = (prop::sample::select(vec!["a", "s", "t"]), tests_of_values()).prop_map(|(path, [one, other])| {
        (format!("{{$and: [{{{path}: {{{one}}}}}, {{{path}: {{{other}}}}}]}}"), Sort::None)
    });
    let missing = prop::sample::select(vec!["a.b", "a.b", "a.c", "s", "t"]);
    let absent = missing.prop_map(|path| (format!("{{'{path}': {{$exists: false}}}}"), Sort::None));
    let fractions = (prop::sample::select(vec!["s", "t", "@0"]), fraction())
        .prop_map(|(path, number)| (format!("{{'{path}': {number}}}"), Sort::None));
    prop_oneof![3 => lists, 3 => alternatives, 2 => checked, 1 => absent, 2 => fractions]
}

/// A document with an `_id` before its fields.
pub fn with_id(id: usize, text: &str) -> String {
    let mut whole = DocumentBuf::new().with("_id", id as i32);
    whole.extend(document(text).as_ref());
    shell::print(ValueRef::Document(whole.as_ref()))
}

/// Fills the collection of a scene: some documents before the indexes, the rest after.
pub fn populate(database: &Database, name: &str, scene: &Scene) {
    database.collection(name);
    let early = scene.early.min(scene.documents.len());
    let insert = |position: usize, text: &str| {
        // Fails if the indexes meet parallel arrays.
        let _ = database.insert(name, &with_id(position, text));
    };
    scene.documents[..early].iter().enumerate().for_each(|(position, text)| insert(position, text));
    for (index, options) in scene.indexes.iter().zip(&scene.options) {
        let _ = database.index(name, &document(index), &document(options));
    }
    scene.documents[early..].iter().enumerate().for_each(|(position, text)| insert(early + position, text));
}
