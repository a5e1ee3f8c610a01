//! Paths of the expressions in `$expr`.

use super::origin::Origin;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};

/// Operators that never fail, whatever their arguments are.
const SAFE: [&str; 14] = [
    "$and",
    "$cmp",
    "$cond",
    "$eq",
    "$gt",
    "$gte",
    "$ifNull",
    "$isArray",
    "$isNumber",
    "$lt",
    "$lte",
    "$ne",
    "$not",
    "$or",
];

/// Variables that stand for the document or are known only in some places.
const OF_DOCUMENT: [&str; 6] = ["ROOT", "CURRENT", "SEARCH_META", "KEEP", "PRUNE", "DESCEND"];

/// The expression on a stage's input that has the value of this one on the stage's output. `None` if there is none, or
/// if its evaluation may fail.
pub(super) fn mapped(expression: ValueRef<'_>, origin: &dyn Fn(&str) -> Origin) -> Option<Value> {
    match expression {
        ValueRef::String(text) => path(text, origin),
        ValueRef::Array(array) => list(array.iter(), origin),
        ValueRef::Document(document) => match document.first() {
            Some(first) if first.name.starts_with('$') => call(document, origin),
            _ => fields(document, origin),
        },
        constant => Some(constant.to_value()),
    }
}

fn path(text: &str, origin: &dyn Fn(&str) -> Origin) -> Option<Value> {
    if let Some(variable) = text.strip_prefix("$$") {
        let name = variable.split('.').next().unwrap_or_default();
        return (!OF_DOCUMENT.contains(&name)).then(|| ValueRef::String(text).to_value());
    }
    let Some(path) = text.strip_prefix('$') else { return Some(ValueRef::String(text).to_value()) };
    match origin(path) {
        Origin::Exact(source) => Some(ValueRef::String(&format!("${source}")).to_value()),
        _ => None,
    }
}

fn list<'v>(values: impl Iterator<Item = ValueRef<'v>>, origin: &dyn Fn(&str) -> Origin) -> Option<Value> {
    let mut all = ArrayBuf::new();
    for value in values {
        all.push(mapped(value, origin)?.as_ref());
    }
    Some(Value::Array(all))
}

fn fields(document: DocumentRef<'_>, origin: &dyn Fn(&str) -> Origin) -> Option<Value> {
    let mut all = DocumentBuf::new();
    for field in document {
        all.append(field.name, mapped(field.value, origin)?.as_ref());
    }
    Some(Value::Document(all))
}

fn call(document: DocumentRef<'_>, origin: &dyn Fn(&str) -> Origin) -> Option<Value> {
    let operator = document.first()?;
    match (operator.name, operator.value) {
        ("$literal", _) => Some(Value::Document(document.to_owned())),
        ("$type", argument) => {
            Some(Value::Document(DocumentBuf::new().with("$type", mapped(argument, origin)?.as_ref())))
        }
        // `$in` fails unless its second argument is an array.
        ("$in", ValueRef::Array(arguments)) if matches!(arguments.get(1), Some(ValueRef::Array(_))) => {
            Some(Value::Document(DocumentBuf::new().with("$in", list(arguments.iter(), origin)?.as_ref())))
        }
        (name, argument) if SAFE.contains(&name) => {
            Some(Value::Document(DocumentBuf::new().with(name, mapped(argument, origin)?.as_ref())))
        }
        _ => None,
    }
}
