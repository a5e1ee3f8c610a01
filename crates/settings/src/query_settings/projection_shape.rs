//! The shape of a projection: the fields that are kept or left out, and the shapes of computed fields.

use super::expression_shape::{self, placeholder};
use super::filter_shape;
use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_request::fields::truth;

/// The shape of a projection.
pub(super) fn of(projection: DocumentRef<'_>) -> DocumentBuf {
    let mut shape = DocumentBuf::new();
    for element in projection {
        shape.append(element.name, &of_field(element.value));
    }
    shape
}

fn of_field(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Boolean(_)
        | ValueRef::Int32(_)
        | ValueRef::Int64(_)
        | ValueRef::Double(_)
        | ValueRef::Decimal128(_) => Value::Boolean(truth(value)),
        ValueRef::Document(document) => match document.first().map(|first| (first.name, first.value)) {
            Some(("$elemMatch", ValueRef::Document(filter))) => {
                Value::Document(DocumentBuf::new().with("$elemMatch", &filter_shape::of(filter)))
            }
            Some(("$slice", ValueRef::Array(range))) if range.iter().all(|part| !part.is_nullish()) => {
                let is_expression = range.iter().any(|part| matches!(part, ValueRef::String(_)));
                if is_expression {
                    return expression_shape::of(value);
                }
                let range = expression_shape::of_each(range);
                Value::Document(DocumentBuf::new().with("$slice", &range))
            }
            Some(("$slice", count)) => Value::Document(DocumentBuf::new().with("$slice", placeholder(count).as_str())),
            Some((name, _)) if !name.starts_with('$') => Value::Document(of(document)),
            _ => expression_shape::of(value),
        },
        _ => expression_shape::of(value),
    }
}
