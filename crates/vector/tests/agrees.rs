//! A table with a graph, a table without one, and a search that scans all documents agree with a model that follows the
//! documentation in the plainest way.

use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_operation::OperationContext;
use bunko_testkit::random::Random;
use bunko_vector::{Definition, GRAPH_FROM, Growing, Request, Scan, Table};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const SIMILARITIES: [&str; 3] = ["cosine", "euclidean", "dotProduct"];

fn definition(dimensions: i32, similarity: &str) -> DocumentBuf {
    let vector = DocumentBuf::new()
        .with("type", "vector")
        .with("path", "v")
        .with("numDimensions", dimensions)
        .with("similarity", similarity);
    let filter = |path: &str| DocumentBuf::new().with("type", "filter").with("path", path);
    let fields: ArrayBuf = [vector, filter("n"), filter("t")].iter().collect();
    DocumentBuf::new().with("fields", &fields)
}

fn document(vector: &[f64], n: Option<i32>, tags: &[i32]) -> DocumentBuf {
    let vector: ArrayBuf = vector.iter().copied().collect();
    let tags: ArrayBuf = tags.iter().copied().collect();
    let mut document = DocumentBuf::new().with("v", &vector).with("t", &tags);
    if let Some(n) = n {
        document.append("n", n);
    }
    document
}

fn request(query: &[f64], limit: usize, candidates: Option<usize>, filter: &DocumentBuf) -> Request {
    let query: ArrayBuf = query.iter().copied().collect();
    let mut asked = DocumentBuf::new()
        .with("index", "i")
        .with("path", "v")
        .with("queryVector", &query)
        .with("limit", limit as i32)
        .with("filter", filter);
    match candidates {
        Some(candidates) => asked.append("numCandidates", candidates as i32),
        None => asked.append("exact", true),
    };
    Request::parse(asked.as_ref()).expect("a request")
}

/// The score by the formulas of the documentation, in 64 bits.
fn score(similarity: &str, one: &[f64], other: &[f64]) -> Option<f64> {
    let dot: f64 = one.iter().zip(other).map(|(a, b)| a * b).sum();
    let length = |vector: &[f64]| vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    let distance: f64 = one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum();
    match similarity {
        "cosine" if length(one) == 0.0 || length(other) == 0.0 => None,
        "cosine" => Some(f64::midpoint(1.0, dot / length(one) / length(other))),
        "euclidean" => Some(1.0 / (1.0 + distance)),
        _ => Some(f64::midpoint(1.0, dot).max(0.0)),
    }
}

/// A condition, which is written as a filter and evaluated by the model.
#[derive(Clone, Debug)]
enum Condition {
    Equal(i32),
    Less(i32),
    AtLeast(i32),
    Among(Vec<i32>),
    Exists(bool),
    Tag(i32),
    Not(Box<Condition>),
    Any(Vec<Condition>),
    All(Vec<Condition>),
}

impl Condition {
    fn filter(&self) -> DocumentBuf {
        let on = |field: &str, operator: DocumentBuf| DocumentBuf::new().with(field, &operator);
        let several = |name: &str, parts: &[Self]| {
            let parts: ArrayBuf = parts.iter().map(Self::filter).collect::<Vec<_>>().iter().collect();
            DocumentBuf::new().with(name, &parts)
        };
        match self {
            Self::Equal(n) => DocumentBuf::new().with("n", f64::from(*n)),
            Self::Less(n) => on("n", DocumentBuf::new().with("$lt", *n)),
            Self::AtLeast(n) => on("n", DocumentBuf::new().with("$gte", i64::from(*n))),
            Self::Among(several) => {
                let several: ArrayBuf = several.iter().copied().collect();
                on("n", DocumentBuf::new().with("$in", &several))
            }
            Self::Exists(exists) => on("n", DocumentBuf::new().with("$exists", *exists)),
            Self::Tag(tag) => DocumentBuf::new().with("t", *tag),
            Self::Not(inner) => several("$nor", std::slice::from_ref(inner)),
            Self::Any(parts) => several("$or", parts),
            Self::All(parts) => several("$and", parts),
        }
    }

    fn holds(&self, n: Option<i32>, tags: &[i32]) -> bool {
        match self {
            Self::Equal(value) => n == Some(*value),
            Self::Less(value) => n.is_some_and(|n| n < *value),
            Self::AtLeast(value) => n.is_some_and(|n| n >= *value),
            Self::Among(values) => n.is_some_and(|n| values.contains(&n)),
            Self::Exists(exists) => n.is_some() == *exists,
            Self::Tag(tag) => tags.contains(tag),
            Self::Not(inner) => !inner.holds(n, tags),
            Self::Any(parts) => parts.iter().any(|part| part.holds(n, tags)),
            Self::All(parts) => parts.iter().all(|part| part.holds(n, tags)),
        }
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let leaf = prop_oneof![
        (0..6).prop_map(Condition::Equal),
        (0..6).prop_map(Condition::Less),
        (0..6).prop_map(Condition::AtLeast),
        prop::collection::vec(0..6, 1..4).prop_map(Condition::Among),
        any::<bool>().prop_map(Condition::Exists),
        (0..4).prop_map(Condition::Tag),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Condition::Not(Box::new(inner))),
            prop::collection::vec(inner.clone(), 1..3).prop_map(Condition::Any),
            prop::collection::vec(inner, 1..3).prop_map(Condition::All),
        ]
    })
}

type Made = (Vec<f64>, Option<i32>, Vec<i32>);

fn made() -> impl Strategy<Value = Made> {
    let vector = prop::collection::vec((-4..=4).prop_map(|x| f64::from(x) / 4.0), 5);
    (vector, prop::option::of(0..6), prop::collection::vec(0..4, 0..3))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn searches_agree_with_the_model(
        writes in prop::collection::vec((0..40_u64, prop::option::weighted(0.8, made())), 1..80),
        query in prop::collection::vec((-4..=4).prop_map(|x| f64::from(x) / 4.0), 5),
        condition in condition(),
        limit in 1..12_usize,
        similarity in 0..3_usize,
    ) {
        let similarity = SIMILARITIES[similarity];
        prop_assume!(similarity != "cosine" || query.iter().any(|x| *x != 0.0));
        let definition = Definition::of(definition(5, similarity).as_ref());
        let mut table = Table::new(definition.clone());
        let mut model: BTreeMap<u64, Made> = BTreeMap::new();
        for (record, write) in writes {
            match write {
                Some(made) => {
                    table.put(record, document(&made.0, made.1, &made.2).as_ref());
                    model.insert(record, made);
                }
                None => {
                    table.remove(record);
                    model.remove(&record);
                }
            }
        }
        let mut expected: Vec<f64> = model.values()
            .filter(|(_, n, tags)| condition.holds(*n, tags))
            .filter_map(|(vector, ..)| score(similarity, &query, vector))
            .collect();
        expected.sort_by(|one, other| other.total_cmp(one));
        expected.truncate(limit);
        let operation = OperationContext::unlimited();
        for candidates in [None, Some(limit)] {
            let request = request(&query, limit, candidates, &condition.filter());
            let found = table.search(&request, &operation).unwrap();
            let mut scan = Scan::new(&definition, &request).unwrap();
            for (record, (vector, n, tags)) in &model {
                scan.visit(*record, document(vector, *n, tags).as_ref());
            }
            for hits in [found, scan.into_hits()] {
                let scores: Vec<f64> = hits.iter().map(|hit| f64::from(hit.score)).collect();
                prop_assert_eq!(scores.len(), expected.len());
                for (score, expected) in scores.iter().zip(&expected) {
                    prop_assert!((score - expected).abs() < 1e-5, "{:?} {:?}", scores, expected);
                }
                let records: BTreeSet<u64> = hits.iter().map(|hit| hit.record).collect();
                prop_assert_eq!(records.len(), hits.len());
                for hit in &hits {
                    let (vector, n, tags) = &model[&hit.record];
                    prop_assert!(condition.holds(*n, tags));
                    let own = score(similarity, &query, vector).unwrap();
                    prop_assert!((own - f64::from(hit.score)).abs() < 1e-5);
                }
            }
        }
    }
}

#[test]
fn a_graph_finds_nearly_what_is_nearest_and_never_what_a_filter_leaves_out() {
    let dimensions = 16;
    let operation = OperationContext::unlimited();
    let mut random = Random(7);
    let mut coordinate = || random.fraction() * 2.0 - 1.0;
    let mut table = Table::new(Definition::of(definition(dimensions, "euclidean").as_ref()));
    let count = GRAPH_FROM as u64 + 2_000;
    for record in 0..count {
        let vector: Vec<f64> = (0..dimensions).map(|_| coordinate()).collect();
        table.put(record, document(&vector, Some((record % 4) as i32), &[]).as_ref());
    }
    assert_eq!(table.outside_graphs() as u64, count);
    while table.grow() == Growing::On {}
    assert_eq!(table.outside_graphs(), 0);
    // Some vectors are not in the graph, and some documents are removed.
    for record in 0..500 {
        table.remove(record);
        let vector: Vec<f64> = (0..dimensions).map(|_| coordinate()).collect();
        table.put(count + record, document(&vector, Some((record % 4) as i32), &[]).as_ref());
    }
    assert_eq!(table.outside_graphs(), 500);
    let (mut met, mut all) = (0, 0);
    for filter in [DocumentBuf::new(), Condition::Less(2).filter()] {
        for _ in 0..50 {
            let query: Vec<f64> = (0..dimensions).map(|_| coordinate()).collect();
            let search = |candidates| {
                let hits = table.search(&request(&query, 10, candidates, &filter), &operation).unwrap();
                assert_eq!(hits.len(), 10);
                assert!(hits.iter().all(|hit| hit.record >= 500 && (filter.as_ref().is_empty() || hit.record % 4 < 2)));
                assert!(hits.is_sorted_by(|one, next| one.score >= next.score));
                hits.iter().map(|hit| hit.record).collect::<BTreeSet<_>>()
            };
            let (exact, approximate) = (search(None), search(Some(100)));
            met += exact.intersection(&approximate).count();
            all += exact.len();
        }
    }
    assert!(met * 100 >= all * 95, "{met} of {all}");
}

#[test]
fn a_search_ends_with_its_operation() {
    struct Killed;
    impl bunko_operation::Interruption for Killed {
        fn reason(&self) -> Option<bunko_errors::Failure> {
            Some(bunko_errors::Failure::bad_value("killed"))
        }
    }
    let operation = OperationContext::new(std::sync::Arc::new(Killed), bunko_operation::MemoryLimits::none());
    let mut table = Table::new(Definition::of(definition(2, "euclidean").as_ref()));
    for record in 0..50_000 {
        table.put(record, document(&[record as f64, 1.0], None, &[]).as_ref());
    }
    let request = request(&[0.0, 0.0], 3, None, &DocumentBuf::new());
    assert!(table.search(&request, &operation).is_err());
}
