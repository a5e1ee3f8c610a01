//! The shortest way to one document: `{_id: value}`, without a plan.

use bunko_bson::{DocumentRef, StringOrder, ValueRef};
use bunko_catalog::Collection;
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::RecordId;

/// The `_id` that a filter asks for, where it asks for nothing else and by plain equality.
///
/// Arrays, null and regexes mean more than equality, documents that start with `$` are operators: those take the long
/// way. Needs no parsed filter.
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

/// Whether the index on `_id` finds that value as a query would that has strings in the order `strings`.
pub fn can_look_up(collection: &Collection, id: ValueRef<'_>, strings: &StringOrder) -> bool {
    let own = collection.strings();
    (own.is_bytes() && strings.is_bytes()) || own == strings || !StringOrder::holds_strings(id)
}

/// Reads the document with that `_id`, as of now, or as the operation's transaction sees it, into `into` (cleared first).
/// # Errors
/// Storage errors, and those of the transaction.
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
