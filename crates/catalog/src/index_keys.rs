//! Derives a document's keys in an index.
//!
//! A path that meets an array yields one key per element. Fields below one array are walked together along it, so that
//! the values in a key come from one element. Two arrays side by side are refused ("parallel arrays"), as the number of
//! their combinations would explode. Missing fields count as null; an empty array at the end of a path counts as
//! undefined.
//!
//! Source: MongoDB manual, "Multikey Indexes".

use crate::array_walk::ArrayWalk;
use crate::index_kind::{KeySet, fit};
use crate::long_key::KEY_BYTES_MAX;
use crate::{Index, IndexSpec, KeyTypes, Multikey};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef, order};
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::RecordId;
use std::collections::BTreeSet;
use std::ops::Range;

/// Initial room for a key, in bytes: an object id and its type.
pub(crate) const KEY_BYTES_USUAL: usize = 24;

/// A document's keys in one index, smallest first and without repeats.
#[derive(Debug, Default)]
pub struct IndexKeys {
    /// Keys without the record id, with which keys of an index that is not unique end.
    pub keys: BTreeSet<Vec<u8>>,
    /// Arrays that the paths met, and types of values.
    pub multikey: Multikey,
}

/// Derives the keys of `document` in `index`; none if the index does not take the document, for example because of its
/// partial filter.
/// # Errors
/// `CannotIndexParallelArrays`; `CannotBuildIndexKeys` for too many keys; 16746 if a name of digits is both an
/// element's position and a field of an element; as the index's kind, and as [`KeySet::add`].
pub fn index_keys(index: &IndexSpec, document: DocumentRef<'_>) -> Result<IndexKeys> {
    keys_for(index, document, None)
}

/// Derives the keys of `document` for an operation, which may end the derivation.
/// # Errors
/// As [`index_keys`], and as `OperationContext::check`.
pub(crate) fn keys_for(
    index: &IndexSpec,
    document: DocumentRef<'_>,
    operation: Option<&dyn OperationSource>,
) -> Result<IndexKeys> {
    let mut single = Vec::with_capacity(24);
    if let Some(mut types) = scalar_key(index, document, &mut single) {
        if fit(index, &mut single)? {
            types.note_long_key();
        }
        return Ok(IndexKeys { keys: BTreeSet::from([single]), multikey: Multikey::of_types(types) });
    }
    if let Some(partial) = &index.partial_filter
        && !partial.takes(document)?
    {
        return Ok(IndexKeys::default());
    }
    let mut keys = KeySet::new(index, operation);
    let mut multikey = index.kind.keys(index, document, &mut keys)?;
    if keys.has_long {
        let mut types = multikey.types();
        types.note_long_key();
        multikey = multikey.with_types(types);
    }
    Ok(IndexKeys { keys: keys.keys, multikey })
}

/// The common case: an index that takes all documents by their values, and no array on any path. Appends the only key
/// to `key` and returns the types of its values, empty if the index does not record types. `None` in all other cases.
pub(crate) fn scalar_key(index: &IndexSpec, document: DocumentRef<'_>, key: &mut Vec<u8>) -> Option<KeyTypes> {
    if !index.is_plain {
        return None;
    }
    let mut types = KeyTypes::default();
    for (position, field) in index.fields.iter().enumerate() {
        let value = scalar_at(document, &field.path).ok()?;
        index.strings.append_key(key, value.unwrap_or(ValueRef::Null), field.direction);
        if index.tells_types {
            types.note(position, value);
        }
    }
    Some(types)
}

/// The common case: [`scalar_key`] derives the document's only key in an index, and the key is short. Appends that key
/// as it is stored. Types that are new to the index go into `grown`, under the index's `position`. Returns `false` in
/// all other cases; then nothing is added, and [`append_stored_keys`] derives the keys.
pub(crate) fn append_only_key(
    (position, index): (usize, &Index),
    document: DocumentRef<'_>,
    record: RecordId,
    bytes: &mut Vec<u8>,
    grown: &mut Vec<(usize, Multikey)>,
) -> bool {
    let start = bytes.len();
    match scalar_key(index, document, bytes) {
        Some(types) if bytes.len() - start <= KEY_BYTES_MAX => {
            note_types(grown, position, index, types);
            stored_key(index, bytes, record);
            true
        }
        _ => {
            bytes.truncate(start);
            false
        }
    }
}

/// Appends a document's keys as they are stored in an index to `bytes`, and their places to `places`, which is empty.
/// Arrays and types that are new to the index go into `grown`, under the index's `position`.
/// # Errors
/// As [`index_keys`]; nothing is added then.
pub(crate) fn append_stored_keys(
    (position, index): (usize, &Index),
    document: DocumentRef<'_>,
    record: RecordId,
    (bytes, places): (&mut Vec<u8>, &mut Vec<Range<usize>>),
    grown: &mut Vec<(usize, Multikey)>,
    operation: &dyn OperationSource,
) -> Result<()> {
    if let Some(arrays) = array_keys(index, document, record, bytes, places) {
        note_arrays(grown, position, index, arrays);
        return Ok(());
    }
    let found = keys_for(index, document, Some(operation))?;
    index.kind.check_arrays(index, &found.multikey)?;
    if !found.keys.is_empty() {
        index.kind.check_document(index, document)?;
    }
    note_growth(grown, position, index, &found.multikey);
    for key in found.keys {
        let start = bytes.len();
        bytes.extend_from_slice(&key);
        stored_key(index, bytes, record);
        places.push(start..bytes.len());
    }
    Ok(())
}

/// Maximum number of elements of an array whose keys [`array_keys`] derives: it sorts them, so longer arrays go the
/// general way.
const ELEMENTS_MAX: usize = 64;
/// Maximum number of fields of an index whose keys [`array_keys`] derives; it holds their values in an array of this
/// length.
const FIELDS_MAX: usize = 8;

/// The next most common case: an index that takes all documents by their values, and one of its paths, a name without
/// dots, leads to an array. Appends the stored keys to `bytes` and their places to `places`, smallest first and without
/// repeats. Returns the field with the array, and the types of the values. `None` in all other cases; then nothing is
/// added.
fn array_keys(
    index: &IndexSpec,
    document: DocumentRef<'_>,
    record: RecordId,
    bytes: &mut Vec<u8>,
    places: &mut Vec<Range<usize>>,
) -> Option<(usize, KeyTypes)> {
    if !index.is_plain {
        return None;
    }
    let mut values = [None; FIELDS_MAX];
    let (array_at, array) = only_array(index, document, values.get_mut(..index.fields.len())?)?;
    let (start, mut types) = (bytes.len(), KeyTypes::default());
    for (number, element) in array.iter().enumerate() {
        let first = bytes.len();
        values[array_at] = Some(element);
        for (position, (field, value)) in index.fields.iter().zip(values).enumerate() {
            index.strings.append_key(bytes, value.unwrap_or(ValueRef::Null), field.direction);
            if index.tells_types {
                types.note(position, value);
            }
        }
        if number == ELEMENTS_MAX || bytes.len() - first > KEY_BYTES_MAX {
            bytes.truncate(start);
            places.clear();
            return None;
        }
        stored_key(index, bytes, record);
        places.push(first..bytes.len());
    }
    places.sort_unstable_by(|one, other| bytes[one.clone()].cmp(&bytes[other.clone()]));
    places.dedup_by(|one, other| bytes[one.clone()] == bytes[other.clone()]);
    Some((array_at, types))
}

/// The only field of an index whose path meets an array, and that array, which is not empty; `None` for any other
/// document. The values of the other fields are put into `values`.
fn only_array<'d>(
    index: &IndexSpec,
    document: DocumentRef<'d>,
    values: &mut [Option<ValueRef<'d>>],
) -> Option<(usize, ArrayRef<'d>)> {
    let mut found = None;
    for (position, (field, value)) in index.fields.iter().zip(values).enumerate() {
        match scalar_at(document, &field.path) {
            Ok(scalar) => *value = scalar,
            Err(MeetsArray) if found.is_some() || field.path.contains('.') => return None,
            Err(MeetsArray) => found = Some((position, document.get(&field.path).and_then(ValueRef::as_array)?)),
        }
    }
    found.filter(|(_, array)| !array.is_empty())
}

/// Notes in `grown` that a document has an array in one field and values of these types, if that is new to the index.
fn note_arrays(grown: &mut Vec<(usize, Multikey)>, position: usize, index: &Index, (field, types): (usize, KeyTypes)) {
    if !index.key_types().covers(types) || !index.is_multikey_at(field) {
        let mut found = Multikey::of_types(types);
        found.note(field, 0);
        note_growth(grown, position, index, &found);
    }
}

/// Notes arrays and types of a document in `grown`, under the index's `position`, if they are new to the index.
pub(crate) fn note_growth(grown: &mut Vec<(usize, Multikey)>, position: usize, index: &Index, found: &Multikey) {
    if index.multikey().covers(found) {
        return;
    }
    match grown.iter_mut().find(|(known, _)| *known == position) {
        Some((_, known)) => *known = known.with(found),
        None => grown.push((position, found.clone())),
    }
}

/// As [`note_growth`], for a document without arrays on the index's paths.
#[inline]
pub(crate) fn note_types(grown: &mut Vec<(usize, Multikey)>, position: usize, index: &Index, found: KeyTypes) {
    if !index.key_types().covers(found) {
        note_growth(grown, position, index, &Multikey::of_types(found));
    }
}

/// A path that leads to an array or through one.
struct MeetsArray;

/// The value at a path without arrays; `None` if it is missing.
fn scalar_at<'a>(document: DocumentRef<'a>, path: &str) -> Result<Option<ValueRef<'a>>, MeetsArray> {
    let mut document = document;
    let mut rest = path;
    loop {
        let (name, tail) = rest.split_once('.').map_or((rest, None), |(name, tail)| (name, Some(tail)));
        let value = document.get(name);
        match (value, tail) {
            (Some(ValueRef::Array(_)), _) => return Err(MeetsArray),
            (None, _) => return Ok(None),
            (Some(value), None) => return Ok(Some(value)),
            (Some(ValueRef::Document(inner)), Some(tail)) => (document, rest) = (inner, tail),
            (Some(_), Some(_)) => return Ok(None),
        }
    }
}

/// The values at a path, as keys hold them.
pub(crate) fn values_at<'a>(document: DocumentRef<'a>, path: &str) -> Vec<ValueRef<'a>> {
    let mut found = Vec::new();
    // A document that cannot be indexed has no values.
    let _ = ArrayWalk::run(std::iter::once(path), document, &mut |values| {
        found.extend(values.map(|value| value.unwrap_or(ValueRef::Null)));
        Ok(())
    });
    found
}

/// The key by path, with values as the document has them: a key does not distinguish equal ints, longs and doubles.
/// Values that the document does not have, such as hashes, stay as they are.
pub fn exact_key(key: DocumentRef<'_>, document: DocumentRef<'_>) -> DocumentBuf {
    let mut exact = DocumentBuf::new();
    for field in key {
        let mut values = values_at(document, field.name).into_iter();
        let value = values.find(|value| order::compare(*value, field.value).is_eq());
        exact.append(field.name, value.unwrap_or(field.value));
    }
    exact
}

/// Appends the record id to a key as stored in the index, if the index is not unique or was converted.
pub(crate) fn stored_key(index: &IndexSpec, key: &mut Vec<u8>, record: RecordId) {
    if index.ends_with_record() {
        key.extend_from_slice(&record.0.to_be_bytes());
    }
}

/// The part of a stored key before the record id.
pub(crate) fn own_part<'k>(index: &IndexSpec, key: &'k [u8]) -> &'k [u8] {
    if index.ends_with_record() { &key[..key.len() - size_of::<RecordId>()] } else { key }
}

/// Whether a key, as stored in an index, was shortened ([`crate::shorten_key`]).
pub fn is_shortened(index: &IndexSpec, key: &[u8]) -> bool {
    // Most keys are far shorter than this.
    key.len() > KEY_BYTES_MAX && key.len() >= size_of::<RecordId>() && own_part(index, key).len() > KEY_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{ArrayBuf, DocumentBuf};
    use bunko_errors::ErrorCode;

    fn index_on(paths: &[&str]) -> IndexSpec {
        let key = paths.iter().fold(DocumentBuf::new(), |key, path| key.with(path, 1_i32));
        IndexSpec::parse(DocumentBuf::new().with("key", &key).with("name", "i").as_ref()).expect("a specification")
    }

    fn with_array(wide: &str, elements: i32) -> DocumentBuf {
        let numbers: ArrayBuf = (0..elements).collect();
        DocumentBuf::new().with("wide", wide).with("a", &numbers)
    }

    #[test]
    fn keys_are_refused_before_they_fill_the_memory() {
        let document = with_array(&"x".repeat(9000), 1_000_000);
        let failure = index_keys(&index_on(&["wide", "a"]), document.as_ref()).expect_err("9 GB of keys");
        assert_eq!(failure.code(), ErrorCode::CANNOT_BUILD_INDEX_KEYS);
    }

    #[test]
    fn the_longest_array_has_keys() {
        let document = with_array("", 1_200_000);
        let keys = index_keys(&index_on(&["a"]), document.as_ref()).expect("as many as a document holds");
        assert_eq!(keys.keys.len(), 1_200_000);
    }
}
