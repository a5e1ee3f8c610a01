//! Compares the contents of a view with the expected ones.

use crate::document::{KEYS, key};
use crate::model::{Collection, Model, Stored, in_range, value_key};
use bunko_store::{
    Direction, KeyCursor, KeyRange, KeyspaceId, Location, RecordCursor, RecordId, RecordRange, StorageError, Store,
    View,
};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;

/// Maximum number of a collection's documents that are looked up one by one.
const POINT_READS: usize = 24;
/// Number of documents that are looked up together, and number of bytes after which such a lookup stops.
const SEVERAL_READS: usize = 64;
const SEVERAL_BYTES_MAX: usize = 2_000;
/// Length of a bound that no key reaches.
const LONG_BOUND_BYTES: usize = 70_000;

/// How a view differs from the model.
#[derive(Debug)]
pub enum Difference {
    /// The view shows something else.
    Wrong(String),
    /// The view could not be read.
    Failed(StorageError),
}

impl From<StorageError> for Difference {
    fn from(error: StorageError) -> Self {
        Self::Failed(error)
    }
}

/// Result of a comparison.
pub type Outcome = Result<(), Difference>;

fn expect<T: PartialEq + Debug>(what: impl Fn() -> String, found: &T, expected: &T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(Difference::Wrong(format!("{}: {found:?} instead of {expected:?}", what())))
}

/// Compares everything that a view shows.
pub fn all(view: &dyn View, model: &Model) -> Outcome {
    model.collections.values().try_for_each(|collection| whole(view, collection))
}

/// Compares the counts that the store keeps.
pub fn statistics(store: &Store, model: &Model) -> Outcome {
    for collection in model.collections.values() {
        for (keyspace, expected) in collection.statistics() {
            expect(|| format!("statistics of {keyspace:?}"), &store.keyspace_statistics(keyspace), &expected)?;
            expect(|| format!("entries of {keyspace:?}"), &store.entries(keyspace), &expected.entries)?;
        }
        let name = store.engine_name_of(collection.records);
        expect(|| format!("engine of {:?}", collection.records), &name, &collection.engine)?;
        let spaces = store.space(&[collection.records, collection.ids, collection.values]);
        expect(|| "number of spaces".to_owned(), &spaces.len(), &3)?;
    }
    Ok(())
}

/// Compares a collection: all scans, in both directions, and lookups of some of its documents.
pub fn whole(view: &dyn View, collection: &Collection) -> Outcome {
    let beyond = long_bounds();
    for direction in [Direction::Forward, Direction::Backward] {
        records(view, collection, RecordRange::ALL, direction)?;
        for index in [Index::Ids, Index::Values] {
            for range in beyond.iter().chain([&KeyRange::ALL]) {
                keys(view, collection, index, range, direction)?;
            }
        }
    }
    points(view, collection)
}

/// Ranges with bounds that are longer than any key.
fn long_bounds() -> Vec<KeyRange> {
    let mut long = key(0);
    long.resize(LONG_BOUND_BYTES, b'k');
    let longer = [long.as_slice(), &[0xff]].concat();
    vec![
        KeyRange { start: Bound::Included(long.clone()), end: Bound::Unbounded },
        KeyRange { start: Bound::Unbounded, end: Bound::Excluded(long.clone()) },
        KeyRange { start: Bound::Included(long), end: Bound::Excluded(longer) },
    ]
}

/// Selects an index of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// The index of primary keys.
    Ids,
    /// The index of other keys.
    Values,
}

impl Collection {
    /// The keyspace of an index and its expected contents.
    pub fn index(&self, index: Index) -> (KeyspaceId, &BTreeMap<Vec<u8>, u64>) {
        match index {
            Index::Ids => (self.ids, &self.by_id),
            Index::Values => (self.values, &self.by_value),
        }
    }

    /// Expected records of a walk over the record store.
    pub fn records_in(&self, range: RecordRange, direction: Direction) -> Vec<(u64, Stored)> {
        let (start, end) = (range.start.map(|record| record.0), range.end.map(|record| record.0));
        let records = in_range(&self.documents, &start, &end).map(|(&record, &stored)| (record, stored));
        in_direction(records, direction)
    }

    /// Expected keys of a walk over an index.
    pub fn keys_in(&self, index: Index, range: &KeyRange, direction: Direction) -> Vec<(Vec<u8>, u64)> {
        let keys = in_range(self.index(index).1, &range.start, &range.end);
        in_direction(keys.map(|(key, &record)| (key.clone(), record)), direction)
    }
}

fn in_direction<T>(items: impl DoubleEndedIterator<Item = T>, direction: Direction) -> Vec<T> {
    match direction {
        Direction::Forward => items.collect(),
        Direction::Backward => items.rev().collect(),
    }
}

/// Compares a walk over records.
pub fn records(view: &dyn View, collection: &Collection, range: RecordRange, direction: Direction) -> Outcome {
    let mut cursor = view.records(collection.records, range, direction);
    for (record, stored) in collection.records_in(range, direction) {
        next_record(&mut *cursor, Some((record, stored)))?;
    }
    next_record(&mut *cursor, None)
}

/// Compares one step of a walk over records.
pub fn next_record(cursor: &mut dyn RecordCursor, expected: Option<(u64, Stored)>) -> Outcome {
    let found = cursor.next()?;
    let ids = (found.map(|(record, ..)| record.0), expected.map(|(record, _)| record));
    expect(|| "next record of a walk".to_owned(), &ids.0, &ids.1)?;
    if let (Some((record, location, bytes)), Some((_, stored))) = (found, expected) {
        document(record, location, bytes, stored)?;
    }
    Ok(())
}

fn document(record: RecordId, location: Location, bytes: &[u8], stored: Stored) -> Outcome {
    expect(|| format!("length of {record:?} in its location"), &location.length, &stored.document.length)?;
    let expected = stored.document.bytes();
    if bytes == expected {
        return Ok(());
    }
    let at = bytes.iter().zip(&expected).position(|(found, expected)| found != expected);
    let (found, wanted) = (bytes.len(), expected.len());
    let what =
        format!("{record:?} should be {:?}: differs at {at:?}, {found} bytes instead of {wanted}", stored.document);
    Err(Difference::Wrong(what))
}

/// Compares a walk over an index.
pub fn keys(view: &dyn View, collection: &Collection, index: Index, range: &KeyRange, direction: Direction) -> Outcome {
    let mut cursor = view.keys(collection.index(index).0, range.clone(), direction);
    for (key, record) in collection.keys_in(index, range, direction) {
        next_key(&mut *cursor, Some((&key, record)))?;
    }
    next_key(&mut *cursor, None)
}

/// Compares one step of a walk over an index.
pub fn next_key(cursor: &mut dyn KeyCursor, expected: Option<(&[u8], u64)>) -> Outcome {
    let found = cursor.next()?.map(|(key, record)| (Short(key), record.0));
    expect(|| "next key of a walk".to_owned(), &found, &expected.map(|(key, record)| (Short(key), record)))
}

/// Compares lookups of single documents and keys, both existing and missing ones.
pub fn points(view: &dyn View, collection: &Collection) -> Outcome {
    let mut bytes = vec![0xaa; 3];
    for (&record, &stored) in collection.documents.iter().take(POINT_READS) {
        let location = view.record(collection.records, RecordId(record), &mut bytes)?;
        let location = location.ok_or_else(|| Difference::Wrong(format!("record {record} is not found")))?;
        document(RecordId(record), location, &bytes, stored)?;
        let value = view.key(collection.values, &value_key(stored.value, record))?.map(|found| found.0);
        expect(|| format!("record that the value of record {record} leads to"), &value, &Some(record))?;
    }
    for absent in [0, collection.next_record, u64::MAX].into_iter().filter(|id| !collection.documents.contains_key(id))
    {
        let found = view.record(collection.records, RecordId(absent), &mut bytes)?.map(|location| location.length);
        expect(|| format!("record {absent}, which is not there"), &found, &None)?;
    }
    for number in 0..KEYS {
        let key = key(number);
        let expected = collection.by_id.get(&key).copied();
        let what = || format!("record that primary key {:?} leads to", Short(&key));
        expect(what, &view.key(collection.ids, &key)?.map(|record| record.0), &expected)?;
        expect(what, &view.primary_key(collection.ids, &key)?.map(|record| record.0), &expected)?;
        let found = view.record_by_primary_key(collection.ids, collection.records, &key, &mut bytes)?;
        expect(what, &found.map(|(record, _)| record.0), &expected)?;
        if let Some((record, location)) = found {
            document(record, location, &bytes, collection.documents[&record.0])?;
        }
        vacancy(view, collection, key, self::key(number + 1))?;
    }
    several_points(view, collection, usize::MAX)?;
    several_points(view, collection, SEVERAL_BYTES_MAX)
}

/// Compares lookups of several documents at a time: every second existing record, beginning with the last, each
/// followed by the next id, and some missing ids. Each call stops after `bytes_max` bytes.
fn several_points(view: &dyn View, collection: &Collection, bytes_max: usize) -> Outcome {
    let there =
        collection.documents.keys().rev().step_by(2).take(SEVERAL_READS).flat_map(|record| [*record, record + 1]);
    let records: Vec<RecordId> = there.chain([0, collection.next_record, u64::MAX]).map(RecordId).collect();
    let (mut rest, mut found) = (&records[..], Vec::new());
    while !rest.is_empty() {
        let (mut bytes, mut outcome) = (0, Ok(()));
        let read = view.some_records(collection.records, rest, bytes_max, &mut |number, location, document| {
            bytes += document.len();
            found.push(rest[number].0);
            if let (Ok(()), Some(&stored)) = (&outcome, collection.documents.get(&rest[number].0)) {
                outcome = self::document(rest[number], location, document, stored);
            }
        })?;
        outcome?;
        expect(|| "whether several are enough".to_owned(), &(read == rest.len() || bytes >= bytes_max), &true)?;
        expect(|| "whether one at least is read".to_owned(), &(read > 0), &true)?;
        rest = &rest[read..];
    }
    let mut wanted: Vec<u64> = records.iter().map(|record| record.0).collect();
    wanted.retain(|record| collection.documents.contains_key(record));
    wanted.sort_unstable();
    found.sort_unstable();
    expect(|| "records that are looked up several at once".to_owned(), &found, &wanted)
}

/// Checks that a range that is called vacant has no keys. An engine that does not know calls the range not vacant.
fn vacancy(view: &dyn View, collection: &Collection, one: Vec<u8>, other: Vec<u8>) -> Outcome {
    let (first, last) = if one <= other { (one, other) } else { (other, one) };
    let is_vacant = view.is_vacant(collection.ids, &first, &last)?;
    match collection.by_id.range(first..=last).next() {
        Some((held, _)) if is_vacant => {
            Err(Difference::Wrong(format!("a range with {:?} in it is called vacant", Short(held))))
        }
        _ => Ok(()),
    }
}

/// A key, printed with counts instead of repeated bytes.
#[derive(PartialEq)]
pub struct Short<'k>(pub &'k [u8]);

impl Debug for Short<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runs = self.0.chunk_by(|left, right| left == right).map(|run| {
            let count = if run.len() > 1 { format!("*{}", run.len()) } else { String::new() };
            format!("{}{count}", run[0].escape_ascii())
        });
        write!(f, "'{}'", runs.collect::<Vec<_>>().join("+"))
    }
}

/// Converts a bound of record ids.
pub fn record_bound(bound: Bound<u64>) -> Bound<RecordId> {
    bound.map(RecordId)
}
