//! The kinds of indexes: one file each, and one line in [`KINDS`].
//!
//! What every index may have stands elsewhere, once: `unique`, `sparse`, `hidden`, the partial filter and the expiry are of
//! [`IndexSpec`], and what a partial filter leaves out never reaches a kind.

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

/// What a kind of index makes of documents.
pub trait IndexKind: fmt::Debug + Send + Sync {
    /// As key patterns name it; an ordered index has no name.
    fn name(&self) -> &'static str;

    /// Adds the keys of a document, and tells where its paths met arrays. The document is one that the index takes.
    /// # Errors
    /// That the document cannot be indexed; those of [`KeySet::add`].
    fn keys(&self, index: &IndexSpec, document: DocumentRef<'_>, keys: &mut KeySet<'_>) -> Result<Multikey>;

    /// Refuses a document that is written, or that an index is built over, for the arrays that its paths met. Documents of
    /// an earlier version may have them.
    /// # Errors
    /// That the kind has no such keys.
    fn check_arrays(&self, _index: &IndexSpec, _arrays: &Multikey) -> Result<()> {
        Ok(())
    }

    /// Refuses a document that is written and has keys, or that an index is built over, for values that documents of an
    /// earlier version may have.
    /// # Errors
    /// That the document cannot be indexed.
    fn check_document(&self, _index: &IndexSpec, _document: DocumentRef<'_>) -> Result<()> {
        Ok(())
    }

    /// What the planner may ask of it.
    fn answers(&self) -> Answers;

    /// Whether documents have keys of that path, where the index answers by path.
    fn covers(&self, _path: &str) -> bool {
        false
    }

    /// Whether documents have keys of that path and of all paths below it.
    fn covers_below(&self, _path: &str) -> bool {
        false
    }

    /// Refuses an order of strings that it cannot have.
    /// # Errors
    /// `CannotCreateIndex`.
    fn check_strings(&self, _strings: &StringOrder) -> Result<()> {
        Ok(())
    }

    /// It as an index of texts, if it is one.
    fn text(&self) -> Option<&TextIndex> {
        None
    }
}

/// How an index answers conditions on the paths of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Its keys are those of its fields, one behind the other: see [`KeyForm`].
    ByField,
    /// Its keys are paths and values: one condition's path is looked for, where the index [covers](IndexKind::covers) it.
    ByPath {
        /// How many ordinary fields stand before the path.
        before: usize,
    },
    /// Only a stage of its own can ask it.
    ByItself,
}

/// What stands in a key for a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// The value.
    Value,
    /// Its hash, a 64-bit number.
    Hash,
}

/// What a kind has read of a specification.
pub(crate) struct ReadKind {
    pub kind: Arc<dyn IndexKind>,
    pub fields: Vec<IndexField>,
    /// The key pattern as `listIndexes` shows it, where that is another one.
    pub key: Option<DocumentBuf>,
    /// Options as `listIndexes` shows them, defaults included; options of the same name give way.
    pub options: DocumentBuf,
}

/// How a kind reads its part of a specification.
pub(crate) struct KindEntry {
    /// What names it in a key pattern.
    pub name: &'static str,
    /// Options that no other kind has.
    pub options: &'static [&'static str],
    /// Reads a key pattern that names it, and its options from the whole specification.
    pub read: fn(key: DocumentRef<'_>, spec: DocumentRef<'_>) -> Result<ReadKind>,
}

/// All kinds; the first is the one of patterns that name none.
pub(crate) const KINDS: &[KindEntry] =
    &[ordered::ENTRY, hashed::ENTRY, sphere::ENTRY, sphere_bucket::ENTRY, plane::ENTRY, text::ENTRY, wildcard::ENTRY];

/// The kind that a key pattern names.
/// # Errors
/// `CannotCreateIndex` for a name that is none, and for several; 7246202 for that of wildcard indexes.
pub(crate) fn of_pattern(key: DocumentRef<'_>) -> Result<&'static KindEntry> {
    let mut found = &KINDS[0];
    for element in key {
        let name = element.value.as_str();
        // All texts are of a text index; all other paths are of a wildcard index.
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

/// Refuses to order strings otherwise than by their bytes.
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
        // The next combination, counted up from the last field.
        let Some(counted) = (0..parts.len()).rev().find(|&field| chosen[field] + 1 < parts[field].len()) else {
            return Ok(());
        };
        chosen[counted] += 1;
        chosen[counted + 1..].fill(0);
    }
}

/// An option that is no number.
fn wrong_number(option: &str, value: ValueRef<'_>) -> Failure {
    Failure::type_mismatch(format!("The field '{option}' must be a number, but got {}", value.kind().alias()))
}
