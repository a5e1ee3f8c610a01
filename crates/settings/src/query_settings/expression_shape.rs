//! The shape of an expression: its operators and paths, with constants replaced by their types.

use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, Value, ValueRef};
use bunko_query::is_constant_expression;

/// Operators whose operands are not evaluated.
const LITERALS: &[&str] = &["$literal", "$const"];

/// The shape of an expression.
pub(super) fn of(expression: ValueRef<'_>) -> Value {
    match expression {
        ValueRef::String(path) if path.starts_with('$') => expression.to_value(),
        // A list of constants becomes one placeholder, whatever its length.
        ValueRef::Array(_) if is_constant_expression(expression, LITERALS) => Value::String(placeholder(expression)),
        ValueRef::Array(members) => array(members.iter().map(of)),
        ValueRef::Document(document) => match document.first() {
            Some(first) if LITERALS.contains(&first.name) => Value::String(placeholder(first.value)),
            Some(first) if first.name == "$meta" => expression.to_value(),
            _ => {
                let mut shape = DocumentBuf::new();
                for element in document {
                    shape.append(element.name, &of(element.value));
                }
                Value::Document(shape)
            }
        },
        constant => Value::String(placeholder(constant)),
    }
}

/// The placeholder for a value: a question mark and its type. All numbers have one type.
pub fn placeholder(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Array(members) if members.is_empty() => "[]".to_owned(),
        ValueRef::Array(members) => format!("?array<{}>", type_of_all(members)),
        _ => format!("?{}", type_of(value)),
    }
}

fn type_of(value: ValueRef<'_>) -> &'static str {
    match value {
        ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) | ValueRef::Decimal128(_) => "number",
        other => other.kind().alias(),
    }
}

/// The common type of all members; empty if they differ.
fn type_of_all(members: ArrayRef<'_>) -> String {
    let mut types = members.iter().map(type_of);
    let Some(first) = types.next() else { return String::new() };
    if types.all(|other| other == first) { format!("?{first}") } else { String::new() }
}

/// The shape of several values, one by one.
pub(super) fn of_each(values: ArrayRef<'_>) -> Value {
    array(values.iter().map(|value| Value::String(placeholder(value))))
}

/// An array of shapes.
pub(super) fn array(shapes: impl Iterator<Item = Value>) -> Value {
    let mut array = ArrayBuf::new();
    for shape in shapes {
        array.push(&shape);
    }
    Value::Array(array)
}
