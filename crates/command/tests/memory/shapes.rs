//! Commands of any size: in a template, a string that begins with `@` stands for a large value.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_testkit::shell;

/// A template, and the most memory that its command may use for each byte sent.
pub struct Shape {
    pub command: &'static str,
    pub factor_max: usize,
}

/// The command of a template, in which each large value has about `bytes` bytes.
pub fn command(template: &str, bytes: usize) -> DocumentBuf {
    let template = shell::parse_document(template).unwrap_or_else(|error| panic!("{template}: {error}"));
    filled(template.as_ref(), bytes)
}

fn filled(template: DocumentRef<'_>, bytes: usize) -> DocumentBuf {
    let mut document = DocumentBuf::new();
    for element in template {
        document.append(element.name, &value(element.value, bytes));
    }
    document
}

fn value(template: ValueRef<'_>, bytes: usize) -> Value {
    match template {
        ValueRef::Document(document) => Value::Document(filled(document, bytes)),
        ValueRef::Array(array) => Value::Array(of(array.iter().map(|element| value(element, bytes)))),
        ValueRef::String(text) => match text.strip_prefix('@') {
            Some(name) => large(name, bytes),
            None => template.to_value(),
        },
        other => other.to_value(),
    }
}

fn of(values: impl Iterator<Item = Value>) -> ArrayBuf {
    values.fold(ArrayBuf::new(), |mut all, value| {
        all.push(&value);
        all
    })
}

fn array(bytes: usize, element: impl Fn(i32) -> Value) -> Value {
    let (mut array, mut count) = (ArrayBuf::new(), 0);
    while array.as_ref().as_document().len_bytes() < bytes {
        array.push(&element(count));
        count += 1;
    }
    Value::Array(array)
}

fn fields(bytes: usize, field: impl Fn(i32) -> Value) -> Value {
    let (mut document, mut count) = (DocumentBuf::new(), 0);
    while document.as_ref().len_bytes() < bytes {
        document.append(&format!("f{count}"), &field(count));
        count += 1;
    }
    Value::Document(document)
}

fn parsed(text: &str) -> Value {
    shell::parse_value(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn large(name: &str, bytes: usize) -> Value {
    match name {
        "ints" => array(bytes, Value::Int32),
        "bits" => array(bytes, |number| Value::Int32(number % 4096)),
        "nulls" => array(bytes, |_| Value::Null),
        "strings" => array(bytes, |number| Value::String(format!("s{number}"))),
        "documents" => array(bytes, |number| parsed(&format!("{{a: {number}, b: 'x'}}"))),
        "regexes" => array(bytes / 8, |number| parsed(&format!("/^x{number}/"))),
        "types" => array(bytes, |number| Value::Int32(1 + number % 18)),
        "empty" => array(bytes, |_| Value::Document(DocumentBuf::new())),
        "equalities" => array(bytes, |number| parsed(&format!("{{a: {number}}}"))),
        "conditions" => {
            array(bytes, |number| parsed(&format!("{{{}: {number}}}", ["a", "b", "c"][number as usize % 3])))
        }
        "comparisons" => array(bytes, |number| parsed(&format!("{{$eq: ['$a', {number}]}}"))),
        "branches" => array(bytes, |number| parsed(&format!("{{case: {{$eq: ['$a', {number}]}}, then: {number}}}"))),
        "updates" => array(bytes, |number| parsed(&format!("{{q: {{_id: {}}}, u: {{$set: {{b: 1}}}}}}", -number))),
        "text" => Value::String("word ".repeat(bytes / 5)),
        "letters" => Value::String("x".repeat(bytes)),
        "alternatives" => Value::String("ab|".repeat(bytes.min(6 * 1024) / 3)),
        "binary" => Value::Binary { subtype: 0, bytes: vec![0xff; bytes] },
        "ones" => fields(bytes, |_| Value::Int32(1)),
        "sums" => fields(bytes, |number| parsed(&format!("{{$add: ['$a', {number}]}}"))),
        "literals" => fields(bytes, |number| parsed(&format!("{{$literal: {number}}}"))),
        "operators" => fields(bytes, |number| parsed(&format!("{{$gt: {number}, $lt: 7}}"))),
        "schemas" => fields(bytes, |_| parsed("{bsonType: 'int', minimum: 1}")),
        "nested" => nested(bytes),
        "facets" => fields(bytes, |number| parsed(&format!("[{{$match: {{a: {number}}}}}]"))),
        "accumulators" => with_id(&fields(bytes, |number| parsed(&format!("{{$sum: {{$add: ['$a', {number}]}}}}")))),
        "pushes" => with_id(&fields(bytes, |_| parsed("{$push: '$a'}"))),
        "windows" => fields(bytes, |_| parsed("{$sum: '$a', window: {documents: [-1, 1]}}")),
        "fills" => fields(bytes, |number| parsed(&format!("{{value: {number}}}"))),
        "should" => array(bytes, |number| parsed(&format!("{{text: {{path: 'a', query: 'w{number}'}}}}"))),
        "words" => array(bytes, |number| Value::String(format!("w{number}"))),
        "ring" => ring(bytes),
        _ => panic!("no such value: {name}"),
    }
}

fn with_id(fields: &Value) -> Value {
    let mut group = DocumentBuf::new().with("_id", ValueRef::Null);
    let fields = fields.as_ref();
    group.extend(fields.as_document().expect("a document"));
    Value::Document(group)
}

/// Nested schemas, of which the innermost is large.
fn nested(bytes: usize) -> Value {
    let innermost = array(bytes, Value::Int32);
    let mut schema = DocumentBuf::new().with("enum", &innermost);
    for _ in 0..60 {
        schema = DocumentBuf::new().with("not", &schema);
    }
    Value::Document(schema)
}

/// The ring of a polygon.
fn ring(bytes: usize) -> Value {
    let count = bytes / 40;
    let point = |number: usize| {
        let angle = number as f64 / count as f64 * std::f64::consts::TAU;
        parsed(&format!("[{}, {}]", angle.cos() * 10.0, angle.sin() * 10.0))
    };
    let mut ring = of((0..count).map(point));
    ring.push(&point(0));
    Value::Array(of(std::iter::once(Value::Array(ring))))
}
