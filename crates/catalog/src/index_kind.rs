//! A kind of index: how it makes keys from documents, and how it reads its part of a specification.

use crate::long_key::shorten_key;
use crate::{IndexField, IndexSpec, Multikey, TextIndex};
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Maximum number of bytes in the key of an `_id` of a clustered collection, as in MongoDB.
const CLUSTERED_KEY_BYTES_MAX: usize = 8 << 20;

/// Maximum number of bytes of memory for a document's keys in one index. The largest array of numbers that a document
/// can hold takes less; more would not fit into a log record.
const KEYS_BYTES_MAX: usize = 64 << 20;
/// Memory that a key takes besides its bytes.
const KEY_BYTES_BESIDES: usize = size_of::<Vec<u8>>();

/// How a kind of index makes keys from documents.
pub trait IndexKind: fmt::Debug + Send + Sync {
    /// The name in key patterns; empty for an ordered index.
    fn name(&self) -> &'static str;

    /// Adds the keys of a document that belongs in the index, and returns where its paths met arrays.
    /// # Errors
    /// If the document cannot be indexed; as [`KeySet::add`].
    fn keys(&self, index: &IndexSpec, document: DocumentRef<'_>, keys: &mut KeySet<'_>) -> Result<Multikey>;

    /// Refuses arrays that a document's paths met, when the document is written or an index is built over it. Documents
    /// of an earlier version may have such arrays.
    /// # Errors
    /// If the kind does not support keys from these arrays.
    fn check_arrays(&self, _index: &IndexSpec, _arrays: &Multikey) -> Result<()> {
        Ok(())
    }

    /// Refuses values of a document, when it is written and has keys, or an index is built over it. Documents of an
    /// earlier version may have such values.
    /// # Errors
    /// If the document cannot be indexed.
    fn check_document(&self, _index: &IndexSpec, _document: DocumentRef<'_>) -> Result<()> {
        Ok(())
    }

    /// How the index answers conditions, which tells the planner when to use it.
    fn answers(&self) -> Answers;

    /// Whether documents have keys for this path, in an index that answers by path.
    fn covers(&self, _path: &str) -> bool {
        false
    }

    /// Whether documents have keys for this path and for all paths below it.
    fn covers_below(&self, _path: &str) -> bool {
        false
    }

    /// Refuses a collation that the kind does not support.
    /// # Errors
    /// `CannotCreateIndex`.
    fn check_strings(&self, _strings: &StringOrder) -> Result<()> {
        Ok(())
    }

    /// The kind as a text index, if it is one.
    fn text(&self) -> Option<&TextIndex> {
        None
    }
}

/// How an index answers conditions on the paths of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// The index's keys are the values of its fields, one after the other: see [`KeyForm`](crate::KeyForm).
    ByField,
    /// The index's keys are paths and values. It can be searched for the path of one condition if it
    /// [covers](IndexKind::covers) that path.
    ByPath {
        /// Number of ordinary fields before the path.
        before: usize,
    },
    /// Only by an operator or stage of its own.
    ByItself,
}

/// The result of reading a specification.
pub(crate) struct ReadKind {
    pub kind: Arc<dyn IndexKind>,
    pub fields: Vec<IndexField>,
    /// The key pattern that `listIndexes` shows, if it differs from the client's.
    pub key: Option<DocumentBuf>,
    /// Options that `listIndexes` shows, including defaults. They override the client's options of the same name.
    pub options: DocumentBuf,
}

/// A kind, and how it reads its part of a specification.
pub(crate) struct KindEntry {
    /// The kind's name in key patterns.
    pub name: &'static str,
    /// Options that no other kind has.
    pub options: &'static [&'static str],
    /// Reads a key pattern with this kind's name, and its options from the whole specification.
    pub read: fn(key: DocumentRef<'_>, spec: DocumentRef<'_>) -> Result<ReadKind>,
}

/// Collects the keys that a kind of index adds.
pub struct KeySet<'i> {
    index: &'i IndexSpec,
    pub(crate) keys: BTreeSet<Vec<u8>>,
    bytes: usize,
    /// Whether a key has been shortened.
    pub(crate) has_long: bool,
    /// The operation that the keys are for, if it may end before they are complete.
    operation: Option<&'i dyn OperationSource>,
    /// Work that has not been reported to the operation yet.
    steps: usize,
}

/// Steps of work after which the operation is checked. Most documents' keys need fewer and cost no check.
const STEPS_PER_QUESTION: usize = 512;
/// An operation's steps for adding one key.
const STEPS_PER_KEY: usize = 4;

impl fmt::Debug for KeySet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySet").field("index", &self.index.name).field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl<'i> KeySet<'i> {
    pub(crate) fn new(index: &'i IndexSpec, operation: Option<&'i dyn OperationSource>) -> Self {
        Self { index, keys: BTreeSet::new(), bytes: 0, has_long: false, operation, steps: 0 }
    }

    /// Counts work, as `OperationContext::work`.
    /// # Errors
    /// As `OperationContext::work`, which includes `Interrupted` if the operation is killed.
    pub fn ask(&mut self, steps: usize) -> Result<()> {
        self.steps += steps;
        match self.operation {
            Some(operation) if self.steps >= STEPS_PER_QUESTION => {
                operation.operation().work(std::mem::take(&mut self.steps))
            }
            _ => Ok(()),
        }
    }

    /// Adds a key, without the record id.
    /// # Errors
    /// `CannotBuildIndexKeys` for too many keys; 5894900 for an `_id` of a clustered collection that is too long; as
    /// [`Self::ask`].
    pub fn add(&mut self, mut key: Vec<u8>) -> Result<()> {
        self.ask(STEPS_PER_KEY + key.len() / 64)?;
        self.has_long |= fit(self.index, &mut key)?;
        let length = key.len();
        if self.keys.insert(key) {
            self.bytes += length + KEY_BYTES_BESIDES;
        }
        check_bytes(self.index, self.bytes)
    }
}

/// Shortens a key that is too long. Returns whether it did.
/// # Errors
/// 5894900 if MongoDB would not store the key at all.
pub(crate) fn fit(index: &IndexSpec, key: &mut Vec<u8>) -> Result<bool> {
    if index.is_clustered && key.len() > CLUSTERED_KEY_BYTES_MAX {
        let message = format!("the _id of a clustered collection has at most {CLUSTERED_KEY_BYTES_MAX} bytes");
        return Err(Failure::new(ErrorCode(5_894_900), message));
    }
    Ok(shorten_key(key))
}

fn check_bytes(index: &IndexSpec, bytes: usize) -> Result<()> {
    if bytes <= KEYS_BYTES_MAX {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::CANNOT_BUILD_INDEX_KEYS,
        format!("keys of one document in index {} take more than {KEYS_BYTES_MAX} bytes", index.name),
    ))
}
