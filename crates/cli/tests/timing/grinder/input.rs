//! Commands whose input grows: templates in shell syntax, in which placeholders stand for a number of elements.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_testkit::shell;

/// A number below `size` that differs from its neighbours.
fn mixed(place: usize, size: usize) -> i32 {
    (place * 7919 % size) as i32
}

/// The value of a placeholder with that many elements; `None` for any other text.
pub fn placeholder(name: &str, size: usize) -> Option<Value> {
    let array = |element: &dyn Fn(usize) -> Value| {
        let mut array = ArrayBuf::new();
        (0..size).for_each(|place| _ = array.push(element(place).as_ref()));
        Value::Array(array)
    };
    let fields = |value: &dyn Fn(usize) -> Value| {
        let mut document = DocumentBuf::new();
        (0..size).for_each(|place| _ = document.append(&format!("f{place}"), value(place).as_ref()));
        Value::Document(document)
    };
    Some(match name {
        "#size" => Value::Int32(size as i32),
        "#ints" => array(&|place| Value::Int32(mixed(place, size))),
        "#more" => array(&|place| Value::Int32(mixed(place, size) + (size / 2) as i32)),
        "#texts" => array(&|place| Value::String(format!("t{}", mixed(place, size)))),
        "#documents" => array(&|place| document(&format!("{{k: {}, v: [1]}}", mixed(place, size)))),
        "#pairs" => array(&|place| document(&format!("{{k: 'f{place}', v: 1}}"))),
        "#filters" => array(&|place| document(&format!("{{n: {}}}", place + size + 1))),
        "#operands" => array(&|_| Value::String("$n".to_owned())),
        "#branches" => array(&|_| document("{case: {$eq: ['$n', -1]}, then: 1}")),
        "#text" => Value::String("ab ".repeat(size / 3 + 1)),
        "#fields" => fields(&|_| Value::Int32(1)),
        "#flags" => fields(&|_| Value::Boolean(true)),
        "#bits" => fields(&|_| document("{or: 1}")),
        "#renames" => fields(&|place| Value::String(format!("g{place}"))),
        _ => return None,
    })
}

fn document(text: &str) -> Value {
    Value::Document(shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// A template with its placeholders replaced.
pub fn filled(template: &DocumentBuf, size: usize) -> DocumentBuf {
    fill_document(template.as_ref(), size)
}

fn fill_document(document: DocumentRef<'_>, size: usize) -> DocumentBuf {
    let mut filled = DocumentBuf::new();
    for field in document {
        filled.append(field.name, fill(field.value, size).as_ref());
    }
    filled
}

fn fill(value: ValueRef<'_>, size: usize) -> Value {
    match value {
        ValueRef::Document(document) => Value::Document(fill_document(document, size)),
        ValueRef::Array(array) => {
            let mut filled = ArrayBuf::new();
            array.iter().for_each(|value| _ = filled.push(fill(value, size).as_ref()));
            Value::Array(filled)
        }
        ValueRef::String(text) => placeholder(text, size).unwrap_or_else(|| value.to_value()),
        other => other.to_value(),
    }
}
