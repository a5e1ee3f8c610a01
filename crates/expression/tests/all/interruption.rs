//! Expressions over large values check often whether the operation has to stop.

use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_errors::{ErrorCode, Failure};
use bunko_expression::{EvaluationContext, Expression, ParseScope, Variables};
use bunko_operation::{Interruption, MemoryLimits, OperationContext};
use bunko_testkit::shell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The check at which the operation is told to stop.
const STOPPED_AT: u32 = 20;

/// Counts the checks, and stops the operation at the [`STOPPED_AT`]th.
#[derive(Default)]
struct StopsLater(AtomicU32);

impl Interruption for StopsLater {
    fn reason(&self) -> Option<Failure> {
        let checks = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        (checks >= STOPPED_AT).then(|| Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted"))
    }
}

/// Large values of every kind: an array of integers, of pairs and of documents, a document, a text, zeros.
fn large() -> DocumentBuf {
    let integers: ArrayBuf = (0..20_000).map(|n: i32| n.wrapping_mul(7919)).collect();
    let mut object = DocumentBuf::new();
    let (mut pairs, mut objects, mut zeros) = (ArrayBuf::new(), ArrayBuf::new(), ArrayBuf::new());
    for n in 0..5_000_i32 {
        let name = format!("field{n}");
        object.append(&name, n);
        pairs.push(&DocumentBuf::new().with("k", &name).with("v", n));
        objects.push(&DocumentBuf::new().with("a", n));
        zeros.push(0_i32);
    }
    DocumentBuf::new()
        .with("object", &object)
        .with("integers", &integers)
        .with("others", &integers)
        .with("pairs", &pairs)
        .with("objects", &objects)
        .with("zeros", &zeros)
        .with("text", &"ab ".repeat(100_000))
        .with("blanks", &" ".repeat(300_000))
        .with("date", ValueRef::DateTime(0))
        .with("binary", ValueRef::Binary { subtype: 0, bytes: &vec![7; 100_000] })
}

/// Expressions that take long on the fields of [`large`].
const LONG: &[&str] = &[
    "{$allElementsTrue: ['$pairs']}",
    "{$anyElementTrue: ['$zeros']}",
    "{$arrayElemAt: ['$integers', -1]}",
    "{$arrayToObject: '$pairs'}",
    "{$avg: '$integers'}",
    "{$cmp: ['$integers', {$concatArrays: ['$others', [1]]}]}",
    "{$concat: ['$text', '$text']}",
    "{$concatArrays: ['$integers', '$integers']}",
    "{$convert: {input: '$binary', to: 'string', format: 'base64'}}",
    "{$dateFromString: {dateString: '$text', onError: 1}}",
    "{$dateToString: {date: '$date', format: '$text'}}",
    "{$eq: ['$integers', {$concatArrays: ['$others', []]}]}",
    "{$filter: {input: '$integers', cond: {$gt: ['$$this', 5]}}}",
    "{$getField: {field: 'field4999', input: '$object'}}",
    "{$in: [-1, '$integers']}",
    "{$indexOfArray: ['$integers', -1]}",
    "{$indexOfBytes: ['$text', 'zz']}",
    "{$indexOfCP: ['$text', 'zz']}",
    "{$last: '$integers'}",
    "{$let: {vars: {x: '$integers'}, in: {$concatArrays: ['$$x', [1]]}}}",
    "{$let: {vars: {x: '$integers'}, in: '$$x'}}",
    "{$ltrim: {input: '$blanks'}}",
    "{$map: {input: '$integers', in: {$add: ['$$this', 1]}}}",
    "{$max: '$integers'}",
    "{$mergeObjects: ['$object', {a: 1}]}",
    "{$min: '$integers'}",
    "{$objectToArray: '$object'}",
    "{$range: [0, 100000]}",
    "{$reduce: {input: '$integers', initialValue: 0, in: {$add: ['$$value', '$$this']}}}",
    "{$reduce: {input: '$integers', initialValue: [], in: {$concatArrays: ['$$value', ['$$this']]}}}",
    "{$reduce: {input: '$objects', initialValue: {}, in: {$mergeObjects: ['$$value', '$$this']}}}",
    "{$regexFind: {input: '$text', regex: 'zz'}}",
    "{$regexFindAll: {input: '$text', regex: ''}}",
    "{$regexFindAll: {input: '$text', regex: 'a'}}",
    "{$regexMatch: {input: '$text', regex: 'zz'}}",
    "{$replaceAll: {input: '$text', find: 'a', replacement: 'b'}}",
    "{$replaceOne: {input: '$text', find: 'zz', replacement: 'b'}}",
    "{$reverseArray: '$integers'}",
    "{$rtrim: {input: '$blanks'}}",
    "{$setDifference: ['$integers', '$zeros']}",
    "{$setEquals: ['$integers', '$others']}",
    "{$setField: {field: 'a', input: '$object', value: 1}}",
    "{$setIntersection: ['$integers', '$others']}",
    "{$setIsSubset: ['$integers', '$others']}",
    "{$setUnion: ['$integers', '$others']}",
    "{$size: '$integers'}",
    "{$slice: ['$integers', 1, 10000]}",
    "{$sortArray: {input: '$integers', sortBy: 1}}",
    "{$sortArray: {input: '$objects', sortBy: {a: -1}}}",
    "{$split: ['$text', 'a']}",
    "{$stdDevPop: '$integers'}",
    "{$stdDevSamp: '$integers'}",
    "{$strLenCP: '$text'}",
    "{$strcasecmp: ['$text', '$text']}",
    "{$substrBytes: ['$text', 1, 200000]}",
    "{$substrCP: ['$text', 1, 200000]}",
    "{$sum: '$integers'}",
    "{$sum: {$map: {input: {$range: [0, 100000]}, in: {$multiply: ['$$this', 2]}}}}",
    "{$toLower: '$text'}",
    "{$toString: '$text'}",
    "{$toUpper: '$text'}",
    "{$trim: {input: '$blanks'}}",
    "{$trim: {input: '$blanks', chars: '$text'}}",
    "{$unsetField: {field: 'a', input: '$object'}}",
    "{$zip: {inputs: ['$integers', '$others']}}",
    "{all: '$integers', text: '$text'}",
    "['$integers', '$text']",
    "'$object.field4999'",
    "'$objects.a'",
];

fn evaluate(source: &str, document: &DocumentBuf, operation: &Arc<OperationContext>) -> Result<(), Failure> {
    let source = shell::parse_value(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let variables = Variables::new();
    let expression = Expression::parse(source.as_ref(), &ParseScope::new(&variables).counted_for(operation))?;
    expression.evaluate(&EvaluationContext::new(document.as_ref(), &variables, 0, operation)).map(|_| ())
}

#[test]
fn expressions_over_large_values_stop_when_told() {
    let document = large();
    for expression in LONG {
        evaluate(expression, &document, &OperationContext::unlimited()).unwrap_or_else(|e| panic!("{expression}: {e}"));
        let many = format!("{{$size: [{{$map: {{input: {{$range: [0, 1000000]}}, as: 'n', in: {expression}}}}}]}}");
        let operation = OperationContext::new(Arc::new(StopsLater::default()), MemoryLimits::none());
        // An expression that does not check whether it has to stop works for minutes here.
        let stopped = evaluate(&many, &document, &operation).expect_err(expression);
        assert_eq!(stopped.code(), ErrorCode::INTERRUPTED, "{expression}");
    }
}
