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

use crate::IndexSpec;
use crate::index_kind::{KeySet, KindEntry};
use bunko_bson::{DocumentRef, StringOrder, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

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

/// Refuses any collation but the simple one.
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
