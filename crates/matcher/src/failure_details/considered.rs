//! The values that failure details repeat.

use super::wording::Wording;
use crate::evaluation::{Evaluation, any_value};
use crate::path::{Leaves, Path};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Type, Value, ValueRef};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Maximum size of a value repeated in details, in bytes: one answer may have a thousand of them.
const CONSIDERED_BYTES_MAX: usize = 16 << 10;

/// Maximum number of values of one path repeated in details.
/// Source: MongoDB, parameter `internalQueryMaxDocValidationErrorConsideredValues`.
const CONSIDERED_VALUES_MAX: usize = 10;

/// Adds the tested value, unless it is too large.
pub(crate) fn consider(details: &mut DocumentBuf, value: ValueRef<'_>) {
    if len_bytes(value) <= CONSIDERED_BYTES_MAX {
        details.append("consideredValue", value);
    }
}

fn len_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Document(document) => document.len_bytes(),
        ValueRef::Array(list) => list.as_document().len_bytes(),
        ValueRef::String(text) => text.len(),
        ValueRef::Binary { bytes, .. } => bytes.len(),
        _ => 0,
    }
}

/// The values that an operator tested.
#[derive(Default)]
pub(super) struct Considered {
    /// The first values.
    values: Vec<Value>,
    /// The type names of all values.
    types: BTreeSet<&'static str>,
    is_truncated: bool,
}

impl Considered {
    pub fn at(path: &Path, leaves: Leaves, document: DocumentRef<'_>, evaluation: &mut Evaluation<'_>) -> Self {
        let considered = RefCell::new(Self::default());
        any_value(document, path, leaves, evaluation, |value, _, _| {
            if let Some(value) = value {
                considered.borrow_mut().add(value);
            }
            false
        });
        considered.into_inner()
    }

    fn add(&mut self, value: ValueRef<'_>) {
        self.types.insert(value.kind().alias());
        if self.values.len() == CONSIDERED_VALUES_MAX || len_bytes(value) > CONSIDERED_BYTES_MAX {
            self.is_truncated = true;
        } else {
            self.values.push(value.to_value());
        }
    }

    pub fn tell(&self, operator: &str, reason: &str, wording: &Wording, details: &mut DocumentBuf) {
        let is_expected = |kind: &Type| self.types.contains(kind.alias());
        if self.types.is_empty() {
            details.append("reason", "field was missing");
        } else if wording.types.is_empty() || wording.types.iter().any(is_expected) {
            details.append("reason", reason);
        } else {
            details.append("reason", "type did not match");
            append_names(details, "consideredType", self.types.iter().copied());
            append_names(details, "expectedType", wording.types.iter().map(|kind| kind.alias()));
        }
        match &self.values[..] {
            [] => {}
            [value] if !self.is_truncated => {
                details.append("consideredValue", value.as_ref());
            }
            values => {
                details.append("consideredValues", &values.iter().map(Value::as_ref).collect::<ArrayBuf>());
            }
        }
        if self.is_truncated && !self.values.is_empty() {
            details.append("consideredValuesTruncated", true);
        }
        if operator == "$type" && !self.types.is_empty() {
            append_names(details, "consideredType", self.types.iter().copied());
        }
    }
}

/// Appends one name under `field`, or several under its plural.
fn append_names<'n>(details: &mut DocumentBuf, field: &str, names: impl Iterator<Item = &'n str>) {
    let names: Vec<_> = names.collect();
    match names[..] {
        [name] => details.append(field, name),
        _ => details.append(&format!("{field}s"), &names.iter().copied().collect::<ArrayBuf>()),
    };
}
