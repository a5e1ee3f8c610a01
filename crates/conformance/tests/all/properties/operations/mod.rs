//! Operations of the property test, and their generation.

pub mod machine;

use bunko_conformance::comparison::Index;
use bunko_conformance::document::{Document, KEYS};
use bunko_store::Direction;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt;
use std::ops::Bound;

/// Lengths of documents, in bytes.
const LENGTHS: [u32; 9] = [5, 6, 40, 40, 200, 1000, 4096, 20_000, 100_000];

/// One step. Numbers choose among the objects that exist at that time, so a sequence stays valid when steps are left
/// out.
#[derive(Clone)]
pub enum Operation {
    /// Creates a collection in one of the engines.
    Create {
        engine: usize,
    },
    /// Drops a collection in one record, with its catalog record.
    Drop {
        collection: usize,
    },
    /// Changes documents in one record.
    Write {
        changes: Vec<Change>,
        acknowledgement: Acknowledgement,
    },
    /// Inserts large documents until a segment is full, then deletes all but the first.
    Fill {
        collection: usize,
        seed: u32,
    },
    Checkpoint,
    Compact,
    Snapshot,
    Release {
        snapshot: usize,
    },
    /// Reads from a snapshot, or from the latest state if there is none.
    Look {
        snapshot: usize,
        collection: usize,
        at: Part,
    },
    /// Opens a walk and keeps it open.
    OpenCursor {
        snapshot: usize,
        collection: usize,
        at: Part,
    },
    Advance {
        cursor: usize,
        steps: usize,
    },
    /// Closes and opens the store.
    Reopen,
    /// Kills and opens the store.
    Crash,
}

/// Whether the machine waits for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    Written,
    None,
}

/// Change of one document.
#[derive(Clone)]
pub enum Change {
    Insert { collection: usize, id: u8, value: u8, document: Document },
    Replace { collection: usize, record: usize, value: u8, document: Document },
    Delete { collection: usize, record: usize },
}

/// Part of a collection.
#[derive(Clone)]
pub enum Part {
    Whole,
    Points,
    /// Bounds are record ids.
    Records(Bound<u64>, Bound<u64>, Direction),
    /// Bounds are numbers of keys.
    Keys(Index, Bound<u8>, Bound<u8>, Direction),
}

/// Chooses an object by its number modulo their count. Small, so that failures are easy to read.
fn number() -> impl Strategy<Value = usize> {
    0..1000_usize
}

fn document() -> impl Strategy<Value = Document> {
    (0..4_u32, prop::sample::select(&LENGTHS[..])).prop_map(|(seed, length)| Document { seed, length })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (number(), 0..KEYS, 0..KEYS, document())
            .prop_map(|(collection, id, value, document)| Change::Insert { collection, id, value, document }),
        3 => (number(), number(), 0..KEYS, document())
            .prop_map(|(collection, record, value, document)| Change::Replace { collection, record, value, document }),
        2 => (number(), number()).prop_map(|(collection, record)| Change::Delete { collection, record }),
    ]
}

fn bound<T: fmt::Debug + Clone>(value: impl Strategy<Value = T> + Clone) -> impl Strategy<Value = Bound<T>> {
    prop_oneof![Just(Bound::Unbounded), value.clone().prop_map(Bound::Included), value.prop_map(Bound::Excluded)]
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Forward), Just(Direction::Backward)]
}

fn walk() -> impl Strategy<Value = Part> {
    let index = prop_oneof![Just(Index::Ids), Just(Index::Values)];
    prop_oneof![
        (bound(0..30_u64), bound(0..30_u64), direction())
            .prop_map(|(start, end, direction)| Part::Records(start, end, direction)),
        (index, bound(0..KEYS), bound(0..KEYS), direction())
            .prop_map(|(index, start, end, direction)| Part::Keys(index, start, end, direction)),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![Just(Part::Whole), Just(Part::Points), walk()]
}

/// Any operation.
pub fn operation() -> impl Strategy<Value = Operation> {
    let acknowledgement = prop_oneof![3 => Just(Acknowledgement::Written), 1 => Just(Acknowledgement::None)];
    prop_oneof![
        4 => number().prop_map(|engine| Operation::Create { engine }),
        1 => number().prop_map(|collection| Operation::Drop { collection }),
        24 => (vec(change(), 1..12), acknowledgement)
            .prop_map(|(changes, acknowledgement)| Operation::Write { changes, acknowledgement }),
        1 => (number(), 0..4_u32).prop_map(|(collection, seed)| Operation::Fill { collection, seed }),
        4 => Just(Operation::Checkpoint),
        2 => Just(Operation::Compact),
        4 => Just(Operation::Snapshot),
        2 => number().prop_map(|snapshot| Operation::Release { snapshot }),
        6 => (number(), number(), part())
            .prop_map(|(snapshot, collection, at)| Operation::Look { snapshot, collection, at }),
        3 => (number(), number(), walk())
            .prop_map(|(snapshot, collection, at)| Operation::OpenCursor { snapshot, collection, at }),
        4 => (number(), 1..6_usize).prop_map(|(cursor, steps)| Operation::Advance { cursor, steps }),
        1 => Just(Operation::Reopen),
        1 => Just(Operation::Crash),
    ]
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { engine } => write!(f, "create in engine {engine}"),
            Self::Drop { collection } => write!(f, "drop {collection}"),
            Self::Write { changes, acknowledgement } => {
                let how = if *acknowledgement == Acknowledgement::Written { "write" } else { "append" };
                write!(f, "{how} {changes:?}")
            }
            Self::Fill { collection, seed } => write!(f, "fill {collection} with seed {seed}"),
            Self::Checkpoint => f.write_str("checkpoint"),
            Self::Compact => f.write_str("compact"),
            Self::Snapshot => f.write_str("snapshot"),
            Self::Release { snapshot } => write!(f, "release {snapshot}"),
            Self::Look { snapshot, collection, at } => write!(f, "look at {at:?} of {collection} in {snapshot}"),
            Self::OpenCursor { snapshot, collection, at } => {
                write!(f, "open cursor on {at:?} of {collection} in {snapshot}")
            }
            Self::Advance { cursor, steps } => write!(f, "advance {cursor} by {steps}"),
            Self::Reopen => f.write_str("reopen"),
            Self::Crash => f.write_str("crash"),
        }
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insert { collection, id, value, document: Document { seed, length } } => {
                write!(f, "insert into {collection}: id {id} value {value} {length} bytes of {seed}")
            }
            Self::Replace { collection, record, value, document: Document { seed, length } } => {
                write!(f, "replace in {collection}: record {record} value {value} {length} bytes of {seed}")
            }
            Self::Delete { collection, record } => write!(f, "delete from {collection}: record {record}"),
        }
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("all"),
            Self::Points => f.write_str("points"),
            Self::Records(start, end, direction) => write!(f, "records {start:?}..{end:?} {direction:?}"),
            Self::Keys(index, start, end, direction) => write!(f, "{index:?} {start:?}..{end:?} {direction:?}"),
        }
    }
}
