//! Lookup of one document by `{_id: value}`, without a plan.

use bunko_bson::{DocumentRef, StringOrder, ValueRef};
use bunko_catalog::Collection;
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::RecordId;

/// The `_id` of a filter that is a plain equality on `_id` and nothing else.
///
/// Arrays, null and regexes match more than equal values, and documents that start with `$` are operators: these need a
/// plan. The filter need not be parsed.
pub fn id_lookup(filter: DocumentRef<'_>) -> Option<ValueRef<'_>> {
    let mut fields = filter.iter().encoded();
    let only = fields.next().filter(|field| field.name_bytes() == b"_id" && fields.next().is_none())?;
    only.value().filter(|id| is_plain_id(*id))
}

/// Whether equality with this value is a lookup of one key.
pub(crate) fn is_plain_id(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Array(_) | ValueRef::Null | ValueRef::Undefined | ValueRef::Regex { .. } => false,
        ValueRef::Document(document) => !document.first().is_some_and(|first| first.name.starts_with('$')),
        _ => true,
    }
}

/// Whether the `_id` index finds the value as a query with string order `strings` would.
pub fn can_look_up(collection: &Collection, id: ValueRef<'_>, strings: &StringOrder) -> bool {
    let own = collection.strings();
    (own.is_bytes() && strings.is_bytes()) || own == strings || !StringOrder::holds_strings(id)
}

/// Reads the document with this `_id` into `into`, which is cleared first: the present version, or the one in the
/// operation's transaction.
/// # Errors
/// Errors of storage and of the transaction.
pub fn fetch_by_id(
    collection: &Collection,
    id: ValueRef<'_>,
    operation: &dyn OperationSource,
    into: &mut Vec<u8>,
) -> Result<Option<RecordId>> {
    collection.find_id(id, operation, into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    #[test]
    fn only_plain_equality_on_id_alone_is_a_lookup() {
        let with = |value: ValueRef<'_>| DocumentBuf::new().with("_id", value);
        assert!(id_lookup(with(ValueRef::Int32(5)).as_ref()).is_some());
        assert!(id_lookup(with(ValueRef::Document(DocumentRef::EMPTY)).as_ref()).is_some());
        assert!(id_lookup(with(ValueRef::Null).as_ref()).is_none());
        let operator = DocumentBuf::new().with("$gt", 5);
        assert!(id_lookup(with(ValueRef::Document(operator.as_ref())).as_ref()).is_none());
        assert!(id_lookup(with(ValueRef::Int32(5)).with("a", 1).as_ref()).is_none());
        assert!(id_lookup(DocumentBuf::new().with("a", 1).as_ref()).is_none());
        assert!(id_lookup(DocumentRef::EMPTY).is_none());
    }
}
