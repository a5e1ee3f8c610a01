//! The shape of a filter: its paths and operators in their order, with values replaced by their types.

use super::expression_shape::{self, placeholder};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};

/// The shape of a filter. Several conditions become one `$and`.
pub(super) fn of(filter: DocumentRef<'_>) -> DocumentBuf {
    let mut conditions = Vec::new();
    for element in filter {
        match (element.name, element.value) {
            ("$and" | "$or" | "$nor", ValueRef::Array(parts)) => {
                let parts: Vec<_> = parts.iter().filter_map(ValueRef::as_document).map(of).collect();
                let parts: ArrayBuf = parts.iter().collect();
                conditions.push(DocumentBuf::new().with(element.name, &parts));
            }
            ("$comment", _) => {}
            ("$expr", expression) => {
                conditions.push(DocumentBuf::new().with("$expr", &expression_shape::of(expression)));
            }
            ("$text", ValueRef::Document(search)) => {
                conditions.push(DocumentBuf::new().with("$text", &values(search)));
            }
            (name, value) if name.starts_with('$') => {
                conditions.push(DocumentBuf::new().with(name, placeholder(value).as_str()));
            }
            (path, value) => {
                let on_path = |condition: DocumentBuf| DocumentBuf::new().with(path, &condition);
                conditions.extend(of_path(value).into_iter().map(on_path));
            }
        }
    }
    match conditions.as_slice() {
        [] => DocumentBuf::new(),
        [_] => conditions.remove(0),
        several => DocumentBuf::new().with("$and", &several.iter().collect::<ArrayBuf>()),
    }
}

/// The conditions on a path: an equality, or one for each operator.
fn of_path(value: ValueRef<'_>) -> Vec<DocumentBuf> {
    let is_operator = |name: &str| name.starts_with('$') && !matches!(name, "$ref" | "$id" | "$db");
    match value {
        ValueRef::Document(operators) if operators.first().is_some_and(|first| is_operator(first.name)) => operators
            .iter()
            .filter(|operator| !matches!(operator.name, "$comment" | "$options"))
            .map(|operator| DocumentBuf::new().with(operator.name, &of_operand(operator.name, operator.value)))
            .collect(),
        ValueRef::Regex { .. } => vec![DocumentBuf::new().with("$regex", "?string")],
        _ => vec![DocumentBuf::new().with("$eq", placeholder(value).as_str())],
    }
}

fn of_operand(operator: &str, operand: ValueRef<'_>) -> Value {
    match (operator, operand) {
        ("$not", ValueRef::Document(_)) => Value::Document(joined(&of_path(operand))),
        ("$elemMatch", ValueRef::Document(element)) => {
            let is_of_values =
                element.first().is_some_and(|first| first.name.starts_with('$') && !is_logical(first.name));
            Value::Document(if is_of_values { joined(&of_path(operand)) } else { of(element) })
        }
        // The operand of `$type` is part of the shape.
        ("$type", _) => operand.to_value(),
        ("$all", ValueRef::Array(parts)) => expression_shape::array(parts.iter().map(of_member)),
        _ => Value::String(placeholder(operand)),
    }
}

fn of_member(member: ValueRef<'_>) -> Value {
    match member {
        ValueRef::Document(document) if document.get("$elemMatch").is_some() => {
            Value::Document(joined(&of_path(member)))
        }
        _ => Value::String(placeholder(member)),
    }
}

fn is_logical(name: &str) -> bool {
    matches!(name, "$and" | "$or" | "$nor" | "$expr" | "$where")
}

fn joined(conditions: &[DocumentBuf]) -> DocumentBuf {
    let mut all = DocumentBuf::new();
    for condition in conditions {
        all.extend(condition.as_ref());
    }
    all
}

/// A document with values replaced by their types.
pub(super) fn values(document: DocumentRef<'_>) -> DocumentBuf {
    let mut shape = DocumentBuf::new();
    for element in document {
        shape.append(element.name, placeholder(element.value).as_str());
    }
    shape
}
