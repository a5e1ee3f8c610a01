//! A simplified filter matches the same documents as the original, whatever arrays lie on its paths.

use bunko_bson::{DocumentBuf, StringOrder, ValueRef};
use bunko_matcher::Filter;
use bunko_testkit::collators::WithoutCase;
use bunko_testkit::random::Random;
use bunko_testkit::shell;
use std::sync::Arc;

const FILTERS: u64 = 12_000;

/// Few values, so that conditions of a filter often have to do with each other.
const VALUES: [&str; 19] = [
    "/^a/",
    "1",
    "1",
    "2",
    "2",
    "3",
    "1.0",
    "2.5",
    "null",
    "undefined",
    "'a'",
    "'A'",
    "'b'",
    "NaN",
    "[]",
    "[1, 3]",
    "[[1]]",
    "{b: 1}",
    "[{b: 1}, {b: 3}]",
];
const OPERANDS: [&str; 14] =
    ["1", "1", "2", "2", "3", "1.0", "null", "'a'", "'A'", "NaN", "[1, 3]", "{b: 1}", "MinKey", "MaxKey"];

fn condition(random: &mut Random) -> String {
    let (operand, other) = (random.pick(&OPERANDS), random.pick(&OPERANDS));
    let operators = match random.below(17) {
        0 => format!("{{$gt: {operand}}}"),
        1 => format!("{{$gte: {operand}}}"),
        2 => format!("{{$lt: {operand}}}"),
        3 => format!("{{$lte: {operand}}}"),
        4 | 5 => format!("{{$ne: {operand}}}"),
        6 => format!("{{$in: [{operand}, {other}]}}"),
        7 => format!("{{$nin: [{operand}, {other}, /^a/]}}"),
        8 => format!("{{$exists: {}}}", random.one_in(2)),
        9 => format!("{{$type: {}}}", random.pick(&["'number'", "['int', 'string']", "'array'"])),
        10 => format!("{{$not: {{$gt: {operand}, $lt: {other}}}}}"),
        11 => format!("{{$elemMatch: {{$gt: {operand}}}}}"),
        12 => random.pick(&["{$size: 2}", "{$mod: [2, 1]}", "{$all: [1, 3]}"]).to_owned(),
        14 => random.pick(&["/^a/", "/^a/i", "{$in: [/^a/, 1]}", "{$in: [/^a/i, 1]}", "{$eq: /^a/}"]).to_owned(),
        13 => format!("{{$gte: {operand}, $lte: {other}}}"),
        _ => operand.to_owned(),
    };
    format!("{{'{}': {operators}}}", random.pick(&["a", "a", "a", "a.b", "c"]))
}

fn filter(random: &mut Random, depth: u64) -> String {
    if depth == 0 || random.one_in(3) {
        return condition(random);
    }
    let mut parts: Vec<_> = (0..=random.below(3)).map(|_| filter(random, depth - 1)).collect();
    // Repeated and absorbed conditions.
    if random.one_in(3) {
        let repeated = random.below(parts.len() as u64) as usize;
        let again = match random.below(3) {
            0 => parts[repeated].clone(),
            1 => format!("{{$nor: [{}]}}", parts[repeated]),
            _ => format!("{{{}: [{}, {}]}}", random.pick(&["$and", "$or"]), parts[repeated], condition(random)),
        };
        parts.push(again);
    }
    format!("{{{}: [{}]}}", random.pick(&["$and", "$and", "$or", "$or", "$nor"]), parts.join(", "))
}

fn document(random: &mut Random) -> DocumentBuf {
    let mut fields = Vec::new();
    for name in ["a", "c"] {
        if !random.one_in(5) {
            fields.push(format!("{name}: {}", random.pick(&VALUES)));
        }
    }
    parsed(&format!("{{{}}}", fields.join(", ")))
}

fn parsed(text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn printed(filter: &Filter) -> String {
    shell::print(ValueRef::Document(filter.to_document().as_ref()))
}

/// Filters and the documents that they are matched against.
struct Cases {
    random: Random,
    documents: Vec<DocumentBuf>,
    orders: [StringOrder; 2],
}

impl Cases {
    fn new() -> Self {
        let mut random = Random(37);
        let documents = (0..200).map(|_| document(&mut random)).collect();
        Self { random, documents, orders: [StringOrder::BYTES.clone(), StringOrder::collated(Arc::new(WithoutCase))] }
    }

    /// A filter.
    fn next(&mut self) -> Filter {
        let text = filter(&mut self.random, 3);
        let strings = &self.orders[usize::from(self.random.one_in(3))];
        Filter::parse_collated(parsed(&text).as_ref(), strings).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// A document that only one of two filters matches.
    fn differing(&self, one: &Filter, other: &Filter) -> Option<&DocumentBuf> {
        let of =
            |filter: &Filter, document: &DocumentBuf| filter.try_matches(document.as_ref()).expect("nothing fails");
        self.documents.iter().find(|document| of(one, document) != of(other, document))
    }
}

fn simplified(filter: &Filter) -> Filter {
    let mut simplified = filter.clone();
    simplified.simplify();
    simplified
}

#[test]
fn simplified_filters_match_the_same_documents() {
    let mut cases = Cases::new();
    let (mut smaller, mut constant) = (0, 0);
    for number in 0..FILTERS {
        let sent = cases.next();
        let simplified = simplified(&sent);
        let (before, after) = (printed(&sent), printed(&simplified));
        if let Some(document) = cases.differing(&sent, &simplified) {
            let document = shell::print(ValueRef::Document(document.as_ref()));
            panic!("filter {number}: {before} became {after}, which differs for {document}");
        }
        smaller += u64::from(after.len() < before.len());
        constant += u64::from(after.contains("$always"));
    }
    assert!(smaller > FILTERS / 5 && constant > FILTERS / 100, "{smaller} became smaller, {constant} constant");
}

#[cfg(debug_assertions)]
#[test]
fn each_planted_fault_turns_red_the_agreement_of_filters() {
    use bunko_matcher::planted::{self, Guard};
    let mut cases = Cases::new();
    let mut hidden: Vec<_> = planted::guarded_by(Guard::Filters).collect();
    for _ in 0..FILTERS {
        let sent = cases.next();
        hidden.retain(|fault| !planted::is_found(*fault, || cases.differing(&sent, &simplified(&sent)).is_none()));
        if hidden.is_empty() {
            return;
        }
    }
    panic!("no filter finds {hidden:?}");
}

#[test]
fn what_is_simplified() {
    for (sent, simplified) in [
        ("{$or: [{a: 1}, {a: 2}, {b: 1}]}", "{$or: [{b: {$eq: 1}}, {a: {$in: [1, 2]}}]}"),
        ("{$or: [{a: 1}, {a: {$in: [2, 1]}}]}", "{a: {$in: [1, 2]}}"),
        ("{$and: [{a: {$gt: 5}}, {a: {$gt: 3}}]}", "{a: {$gt: 5}}"),
        ("{$or: [{a: {$gt: 5}}, {a: {$gt: 3}}]}", "{a: {$gt: 3}}"),
        ("{$and: [{a: {$gt: 5}}, {a: {$lt: 3}}]}", "{$and: [{a: {$lt: 3}}, {a: {$gt: 5}}]}"),
        ("{$and: [{a: 1}, {a: {$ne: 1}}]}", "{$alwaysFalse: 1}"),
        ("{$or: [{a: 1}, {a: {$ne: 1}}]}", "{$alwaysTrue: 1}"),
        ("{$and: [{a: 5}, {$nor: [{a: {$gt: 3}}, {b: 1}]}]}", "{$alwaysFalse: 1}"),
        ("{$nor: [{$nor: [{a: 1}, {b: 1}]}]}", "{$or: [{a: {$eq: 1}}, {b: {$eq: 1}}]}"),
        ("{$nor: [{a: {$ne: 1}}]}", "{a: {$eq: 1}}"),
        ("{$and: [{a: 1}, {$or: [{a: 1}, {b: 1}]}]}", "{a: {$eq: 1}}"),
        ("{$or: [{a: 1}, {a: 1, b: 1}]}", "{a: {$eq: 1}}"),
        ("{$and: [{a: {$size: 1}}, {a: {$exists: true}}]}", "{$and: [{a: {$size: 1}}, {a: {$exists: true}}]}"),
        ("{a: 1, b: {$gt: 1}}", "{$and: [{a: {$eq: 1}}, {b: {$gt: 1}}]}"),
    ] {
        let mut filter = Filter::parse(parsed(sent).as_ref()).expect("a filter");
        filter.simplify();
        assert_eq!(printed(&filter), simplified, "{sent}");
    }
}
