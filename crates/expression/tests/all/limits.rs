//! Limits on the values that a few hundred bytes of expression may make: depth, length and size; and time in
//! proportion.

use bunko_bson::{DocumentBuf, ValueRef};
use bunko_errors::Failure;
use bunko_expression::projection::ProjectionKind;
use bunko_expression::{AccumulatorExpression, EvaluationContext, Expression, ParseScope, Projection, Variables};
use bunko_operation::OperationContext;
use bunko_testkit::cpu_time::CpuTime;
use bunko_testkit::shell;
use std::fmt::Write;
use std::time::Duration;

/// Maximum processor time of work in proportion to its length, in a debug build. Quadratic work would take more than a
/// minute.
const LINEAR: Duration = Duration::from_secs(10);

fn evaluate(source: ValueRef<'_>, document: &DocumentBuf) -> Result<String, Failure> {
    let (variables, operation) = (Variables::new(), OperationContext::unlimited());
    let expression = Expression::parse(source, &ParseScope::new(&variables))?;
    let context = EvaluationContext::new(document.as_ref(), &variables, 0, &operation);
    Ok(expression.evaluate(&context)?.get().map_or("missing".to_owned(), shell::print))
}

fn eval(source: &str) -> Result<String, (i32, String)> {
    let source = shell::parse_value(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    evaluate(source.as_ref(), &DocumentBuf::new()).map_err(|failure| (failure.code().0, failure.message().to_owned()))
}

fn code(source: &str) -> Option<i32> {
    eval(source).err().map(|(code, _)| code)
}

#[test]
fn values_nested_too_deep_are_refused_where_they_are_made() {
    let deep = |levels: usize, body: &str| {
        format!("{{$reduce: {{input: {{$range: [0, {levels}]}}, initialValue: {{}}, in: {body}}}}}")
    };
    for body in [
        "{a: '$$value'}",
        "['$$value']",
        "{$map: {input: [1], in: '$$value'}}",
        "{$mergeObjects: [{a: '$$value'}]}",
        "{$setField: {field: 'a', input: {}, value: '$$value'}}",
        "{$let: {vars: {x: '$$value'}, in: {a: '$$x'}}}",
    ] {
        assert_eq!(code(&format!("{{$cmp: [{}, 1]}}", deep(199, body))), None, "{body}");
        let (code, message) = eval(&deep(18_000, body)).expect_err(body);
        let expected = "cannot convert document to BSON because it exceeds the limit of 200 levels of nesting";
        assert_eq!((code, message.as_str()), (15, expected), "{body}");
    }
    let pairs = "{$arrayToObject: [[['k', '$$value']]]}";
    for body in [pairs, "{$zip: {inputs: [['$$value']]}}", "{a: [{b: '$$value'}]}", "{$objectToArray: {a: '$$value'}}"]
    {
        assert_eq!(code(&deep(18_000, body)), Some(15), "{body}");
    }
}

#[test]
fn computed_fields_lie_no_deeper_than_documents_may() {
    let document = DocumentBuf::new();
    let nested = |levels: usize, path: &str| {
        let deep = format!("{{$reduce: {{input: {{$range: [0, {levels}]}}, initialValue: {{}}, in: ['$$value']}}}}");
        let source = shell::parse_document(&format!("{{'{path}': {deep}}}")).expect("a projection");
        let (variables, operation) = (Variables::new(), OperationContext::unlimited());
        let projection = Projection::parse(source.as_ref(), ProjectionKind::Aggregate, &ParseScope::new(&variables));
        let context = EvaluationContext::new(document.as_ref(), &variables, 0, &operation);
        let mut bytes = Vec::new();
        projection.expect("parses").apply(&context, None, &mut bytes).map_err(|failure| failure.code().0)
    };
    assert_eq!(nested(198, "a"), Ok(()));
    assert_eq!(nested(199, "a"), Err(15));
    assert_eq!(nested(150, "a.b.c.d"), Ok(()));
    assert_eq!(nested(198, "a.b"), Err(15));
}

#[test]
fn strings_and_arrays_have_a_greatest_length() {
    let text = "{$reduce: {input: {$range: [0, 40]}, initialValue: 'x', in: {$concat: ['$$value', '$$value']}}}";
    assert_eq!(eval(text).expect_err("too long"), (16493, "Tried to create string longer than 16MB".to_owned()));
    let replaced = "{$reduce: {input: {$range: [0, 40]}, initialValue: 'xx',
                     in: {$replaceAll: {input: '$$value', find: 'x', replacement: '$$value'}}}}";
    assert_eq!(code(&replaced.replace('\n', " ")), Some(16493));
    let nothing = "{$let: {vars: {t: {$reduce: {input: {$range: [0, 20]}, initialValue: 'x', in: {$concat: ['$$value', '$$value']}}}},
                    in: {$replaceAll: {input: '$$t', find: '', replacement: '$$t'}}}}";
    assert_eq!(code(&nothing.replace('\n', " ")), Some(16493));
    let array = "{$size: {$reduce: {input: {$range: [0, 60]}, initialValue: [1], in: {$concatArrays: ['$$value', '$$value']}}}}";
    let message = "$concatArrays would use too much memory and cannot spill to disk. Memory limit: 104857600 bytes";
    assert_eq!(eval(array).expect_err("too large"), (146, message.to_owned()));
    let document = "{$reduce: {input: {$range: [0, 60]}, initialValue: 'some text', in: {a: '$$value', b: '$$value'}}}";
    assert_eq!(code(document), Some(146));
    let mapped =
        "{$let: {vars: {big: {$range: [0, 100000]}}, in: {$size: {$map: {input: {$range: [0, 200]}, in: '$$big'}}}}}";
    assert_eq!(code(mapped), Some(146));
}

#[test]
fn gathering_with_reduce_takes_linear_time() {
    let began = CpuTime::now();
    let numbers = "{$size: {$reduce: {input: {$range: [0, 200000]}, initialValue: [], in: {$concatArrays: ['$$value', ['$$this']]}}}}";
    assert_eq!(eval(numbers).as_deref(), Ok("200000"));
    let even = "{$size: {$reduce: {input: {$range: [0, 200000]}, initialValue: [],
                in: {$cond: [{$mod: ['$$this', 2]}, '$$value', {$concatArrays: ['$$value', ['$$this']]}]}}}}";
    assert_eq!(eval(&even.replace('\n', " ")).as_deref(), Ok("100000"));
    let text = "{$strLenBytes: {$reduce: {input: {$range: [0, 200000]}, initialValue: '', in: {$concat: ['$$value', 'abc']}}}}";
    assert_eq!(eval(text).as_deref(), Ok("600000"));
    assert!(began.elapsed() < LINEAR, "{:?}", began.elapsed());
}

#[test]
fn what_reduce_takes_apart_means_the_same() {
    let reduce = |initial: &str, body: &str| {
        eval(&format!("{{$reduce: {{input: [1, 2, 3], initialValue: {initial}, in: {body}}}}}"))
    };
    assert_eq!(reduce("[0]", "{$concatArrays: ['$$value', ['$$this']]}").as_deref(), Ok("[0, 1, 2, 3]"));
    assert_eq!(reduce("[0]", "{$concatArrays: ['$$value', '$$value']}").as_deref(), Ok("[0, 0, 0, 0, 0, 0, 0, 0]"));
    assert_eq!(reduce("[0]", "{$concatArrays: ['$$value', null]}").as_deref(), Ok("null"));
    assert_eq!(reduce("null", "{$concatArrays: ['$$value', [1]]}").as_deref(), Ok("null"));
    assert_eq!(reduce("'a'", "{$concat: ['$$value', 'b']}").as_deref(), Ok("\"abbb\""));
    assert_eq!(reduce("'a'", "{$concat: ['$$value', null]}").as_deref(), Ok("null"));
    assert_eq!(reduce("[0]", "{$concatArrays: ['$$value', 5]}").map_err(|(code, _)| code), Err(28664));
    assert_eq!(reduce("5", "{$concatArrays: ['$$value', [5]]}").map_err(|(code, _)| code), Err(28664));
    assert_eq!(reduce("'a'", "{$concat: ['$$value', 5]}").map_err(|(code, _)| code), Err(16702));
    assert_eq!(reduce("[]", "'$$value'").as_deref(), Ok("[]"));
    assert_eq!(reduce("[]", "'$$this'").as_deref(), Ok("3"));
}

#[test]
fn many_variables_and_fields_take_linear_time() {
    let began = CpuTime::now();
    let (mut variables, mut uses) = (String::new(), String::new());
    for number in 0..20_000 {
        write!(variables, "v{number}: {number}, ").expect("a string takes all");
        write!(uses, "f{number}: '$$v{number}', ").expect("a string takes all");
    }
    let many = format!("{{$size: {{$objectToArray: {{$let: {{vars: {{{variables}}}, in: {{{uses}}}}}}}}}}}");
    assert_eq!(eval(&many).as_deref(), Ok("20000"));
    assert!(began.elapsed() < LINEAR, "{:?}", began.elapsed());
}

#[test]
fn projections_of_many_fields_take_linear_time() {
    let began = CpuTime::now();
    let (mut names, mut document) = (DocumentBuf::new(), DocumentBuf::new());
    for number in 0..60_000 {
        names.append(&format!("f{number}"), 1_i32);
        document.append(&format!("f{}", 60_000 - number), number);
    }
    let (variables, operation) = (Variables::new(), OperationContext::unlimited());
    let scope = ParseScope::new(&variables);
    let context = EvaluationContext::new(document.as_ref(), &variables, 0, &operation);
    let count = |projection: &Projection| {
        let mut bytes = Vec::new();
        projection.apply(&context, None, &mut bytes).expect("applies");
        DocumentBuf::parse(bytes).expect("a document").as_ref().count()
    };
    let inclusion = Projection::parse(names.as_ref(), ProjectionKind::Aggregate, &scope).expect("parses");
    assert_eq!(count(&inclusion), 59_999);
    let addition = Projection::parse_addition(names.as_ref(), &scope).expect("parses");
    assert_eq!(count(&addition), 60_001);
    let paths: Vec<_> = (0..60_000).map(|number| format!("f{number}")).collect();
    let exclusion = Projection::excluding(paths.iter().map(String::as_str)).expect("parses");
    assert_eq!(count(&exclusion), 1);
    assert!(began.elapsed() < LINEAR, "{:?}", began.elapsed());
}

/// Feeds an accumulator with `value(0)`, `value(1)` and so on, `count` documents; returns its result or the error code.
fn accumulated(accumulator: &str, count: i32, value: impl Fn(i32) -> DocumentBuf) -> Result<String, i32> {
    let source = shell::parse_document(&format!("{{field: {accumulator}}}")).expect("an accumulator");
    let (variables, operation) = (Variables::new(), OperationContext::unlimited());
    let field = source.as_ref().first().expect("a field");
    let expression = AccumulatorExpression::parse(field, &ParseScope::new(&variables)).expect("parses");
    let empty = DocumentBuf::new();
    let context = EvaluationContext::new(empty.as_ref(), &variables, 0, &operation);
    let mut accumulator = expression.make(&context).expect("makes");
    for number in 0..count {
        let document = value(number);
        let context = context.at(document.as_ref());
        expression.feed(&mut *accumulator, &context).map_err(|failure| failure.code().0)?;
    }
    Ok(shell::print(accumulator.finish().as_ref()))
}

#[test]
fn accumulators_of_many_values_take_linear_time() {
    let began = CpuTime::now();
    let number = |number| DocumentBuf::new().with("n", number);
    let merged = accumulated("{$mergeObjects: '$$ROOT'}", 30_000, |n| DocumentBuf::new().with(&format!("f{n}"), n));
    assert_eq!(merged.map(|text| text.matches(':').count()), Ok(30_000));
    let least = accumulated("{$minN: {input: '$n', n: 30000}}", 60_000, |n| number(-n));
    assert_eq!(least.map(|text| text.matches(',').count()), Ok(29_999));
    let set = accumulated("{$addToSet: '$n'}", 60_000, |n| number(n % 30_000));
    assert_eq!(set.map(|text| text.matches(',').count()), Ok(29_999));
    assert!(began.elapsed() < LINEAR, "{:?}", began.elapsed());
}

#[test]
fn accumulators_gather_no_more_than_their_limit() {
    let large = DocumentBuf::new().with("text", &"x".repeat(15 << 20));
    let pushed = |n| DocumentBuf::new().with("n", n).with("large", &large);
    assert_eq!(accumulated("{$push: '$$ROOT'}", 8, pushed), Err(146));
    assert_eq!(accumulated("{$addToSet: '$$ROOT'}", 8, pushed), Err(146));
    let deep = (1..200).fold(DocumentBuf::new(), |inner, _| DocumentBuf::new().with("a", &inner));
    assert_eq!(accumulated("{$push: '$a'}", 1, |_| deep.clone()).map(|_| ()), Ok(()));
    assert_eq!(accumulated("{$push: '$$ROOT'}", 1, |_| deep.clone()), Err(15));
}
