//! The kinds of indexes: each has one file and one line in [`KINDS`].
//!
//! Properties that any index may have are implemented once, elsewhere. `unique`, `sparse`, `hidden`, the partial filter
//! and the expiry belong to [`IndexSpec`]; a kind never sees documents that a partial filter excludes.

mod hashed;
mod ordered;
mod plane;
mod sphere;
mod sphere_bucket;
mod text;
mod wildcard;

pub use text::TextIndex;
pub(crate) use text::{NAME as TEXT_INDEX, SCORES as TEXT_SCORES, TERMS as TEXT_TERMS};

use crate::index_keys::KeySet;
use crate::{IndexField, IndexSpec, Multikey};
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use std::fmt;
use std::sync::Arc;

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

    /// The conditions that the planner may use it for.
    fn answers(&self) -> Answers;

    /// Whether documents have keys for this path, in an index that answers by path.
    fn covers(&self, _path: &str) -> bool {
        false
    }

    /// Whether documents have keys for this path and for all paths below it.
    fn covers_below(&self, _path: &str) -> bool {
        false
    }

    /// Refuses an order of strings that the kind does not support.
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
    /// Its keys are the values of its fields, one after the other: see [`KeyForm`].
    ByField,
    /// Its keys are paths and values. It can be searched for one condition's path if it [covers](IndexKind::covers) the
    /// path.
    ByPath {
        /// Number of ordinary fields before the path.
        before: usize,
    },
    /// Only by an operator or stage of its own.
    ByItself,
}

/// The form of a field's value in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// The value.
    Value,
    /// Its hash, a 64-bit number.
    Hash,
}

/// The result of reading a specification.
pub(crate) struct ReadKind {
    pub kind: Arc<dyn IndexKind>,
    pub fields: Vec<IndexField>,
    /// The key pattern that `listIndexes` shows, if it differs from the given one.
    pub key: Option<DocumentBuf>,
    /// Options that `listIndexes` shows, including defaults. They override given options of the same name.
    pub options: DocumentBuf,
}

/// A kind, and how it reads its part of a specification.
pub(crate) struct KindEntry {
    /// Its name in key patterns.
    pub name: &'static str,
    /// Options that no other kind has.
    pub options: &'static [&'static str],
    /// Reads a key pattern with this kind's name, and its options from the whole specification.
    pub read: fn(key: DocumentRef<'_>, spec: DocumentRef<'_>) -> Result<ReadKind>,
}

/// All kinds. The first is that of patterns without a name.
pub(crate) const KINDS: &[KindEntry] =
    &[ordered::ENTRY, hashed::ENTRY, sphere::ENTRY, sphere_bucket::ENTRY, plane::ENTRY, text::ENTRY, wildcard::ENTRY];

/// The kind that a key pattern names.
/// # Errors
/// `CannotCreateIndex` for an unknown name or for several; 7246202 for the name `wildcard`.
pub(crate) fn of_pattern(key: DocumentRef<'_>) -> Result<&'static KindEntry> {
    let mut found = &KINDS[0];
    for element in key {
        let name = element.value.as_str();
        // `{'$**': 'text'}` is a text index; any other `$**` is a wildcard index.
        if element.name.contains(wildcard::ALL_PATHS) && name != Some(text::NAME) {
            return Ok(&wildcard::ENTRY);
        }
        let Some(name) = name else { continue };
        if name == wildcard::ENTRY.name {
            let message = "A wildcard index is one of '$**' in the key pattern, and not of the string 'wildcard'";
            return Err(Failure::new(ErrorCode(7_246_202), message));
        }
        let is_named = |kind: &&KindEntry| kind.name == name;
        let Some(kind) = KINDS.iter().skip(1).find(is_named) else {
            return Err(Failure::new(ErrorCode::CANNOT_CREATE_INDEX, format!("Unknown index plugin '{name}'")));
        };
        if !found.name.is_empty() && found.name != kind.name {
            let message = "Can't use more than one index plugin for a single index.";
            return Err(Failure::new(ErrorCode::CANNOT_CREATE_INDEX, message));
        }
        found = kind;
    }
    Ok(found)
}

/// Refuses any order of strings but that of their bytes.
fn refuse_strings(kind: &str, strings: &StringOrder) -> Result<()> {
    match strings.collator() {
        None => Ok(()),
        Some(collator) => Err(Failure::new(
            ErrorCode::CANNOT_CREATE_INDEX,
            format!(
                "Index type '{kind}' does not support collation: {}",
                bunko_bson::text::ValueText(ValueRef::Document(collator.specification()))
            ),
        )),
    }
}

/// Adds a key for each combination of the fields' values.
/// # Errors
/// As [`KeySet::add`].
fn add_combinations(index: &IndexSpec, parts: &[Vec<Value>], keys: &mut KeySet<'_>) -> Result<()> {
    let mut chosen = vec![0; parts.len()];
    loop {
        let mut key = Vec::with_capacity(24);
        for ((part, &position), field) in parts.iter().zip(&chosen).zip(index.fields.iter()) {
            index.strings.append_key(&mut key, part[position].as_ref(), field.direction);
        }
        keys.add(key)?;
        // Counts to the next combination, from the last field.
        let Some(counted) = (0..parts.len()).rev().find(|&field| chosen[field] + 1 < parts[field].len()) else {
            return Ok(());
        };
        chosen[counted] += 1;
        chosen[counted + 1..].fill(0);
    }
}

/// The failure for an option that is not a number.
fn wrong_number(option: &str, value: ValueRef<'_>) -> Failure {
    Failure::type_mismatch(format!("The field '{option}' must be a number, but got {}", value.kind().alias()))
}
