//! A simplified filter matches the same documents as the original, and an implied one matches them too, whatever arrays lie
//! on their paths.

use bunko_bson::{DocumentBuf, StringOrder, ValueRef};
use bunko_matcher::{Filter, implies};
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

/// Conditions that often decide each other if they are on one path.
const POINTED: [&str; 9] = [
    "{$exists: true}",
    "{$exists: true}",
    "{$exists: false}",
    "{$ne: null}",
    "{$ne: null}",
    "null",
    "{$eq: /^a/}",
    "{$in: [1, /^a/]}",
    "1",
];

/// Two conditions on one path.
fn pair(random: &mut Random) -> String {
    let path = random.pick(&["a", "a.b"]);
    let [one, other] = [random.pick(&POINTED), random.pick(&POINTED)];
    format!("{{{}: [{{'{path}': {one}}}, {{'{path}': {other}}}]}}", random.pick(&["$and", "$or", "$nor"]))
}

fn condition(random: &mut Random) -> String {
    let path = random.pick(&["a", "a", "a", "a.b", "c"]);
    condition_at(path, random)
}

fn condition_at(path: &str, random: &mut Random) -> String {
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
    format!("{{'{path}': {operators}}}")
}

fn filter(random: &mut Random, depth: u64) -> String {
    if depth == 0 || random.one_in(3) {
        return if random.one_in(6) { pair(random) } else { condition(random) };
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

    /// Makes a filter.
    fn next(&mut self) -> Filter {
        let text = filter(&mut self.random, 3);
        self.parsed(&text)
    }

    /// Makes two conditions on one path; the first may imply the second.
    fn next_pair(&mut self) -> [Filter; 2] {
        let path = self.random.pick(&["a", "a.b"]);
        [(); 2].map(|()| {
            let text = condition_at(path, &mut self.random);
            self.parsed(&text)
        })
    }

    fn parsed(&mut self, text: &str) -> Filter {
        let strings = &self.orders[usize::from(self.random.one_in(3))];
        Filter::parse_collated(parsed(text).as_ref(), strings).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Finds a document that only one of two filters matches.
    fn differing(&self, one: &Filter, other: &Filter) -> Option<&DocumentBuf> {
        self.documents.iter().find(|document| matches(one, document) != matches(other, document))
    }

    /// Finds a document for which the simplified filter, or explain's form of it, decides otherwise than the sent
    /// filter.
    fn changed(&self, sent: &Filter, simplified: &Filter) -> Option<&DocumentBuf> {
        self.differing(sent, simplified).or_else(|| self.differing(sent, &shown(simplified)))
    }

    /// Finds a document that matches the first filter and not the second: then the first does not imply the second.
    fn refuting(&self, [premise, conclusion]: &[Filter; 2]) -> Option<&DocumentBuf> {
        self.documents.iter().find(|document| matches(premise, document) && !matches(conclusion, document))
    }
}

fn matches(filter: &Filter, document: &DocumentBuf) -> bool {
    filter.try_matches(document.as_ref()).expect("nothing fails")
}

/// Whether a partial index with the second filter serves the first.
fn is_implied([premise, conclusion]: &[Filter; 2]) -> bool {
    implies(std::slice::from_ref(premise.root()), premise.strings(), conclusion)
}

fn simplified(filter: &Filter) -> Filter {
    let mut simplified = filter.clone();
    simplified.simplify();
    simplified
}

/// A filter as explain shows it to a client, who may send it again.
fn shown(filter: &Filter) -> Filter {
    let document = filter.to_document();
    Filter::parse_collated(document.as_ref(), filter.strings()).unwrap_or_else(|error| panic!("{document:?}: {error}"))
}

#[test]
fn simplified_filters_match_the_same_documents() {
    let mut cases = Cases::new();
    let (mut smaller, mut constant) = (0, 0);
    for number in 0..FILTERS {
        let sent = cases.next();
        let simplified = simplified(&sent);
        let (before, after) = (printed(&sent), printed(&simplified));
        if let Some(document) = cases.changed(&sent, &simplified) {
            let document = shell::print(ValueRef::Document(document.as_ref()));
            panic!("filter {number}: {before} became {after}, which differs for {document}");
        }
        smaller += u64::from(after.len() < before.len());
        constant += u64::from(after.contains("$always"));
    }
    assert!(smaller > FILTERS / 5 && constant > FILTERS / 100, "{smaller} became smaller, {constant} constant");
}

#[test]
fn implied_filters_match_the_same_documents() {
    let mut cases = Cases::new();
    let mut implied = 0;
    for number in 0..FILTERS {
        let pair = cases.next_pair();
        if !is_implied(&pair) {
            continue;
        }
        implied += 1;
        if let Some(document) = cases.refuting(&pair) {
            let ([premise, conclusion], document) = (pair.each_ref().map(printed), document.as_ref());
            panic!("pair {number}: {premise} does not imply {conclusion}: {}", shell::print(document.into()));
        }
    }
    assert!(implied > FILTERS / 50, "{implied} are implied");
}

#[cfg(debug_assertions)]
#[test]
fn each_planted_fault_turns_red_the_agreement_of_filters() {
    use bunko_matcher::planted::{self, Guard};
    let mut cases = Cases::new();
    let mut hidden: Vec<_> = planted::guarded_by(Guard::Filters).collect();
    for _ in 0..FILTERS {
        let (sent, pair) = (cases.next(), cases.next_pair());
        let agrees = || {
            cases.changed(&sent, &simplified(&sent)).is_none()
                && (!is_implied(&pair) || cases.refuting(&pair).is_none())
        };
        hidden.retain(|fault| !planted::is_found(*fault, agrees));
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
        ("{$nor: [{a: {$gt: 5}, b: {$ne: 1}}]}", "{$or: [{b: {$eq: 1}}, {a: {$not: {$gt: 5}}}]}"),
        (
            "{$nor: [{a: {$gt: 5}, b: {$lt: 1}}, {c: 1}]}",
            "{$and: [{$or: [{b: {$not: {$lt: 1}}}, {a: {$not: {$gt: 5}}}]}, {c: {$not: {$eq: 1}}}]}",
        ),
        ("{$nor: [{a: 5, b: {$lt: 1}}]}", "{$nor: [{$and: [{a: {$eq: 5}}, {b: {$lt: 1}}]}]}"),
        ("{a: {$not: {$gt: 5, $lt: 9}}}", "{$nor: [{$and: [{a: {$lt: 9}}, {a: {$gt: 5}}]}]}"),
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
