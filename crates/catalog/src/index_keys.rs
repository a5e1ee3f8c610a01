//! Deriving a document's keys in an index.
//!
//! A path that meets an array yields one key per element; two such paths in one index are refused, as their
//! combinations would explode ("parallel arrays"). Missing fields count as null, an empty array as undefined.

use crate::Index;
use bunko_bson::{DocumentRef, ValueRef, key_string};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::RecordId;
use std::collections::BTreeSet;

/// Longest index key, in bytes; the trees below take no longer ones.
pub(crate) const KEY_BYTES_MAX: usize = 60_000;
/// Most bytes that a document's keys in one index take in memory. An array of as many numbers as a document holds takes
/// less; what takes more would not fit into a record of the log.
const KEYS_BYTES_MAX: usize = 64 << 20;
/// What a key takes in memory besides its bytes.
const KEY_BYTES_BESIDES: usize = size_of::<Vec<u8>>();

/// A document's keys in one index, smallest first and without repeats.
#[derive(Debug, Default)]
pub struct IndexKeys {
    /// Without the record id that ends a key of an index that is not unique.
    pub keys: BTreeSet<Vec<u8>>,
    /// One bit per field whose path met an array.
    pub multikey: u64,
}

/// Derives the keys of `document` in `index`.
/// # Errors
/// `CannotIndexParallelArrays`; `KeyTooLong`; `CannotBuildIndexKeys` where there are too many.
pub fn index_keys(index: &Index, document: DocumentRef<'_>) -> Result<IndexKeys> {
    let mut single = Vec::with_capacity(24);
    if scalar_key(index, document, &mut single) {
        check_length(index, &single)?;
        return Ok(IndexKeys { keys: BTreeSet::from([single]), multikey: 0 });
    }
    expanded_keys(index, document)
}

/// The common case: no array on any path, so exactly one key. False where an array is met.
pub(crate) fn scalar_key(index: &Index, document: DocumentRef<'_>, key: &mut Vec<u8>) -> bool {
    for field in &index.fields {
        let Some(value) = scalar_at(document, &field.path) else { return false };
        key_string::append(key, value, field.direction);
    }
    true
}

/// The value at a path that meets no array, null where it is missing; `None` where it meets one.
fn scalar_at<'a>(document: DocumentRef<'a>, path: &str) -> Option<ValueRef<'a>> {
    let mut document = document;
    let mut rest = path;
    loop {
        let (name, tail) = rest.split_once('.').map_or((rest, None), |(name, tail)| (name, Some(tail)));
        let value = document.get(name);
        match (value, tail) {
            (Some(ValueRef::Array(_)), _) => return None,
            (None, _) => return Some(ValueRef::Null),
            (Some(value), None) => return Some(value),
            (Some(ValueRef::Document(inner)), Some(tail)) => (document, rest) = (inner, tail),
            (Some(_), Some(_)) => return Some(ValueRef::Null),
        }
    }
}

fn expanded_keys(index: &Index, document: DocumentRef<'_>) -> Result<IndexKeys> {
    let mut multikey = 0_u64;
    let mut array_owner: Option<(&str, &str)> = None;
    let mut partial: Vec<Vec<u8>> = vec![Vec::new()];
    for (position, field) in index.fields.iter().enumerate() {
        let mut values = Values::default();
        values.collect(ValueRef::Document(document), &field.path);
        if values.met_array {
            multikey |= 1 << position;
            let root = field.path.split('.').next().unwrap_or_default();
            // Fields below one and the same array vary together; this index form keeps their combinations only when
            // they are one field, so anything else is refused rather than indexed wrongly.
            if let Some((other_root, other_path)) = array_owner
                && other_root != root
            {
                return Err(parallel_arrays(other_path, &field.path));
            }
            array_owner = Some((root, &field.path));
        }
        partial = extend(index, &partial, &values.found, field.direction)?;
    }
    if let Some((_, path)) = array_owner
        && multikey.count_ones() > 1
    {
        let root = path.split('.').next().unwrap_or_default();
        partial = correlated_keys(index, document, root)?;
    }
    for key in &partial {
        check_length(index, key)?;
    }
    Ok(IndexKeys { keys: partial.into_iter().collect(), multikey })
}

/// Several fields below one array: one key per element, as each element is a document of its own.
fn correlated_keys(index: &Index, document: DocumentRef<'_>, root: &str) -> Result<Vec<Vec<u8>>> {
    let elements: Vec<ValueRef<'_>> = match document.get(root) {
        Some(ValueRef::Array(array)) if !array.is_empty() => array.iter().collect(),
        Some(ValueRef::Array(_)) => vec![ValueRef::Undefined],
        other => other.into_iter().collect(),
    };
    let mut keys = Vec::new();
    let mut bytes = 0;
    for element in elements {
        let mut partial = vec![Vec::new()];
        for field in &index.fields {
            let mut values = Values::default();
            match field.path.strip_prefix(root).map(|rest| rest.strip_prefix('.')) {
                Some(Some(rest)) => values.collect(element, rest),
                Some(None) if field.path == root => values.found.push(element),
                _ => values.collect(ValueRef::Document(document), &field.path),
            }
            partial = extend(index, &partial, &values.found, field.direction)?;
        }
        bytes += partial.iter().map(|key| key.len() + KEY_BYTES_BESIDES).sum::<usize>();
        check_bytes(index, bytes)?;
        keys.extend(partial);
    }
    Ok(keys)
}

/// Each of `partial` with each of `values` behind it.
fn extend(
    index: &Index,
    partial: &[Vec<u8>],
    values: &[ValueRef<'_>],
    direction: key_string::Direction,
) -> Result<Vec<Vec<u8>>> {
    check_bytes(index, partial.len().saturating_mul(values.len()).saturating_mul(KEY_BYTES_BESIDES))?;
    let mut extended = Vec::with_capacity(partial.len() * values.len());
    let mut bytes = 0;
    for prefix in partial {
        for value in values {
            let mut key = prefix.clone();
            key_string::append(&mut key, *value, direction);
            bytes += key.len() + KEY_BYTES_BESIDES;
            check_bytes(index, bytes)?;
            extended.push(key);
        }
    }
    Ok(extended)
}

/// The values that keys hold of a path.
pub(crate) fn values_at<'a>(document: DocumentRef<'a>, path: &str) -> Vec<ValueRef<'a>> {
    let mut values = Values::default();
    values.collect(ValueRef::Document(document), path);
    values.found
}

/// The values that a path leads to.
#[derive(Default)]
struct Values<'a> {
    found: Vec<ValueRef<'a>>,
    met_array: bool,
}

impl<'a> Values<'a> {
    /// Follows `path` from `value`; arrays on the way contribute each element, an array at the end each value.
    fn collect(&mut self, value: ValueRef<'a>, path: &str) {
        let (name, tail) = path.split_once('.').map_or((path, None), |(name, tail)| (name, Some(tail)));
        match value {
            ValueRef::Document(document) => match (document.get(name), tail) {
                (None, _) => self.found.push(ValueRef::Null),
                (Some(inner), None) => self.collect_end(inner),
                (Some(inner), Some(tail)) => self.collect(inner, tail),
            },
            ValueRef::Array(array) => self.collect_array(array, path, name, tail),
            _ => self.found.push(ValueRef::Null),
        }
    }

    fn collect_array(&mut self, array: bunko_bson::ArrayRef<'a>, path: &str, name: &str, tail: Option<&str>) {
        // A number names a position, unless the elements have a field of that name.
        if let Ok(position) = name.parse::<usize>()
            && let Some(element) = array.get(position)
        {
            match tail {
                None => self.collect_end(element),
                Some(tail) => self.collect(element, tail),
            }
            return;
        }
        self.met_array = true;
        if array.is_empty() {
            self.found.push(ValueRef::Null);
        }
        for element in array.iter() {
            match element {
                ValueRef::Document(_) => self.collect(element, path),
                _ => self.found.push(ValueRef::Null),
            }
        }
    }

    fn collect_end(&mut self, value: ValueRef<'a>) {
        let ValueRef::Array(array) = value else {
            self.found.push(value);
            return;
        };
        self.met_array = true;
        if array.is_empty() {
            self.found.push(ValueRef::Undefined);
        }
        self.found.extend(array.iter());
    }
}

fn check_length(index: &Index, key: &[u8]) -> Result<()> {
    if key.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::KEY_TOO_LONG,
        format!("key of {} bytes is too large for index {}, at most {KEY_BYTES_MAX}", key.len(), index.name),
    ))
}

fn check_bytes(index: &Index, bytes: usize) -> Result<()> {
    if bytes <= KEYS_BYTES_MAX {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::CANNOT_BUILD_INDEX_KEYS,
        format!("keys of one document in index {} take more than {KEYS_BYTES_MAX} bytes", index.name),
    ))
}

fn parallel_arrays(one: &str, other: &str) -> Failure {
    Failure::new(
        ErrorCode::CANNOT_INDEX_PARALLEL_ARRAYS,
        format!("cannot index parallel arrays [{}] [{}]", last_component(other), last_component(one)),
    )
}

fn last_component(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The key as it stands in the index: followed by the record id where the index is not unique.
pub(crate) fn stored_key(index: &Index, key: &mut Vec<u8>, record: RecordId) {
    if !index.is_unique {
        key.extend_from_slice(&record.0.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexField;
    use bunko_bson::key_string::Direction;
    use bunko_bson::{ArrayBuf, DocumentBuf};
    use bunko_store::KeyspaceId;

    fn index_on(paths: &[&str]) -> Index {
        let direction = Direction::Ascending;
        let fields = paths.iter().map(|path| IndexField { path: (*path).to_owned(), direction }).collect();
        Index::new("i".to_owned(), KeyspaceId(1), fields, false, DocumentBuf::new())
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
