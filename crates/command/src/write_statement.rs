//! What the batches of `update` and `delete` share: reading statements, judging the whole, running one by one.

use crate::dispatch::Halt;
use crate::invocation::Invocation;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_catalog::{Namespace, Order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::Hint;
use bunko_query::write::records_expected;
use bunko_update::Targets;

/// Records that a command may look at where others wait for it: about 2 ms.
const RECORDS_SHORT_MAX: u64 = 2000;

/// One entry of `updates` or `deletes`.
pub(crate) struct Statement<'a> {
    /// Where it stands, for messages: `update.updates`.
    place: &'static str,
    document: DocumentRef<'a>,
}

impl<'a> Statement<'a> {
    /// # Errors
    /// `IDLUnknownField` for a field that is not in `known`.
    pub(crate) fn new(place: &'static str, document: DocumentRef<'a>, known: &[&str]) -> Result<Self> {
        match document.iter().find(|field| !known.contains(&field.name)) {
            Some(field) => Err(Failure::new(
                ErrorCode::IDL_UNKNOWN_FIELD,
                format!("BSON field '{place}.{}' is an unknown field.", field.name),
            )),
            None => Ok(Self { place, document }),
        }
    }

    /// A field that is there and not null.
    pub(crate) fn field(&self, name: &str) -> Option<ValueRef<'a>> {
        self.document.get(name).filter(|value| !value.is_nullish())
    }

    /// A field that must be there, of whatever type.
    pub(crate) fn required(&self, name: &str) -> Result<ValueRef<'a>> {
        self.document.get(name).ok_or_else(|| {
            Failure::new(
                ErrorCode::IDL_FAILED_TO_PARSE,
                format!("BSON field '{}.{name}' is missing but a required field", self.place),
            )
        })
    }

    /// A document that must be there.
    pub(crate) fn required_document(&self, name: &str) -> Result<DocumentRef<'a>> {
        let value = self.required(name)?;
        value.as_document().ok_or_else(|| self.mismatch(name, value, "object"))
    }

    /// A document that may be missing.
    pub(crate) fn document(&self, name: &str) -> Result<Option<DocumentRef<'a>>> {
        self.field(name)
            .map(|value| value.as_document().ok_or_else(|| self.mismatch(name, value, "object")))
            .transpose()
    }

    /// A boolean; false where it is missing.
    pub(crate) fn boolean(&self, name: &str) -> Result<bool> {
        match self.field(name) {
            None => Ok(false),
            Some(ValueRef::Boolean(boolean)) => Ok(boolean),
            Some(value) => Err(self.mismatch(name, value, "bool")),
        }
    }

    /// An array of documents; empty where it is missing.
    pub(crate) fn documents(&self, name: &str) -> Result<Vec<DocumentRef<'a>>> {
        let array = match self.field(name) {
            None => ArrayRef::EMPTY,
            Some(value) => value.as_array().ok_or_else(|| self.mismatch(name, value, "array"))?,
        };
        array
            .iter()
            .enumerate()
            .map(|(index, value)| {
                value.as_document().ok_or_else(|| self.mismatch(&format!("{name}.{index}"), value, "object"))
            })
            .collect()
    }

    /// `hint`.
    pub(crate) fn hint(&self) -> Result<Option<Hint>> {
        self.field("hint").map_or(Ok(None), Hint::parse)
    }

    fn mismatch(&self, name: &str, value: ValueRef<'_>, expected: &str) -> Failure {
        Failure::type_mismatch(format!(
            "BSON field '{}.{name}' is the wrong type '{}', expected type '{expected}'",
            self.place,
            value.kind().alias()
        ))
    }
}

/// Refuses a batch that would take long, before it does anything.
pub(crate) fn refuse_long_batch<'s>(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    statements: impl Iterator<Item = (DocumentRef<'s>, Targets)>,
) -> Result<(), Halt> {
    let collection = invocation.collection(namespace);
    let mut records = 0_u64;
    for (filter, targets) in statements {
        records = records.saturating_add(records_expected(collection.as_deref(), filter, targets));
        if records > RECORDS_SHORT_MAX {
            return invocation.refuse_if_long(true);
        }
    }
    Ok(())
}

/// Runs statements in their order; failures by position. In an ordered batch the first is the last.
/// # Errors
/// An interruption ends the command, not a statement.
pub(crate) fn run_each<S>(
    statements: &[S],
    order: Order,
    mut run: impl FnMut(usize, &S) -> Result<()>,
) -> Result<Vec<(usize, Failure)>> {
    let mut failures = Vec::new();
    for (position, statement) in statements.iter().enumerate() {
        let Err(failure) = run(position, statement) else { continue };
        if is_interruption(failure.code()) {
            return Err(failure);
        }
        failures.push((position, failure));
        if order == Order::Ordered {
            break;
        }
    }
    Ok(failures)
}

fn is_interruption(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::INTERRUPTED | ErrorCode::INTERRUPTED_AT_SHUTDOWN | ErrorCode::MAX_TIME_MS_EXPIRED)
}
