//! Checks and changes of documents before they are stored: `_id` first and of a usable type, no zero timestamps, within
//! limits.

use bunko_bson::{
    DocumentRef, MAX_DEPTH_STORED, MAX_USER_DOCUMENT_BYTES, ObjectId, Timestamp, Type, ValueRef, Writer, stored_id,
};
use bunko_errors::{ErrorCode, Failure, Result};
use std::borrow::Cow;

/// The source of new ids and timestamps.
pub trait Stamps: Sync {
    /// A new `_id`.
    fn object_id(&self) -> ObjectId;
    /// A timestamp later than all earlier ones.
    fn timestamp(&self) -> Timestamp;
}

/// Treatment of zero timestamps at the top level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyTimestamps {
    /// Zero timestamps are replaced by the current time.
    Filled,
    /// Zero timestamps are kept (`bypassEmptyTsReplacement`).
    Kept,
}

/// The bytes to store for an inserted document: its own bytes if nothing has to be changed.
/// # Errors
/// `InvalidIdField`, `DollarPrefixedFieldName`, `BadValue` (too large, `_id` twice), `Overflow` (too deep).
pub fn for_insert<'d>(document: DocumentRef<'d>, empty: EmptyTimestamps, stamps: &dyn Stamps) -> Result<Cow<'d, [u8]>> {
    check_size(document)?;
    let mut has_id_first = false;
    let mut id = None;
    let mut has_zero_timestamp = false;
    // Each stored document passes here, so only the needed values are decoded.
    for (position, element) in document.iter().encoded().enumerate() {
        if element.name_bytes() == b"_id" {
            let value = element.value().unwrap_or(ValueRef::Null);
            check_id(value)?;
            if id.is_some() {
                return Err(Failure::bad_value("can't have multiple _id fields in one document"));
            }
            has_id_first = position == 0;
            id = Some(value);
        }
        has_zero_timestamp |= element.kind() == Type::Timestamp && element.value().is_some_and(is_zero_timestamp);
    }
    let is_filled = has_zero_timestamp && empty == EmptyTimestamps::Filled;
    if has_id_first && !is_filled {
        return Ok(Cow::Borrowed(document.as_bytes()));
    }
    let mut stored = Vec::with_capacity(document.len_bytes() + 17);
    let mut writer = Writer::new(&mut stored);
    match id {
        Some(id) => writer.append("_id", id),
        None => writer.append("_id", stamps.object_id()),
    };
    for element in document.iter().filter(|element| element.name != "_id") {
        if is_filled && is_zero_timestamp(element.value) {
            writer.append(element.name, stamps.timestamp());
        } else {
            writer.append(element.name, element.value);
        }
    }
    writer.end();
    check_size(DocumentRef::trusted(&stored))?;
    Ok(Cow::Owned(stored))
}

/// The bytes to store for a document that another server has stored before. It is checked like an inserted one, but
/// nothing is filled in, so that storing it again gives the same bytes.
/// # Errors
/// `NoSuchKey` without `_id`; otherwise as [`for_insert`].
pub fn as_stored_elsewhere(document: DocumentRef<'_>) -> Result<Cow<'_, [u8]>> {
    check_size(document)?;
    let id = document.get("_id").ok_or_else(|| Failure::new(ErrorCode::NO_SUCH_KEY, "the document has no '_id'"))?;
    check_id(id)?;
    if document.first().is_some_and(|first| first.name == "_id") {
        return Ok(Cow::Borrowed(document.as_bytes()));
    }
    let mut stored = Vec::with_capacity(document.len_bytes());
    let mut writer = Writer::new(&mut stored);
    writer.append("_id", id);
    for element in document.iter().filter(|element| element.name != "_id") {
        writer.append(element.name, element.value);
    }
    writer.end();
    Ok(Cow::Owned(stored))
}

fn is_zero_timestamp(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Timestamp(Timestamp { seconds: 0, increment: 0 }))
}

fn check_size(document: DocumentRef<'_>) -> Result<()> {
    if document.len_bytes() > MAX_USER_DOCUMENT_BYTES {
        let bytes = document.len_bytes();
        let message =
            format!("object to insert too large. size in bytes: {bytes}, max size: {MAX_USER_DOCUMENT_BYTES}");
        return Err(Failure::new(ErrorCode::BSON_OBJECT_TOO_LARGE, message));
    }
    if is_deeper_than(document, MAX_DEPTH_STORED) {
        return Err(Failure::new(
            ErrorCode::OVERFLOW,
            format!("cannot insert document because it exceeds {MAX_DEPTH_STORED} levels of nesting"),
        ));
    }
    Ok(())
}

fn is_deeper_than(document: DocumentRef<'_>, levels: usize) -> bool {
    // Each level takes at least eight bytes, so the length alone shows that most documents are not too deep.
    if document.len_bytes() < 8 * levels {
        return false;
    }
    levels == 0
        || document.iter().any(|element| match element.value {
            ValueRef::Document(inner) => is_deeper_than(inner, levels - 1),
            ValueRef::Array(inner) => is_deeper_than(inner.as_document(), levels - 1),
            _ => false,
        })
}

/// Refuses a value that cannot be an `_id`.
/// # Errors
/// `InvalidIdField`, `DollarPrefixedFieldName`.
pub fn check_id(id: ValueRef<'_>) -> Result<()> {
    match id {
        ValueRef::Array(_) | ValueRef::Regex { .. } | ValueRef::Undefined => Err(Failure::new(
            ErrorCode::INVALID_ID_FIELD,
            format!("The '_id' value cannot be of type {}", id.kind().alias()),
        )),
        ValueRef::Document(document) => match stored_id::name_not_allowed(document) {
            Some(name) => Err(Failure::new(
                ErrorCode::DOLLAR_PREFIXED_FIELD_NAME,
                format!("_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."),
            )),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    struct Fixed;
    impl Stamps for Fixed {
        fn object_id(&self) -> ObjectId {
            ObjectId([9; 12])
        }
        fn timestamp(&self) -> Timestamp {
            Timestamp { seconds: 5, increment: 6 }
        }
    }

    #[test]
    fn id_is_made_or_moved_to_the_front_and_zero_timestamps_are_filled() {
        let names = |document: &DocumentBuf| {
            let stored = for_insert(document.as_ref(), EmptyTimestamps::Filled, &Fixed).expect("storable").into_owned();
            let stored = DocumentRef::parse(&stored).expect("valid").to_owned();
            stored.as_ref().iter().map(|element| element.name.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&DocumentBuf::new().with("a", 1_i32)), ["_id", "a"]);
        assert_eq!(names(&DocumentBuf::new().with("a", 1_i32).with("_id", 2_i32)), ["_id", "a"]);
        let zero = DocumentBuf::new().with("_id", 1_i32).with("t", Timestamp { seconds: 0, increment: 0 });
        let stored = for_insert(zero.as_ref(), EmptyTimestamps::Filled, &Fixed).expect("storable");
        assert!(matches!(
            DocumentRef::trusted(&stored).get("t"),
            Some(ValueRef::Timestamp(Timestamp { seconds: 5, increment: 6 }))
        ));
        let whole = DocumentBuf::new().with("_id", 1_i32);
        assert!(matches!(for_insert(whole.as_ref(), EmptyTimestamps::Filled, &Fixed), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn zero_timestamps_that_are_kept_stay_as_they_are() {
        let zero = Timestamp { seconds: 0, increment: 0 };
        let whole = DocumentBuf::new().with("_id", 1_i32).with("t", zero);
        let stored = for_insert(whole.as_ref(), EmptyTimestamps::Kept, &Fixed);
        assert!(matches!(stored, Ok(Cow::Borrowed(bytes)) if bytes == whole.as_ref().as_bytes()));
        let moved = DocumentBuf::new().with("t", zero).with("_id", 1_i32);
        let stored = for_insert(moved.as_ref(), EmptyTimestamps::Kept, &Fixed).expect("storable");
        assert_eq!(DocumentRef::trusted(&stored), whole.as_ref());
    }

    #[test]
    fn documents_stored_elsewhere_are_not_filled_in() {
        let zero = Timestamp { seconds: 0, increment: 0 };
        let document = DocumentBuf::new().with("t", zero).with("_id", 1_i32);
        let stored = as_stored_elsewhere(document.as_ref()).expect("storable");
        assert_eq!(DocumentRef::trusted(&stored), DocumentBuf::new().with("_id", 1_i32).with("t", zero).as_ref());
        let failure = as_stored_elsewhere(DocumentRef::EMPTY).expect_err("no id");
        assert_eq!(failure.code(), ErrorCode::NO_SUCH_KEY);
    }

    #[test]
    fn unusable_ids_and_depths_are_refused() {
        let array = bunko_bson::ArrayBuf::new();
        let array = DocumentBuf::new().with("_id", &array);
        let failure = for_insert(array.as_ref(), EmptyTimestamps::Filled, &Fixed).map(drop).expect_err("refused");
        assert_eq!(failure.code(), ErrorCode::INVALID_ID_FIELD);
        for twice in [
            DocumentBuf::new().with("_id", 1_i32).with("_id", 1_i32),
            DocumentBuf::new().with("a", 1_i32).with("_id", 1_i32).with("b", 1_i32).with("_id", 2_i32),
        ] {
            let failure = for_insert(twice.as_ref(), EmptyTimestamps::Filled, &Fixed).map(drop).expect_err("refused");
            assert_eq!(failure.code(), ErrorCode::BAD_VALUE);
            assert_eq!(failure.message(), "can't have multiple _id fields in one document");
        }
        let mut deep = DocumentBuf::new();
        for _ in 0..MAX_DEPTH_STORED {
            deep = DocumentBuf::new().with("abcdefgh", &deep);
        }
        let failure = for_insert(deep.as_ref(), EmptyTimestamps::Filled, &Fixed).map(drop).expect_err("refused");
        assert_eq!(failure.code(), ErrorCode::OVERFLOW);
    }
}
