//! Generated pipelines give the same results as they were sent, rewritten, and rewritten without each rule: alone, and
//! inside `$facet`, `$lookup` and `$unionWith`. A rewrite may hide an error of a document that is dropped. It makes none.
//!
//! `BUNKO_RULES_PIPELINES` sets the number of pipelines, `BUNKO_SEED` the first seed.

mod generator;
#[cfg(debug_assertions)]
mod planted;

use crate::scripts::Collections;
use bunko_aggregate::{Documents, Environment, Pipeline, Plannable, Rewrites, RuleSet, Stage};
use bunko_bson::{DocumentBuf, StringOrder, ValueRef};
use bunko_errors::{ErrorCode, Failure};
use bunko_operation::OperationContext;
use bunko_query::QueryScope;
use bunko_testkit::collators::WithoutCase;
use bunko_testkit::random::Random;
use bunko_testkit::shell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Default number of pipelines. They follow from the seed, and each rule fires in some of them.
const PIPELINES: u64 = 1_000;
const DOCUMENTS: u64 = 40;

fn parsed(text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

struct World {
    collection: Vec<DocumentBuf>,
    other: Vec<DocumentBuf>,
    strings: StringOrder,
}

impl World {
    fn new(random: &mut Random) -> Self {
        let mut documents = |count: u64| (0..count).map(|id| parsed(&generator::document(id, random))).collect();
        let (collection, other) = (documents(DOCUMENTS), documents(DOCUMENTS / 4));
        let strings =
            if random.one_in(4) { StringOrder::collated(Arc::new(WithoutCase)) } else { StringOrder::default() };
        Self { collection, other, strings }
    }

    /// The results, sorted, or the error; and the rules that fired.
    fn run(&self, stages: &str, rewrites: Rewrites) -> (Result<Vec<String>, Failure>, Vec<&'static str>) {
        let written = parsed(&format!("{{p: [{}]}}", stages.replace('\n', " ")));
        let stages = written.as_ref().get("p").and_then(ValueRef::as_array).expect("an array");
        let scope = QueryScope { strings: self.strings.clone(), ..QueryScope::new(0, OperationContext::unlimited()) };
        let collections =
            BTreeMap::from([("c".to_owned(), self.collection.clone()), ("other".to_owned(), self.other.clone())]);
        let environment =
            Environment::new(Arc::new(scope)).with_sources(Arc::new(Collections(collections))).with_rewrites(rewrites);
        let pipeline = match Pipeline::parse(stages, environment) {
            Ok(pipeline) => pipeline,
            Err(failure) => return (Err(failure), Vec::new()),
        };
        let mut stream = pipeline.open(Box::new(Documents::new(self.collection.clone())));
        let mut results = Vec::new();
        loop {
            match stream.next() {
                Ok(Some(document)) => results.push(shell::print(ValueRef::from(&document))),
                Ok(None) => break,
                Err(failure) => return (Err(failure), pipeline.rewrites().to_vec()),
            }
        }
        results.sort();
        (Ok(results), pipeline.rewrites().to_vec())
    }
}

/// The pipeline alone, and inside each stage that holds pipelines.
fn askings(stages: &str) -> [String; 4] {
    let first = "{$sort: {_id: 1}}, {$limit: 1}, {$project: {_id: 1}}";
    [
        stages.to_owned(),
        format!("{{$facet: {{f: [{stages}]}}}}, {{$unwind: '$f'}}, {{$replaceWith: '$f'}}"),
        format!(
            "{first}, {{$lookup: {{from: 'c', pipeline: [{stages}], as: 'f'}}}}, {{$unwind: '$f'}}, {{$replaceWith: '$f'}}"
        ),
        format!("{{$match: {{$alwaysFalse: 1}}}}, {{$unionWith: {{coll: 'c', pipeline: [{stages}]}}}}"),
    ]
}

/// Whether rewritten results are right. The rewrite may hide an error.
fn agree(results: &Result<Vec<String>, Failure>, expected: &Result<Vec<String>, Failure>) -> bool {
    match (results, expected) {
        (Ok(results), Ok(expected)) => results == expected,
        (_, Err(_)) => true,
        (Err(_), Ok(_)) => false,
    }
}

/// The results of a pipeline in all ways.
struct Seen {
    /// The results of the pipeline as it was sent.
    sent: Result<Vec<String>, Failure>,
    /// The rules that fired.
    fired: Vec<&'static str>,
    /// The first way with other results.
    difference: Option<String>,
}

impl World {
    /// Runs a pipeline as it was sent, rewritten, and rewritten without each rule.
    fn compare(&self, stages: &str) -> Seen {
        let (sent, _) = self.run(stages, Rewrites::Off);
        let mut seen = Seen { sent, fired: Vec::new(), difference: None };
        for (asking, stages) in askings(stages).iter().enumerate() {
            let own = (asking > 0).then(|| self.run(stages, Rewrites::Off).0);
            let expected = own.as_ref().unwrap_or(&seen.sent);
            let (all, rules) = self.run(stages, Rewrites::Applied);
            let mut ways = vec![("none", all)];
            if asking == 0 {
                seen.fired.clone_from(&rules);
                // Without a rule that has not fired, the pipeline is the same. Pipelines inside others have the same rules.
                for name in &rules {
                    let without = RuleSet::named([*name]).expect("the name of a rule");
                    ways.push((name, self.run(stages, Rewrites::Without(without)).0));
                }
            }
            if let Some((off, results)) = ways.iter().find(|(_, results)| !agree(results, expected)) {
                seen.difference =
                    Some(format!("off: {off}, fired: {rules:?}\n[{stages}]\n{results:?}\ninstead of\n{expected:?}"));
                break;
            }
        }
        seen
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |said| said.parse().expect("a number"))
}

#[test]
fn pipelines_give_the_same_with_each_rule_on_and_off() {
    let (seed, count) = (setting("BUNKO_SEED", 37), setting("BUNKO_RULES_PIPELINES", PIPELINES));
    let mut random = Random(seed);
    let mut world = World::new(&mut random);
    let (mut of_counts, mut of_sorts) = (Random(seed + 1), Random(seed + 2));
    let (mut fired, mut empty, mut failed) = (BTreeSet::new(), 0, 0);
    for number in 0..count {
        if number % 20 == 0 {
            world = World::new(&mut random);
        }
        let seen = world.compare(&generator::pipeline(&mut random).join(",\n "));
        assert!(seen.difference.is_none(), "pipeline {number} of seed {seed}, {}", seen.difference.unwrap_or_default());
        fired.extend(seen.fired);
        let special = match number % 8 {
            0 => Some(generator::counted(&mut of_counts)),
            4 => Some(generator::sorted_behind(&mut of_sorts)),
            _ => None,
        };
        if let Some(stages) = special {
            let seen = world.compare(&stages.join(",\n "));
            assert!(
                seen.difference.is_none(),
                "special pipeline {number} of seed {seed}, {}",
                seen.difference.unwrap_or_default()
            );
            fired.extend(seen.fired);
        }
        empty += u64::from(seen.sent.as_ref().is_ok_and(Vec::is_empty));
        failed += u64::from(seen.sent.is_err());
    }
    let silent: Vec<_> = RuleSet::names().filter(|name| !fired.contains(name)).collect();
    println!("{count} pipelines from seed {seed}; {empty} found nothing, {failed} failed");
    assert!(silent.is_empty(), "rules that never fired: {silent:?}");
    assert!(empty * 3 < count * 2 && failed * 3 < count, "{empty} found nothing, {failed} failed");
}

/// Rules may hide an error of a document that a later filter drops, but not these. MongoDB hides the error of a sort if a
/// filter drops its document, or if another sort follows at once.
#[test]
fn no_rule_hides_errors_that_mongodb_reports() {
    let mut world = World::new(&mut Random(1));
    world.collection = vec![parsed("{_id: 1, k: [1, 2], l: [1, 2], d: 5}"), parsed("{_id: 2, k: 1, l: 1, d: {e: 1}}")];
    let arrays = Some(ErrorCode::BAD_VALUE);
    for (stages, expected) in [
        ("{$sort: {k: 1, l: 1}}, {$count: 'n'}", arrays),
        ("{$sort: {k: 1, l: 1}}, {$project: {n: 1}}, {$sort: {_id: 1}}", arrays),
        ("{$sort: {k: 1, l: 1}}, {$unwind: '$k'}, {$sort: {_id: 1}}", arrays),
        ("{$sort: {k: 1, l: 1}}, {$sort: {_id: 1}}", None),
        ("{$sort: {k: 1, l: 1}}, {$match: {k: {$size: 0}}}, {$count: 'n'}", None),
        ("{$unwind: '$x'}, {$sort: {k: 1, l: 1}}", None),
        ("{$unwind: {path: '$x', preserveNullAndEmptyArrays: true}}, {$sort: {k: 1, l: 1}}", arrays),
        ("{$set: {w: 1}}, {$sort: {k: 1, l: 1}}, {$limit: 1}", arrays),
        ("{$set: {w: '$k'}}, {$sort: {'k.e': 1, 'w.f': 1}}, {$limit: 1}", arrays),
        ("{$sort: {'k.e': 1, 'k.f': 1}}, {$set: {w: '$k'}}, {$sort: {'k.e': 1, 'w.f': 1}}", arrays),
        ("{$replaceRoot: {newRoot: '$d'}}, {$match: {e: 1}}", Some(ErrorCode(40228))),
        ("{$set: {w: {$add: ['$k', 1]}}}, {$count: 'n'}", Some(ErrorCode::TYPE_MISMATCH)),
        ("{$replaceWith: '$d'}, {$count: 'n'}", Some(ErrorCode(40228))),
        ("{$set: {w: '$k'}}, {$project: {w: 1}}, {$count: 'n'}", None),
    ] {
        let (results, _) = world.run(stages, Rewrites::Applied);
        assert_eq!(results.err().map(|failure| failure.code()), expected, "{stages}");
    }
}

#[test]
fn rewriting_a_huge_pipeline_stops_and_says_so() {
    let world = World::new(&mut Random(1));
    let branches: Vec<_> = (0..5_000).map(|number| format!("{{k: {number}}}")).collect();
    let mut stages: Vec<_> = (0..300).map(|number| format!("{{$set: {{x{number}: 1}}}}")).collect();
    stages.push(format!("{{$match: {{$or: [{}]}}}}", branches.join(", ")));
    stages.push("{$match: {n: 1}}".into());
    let stages = stages.join(", ");
    let (results, rules) = world.run(&stages, Rewrites::Applied);
    assert_eq!(rules, ["matchBeforeReshape", "stopped"]);
    assert_eq!(results.ok(), world.run(&stages, Rewrites::Off).0.ok());
}

/// Each condition moves alone, and the joined collection gets all of them. A pipeline has at most a thousand stages, and a
/// filter a limited depth.
#[test]
fn a_join_and_a_union_take_thousands_of_conditions() {
    let world = World::new(&mut Random(1));
    let filter = |path: &str| {
        let conditions: Vec<_> = (0..1_500).map(|number| format!("{{{path}: {{$ne: {number}.5}}}}")).collect();
        format!("{{$match: {{$and: [{}]}}}}", conditions.join(", "))
    };
    let join = |pipeline: &str| {
        format!(
            "{{$lookup: {{from: 'other', localField: 'n', foreignField: 'n', as: 'j'{pipeline}}}}}, {{$unwind: '$j'}}, {}",
            filter("'j._id'")
        )
    };
    for (stages, rule) in [
        (join(""), "matchIntoLookup"),
        (join(", pipeline: [{$set: {x: 1}}]"), "matchIntoLookup"),
        (format!("{{$unionWith: 'other'}}, {}", filter("_id")), "matchIntoUnion"),
    ] {
        let (sent, _) = world.run(&stages, Rewrites::Off);
        let (rewritten, fired) = world.run(&stages, Rewrites::Applied);
        assert!(fired.contains(&rule) && !fired.contains(&"stopped"), "{fired:?}");
        assert_eq!(rewritten.expect("results"), sent.expect("results"));
    }
}

/// A condition is copied before the first of all stages that copy it, and not after each of them.
#[test]
fn copies_of_conditions_do_not_multiply() {
    let pair = |number: usize| format!("{{$redact: '$$KEEP'}}, {{$match: {{n: {{$gte: -{number}}}}}}}");
    let written = parsed(&format!("{{p: [{}]}}", (0..300).map(pair).collect::<Vec<_>>().join(", ")));
    let stages = written.as_ref().get("p").and_then(ValueRef::as_array).expect("an array");
    let scope = Arc::new(QueryScope::new(0, OperationContext::unlimited()));
    let pipeline = Pipeline::parse(stages, Environment::new(scope)).expect("parsed");
    let bytes_of_filter = |stage: &dyn Stage| match stage.plannable() {
        Plannable::Filter(filter) => filter.len_bytes(),
        _ => 0,
    };
    let bytes: usize = pipeline.stages().map(bytes_of_filter).sum();
    assert!((10_000..50_000).contains(&bytes), "{bytes} bytes of filters");
}
