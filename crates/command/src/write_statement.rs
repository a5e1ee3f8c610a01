//! Code shared by the batches of `update` and `delete`: checking the batch, running its statements.

use crate::collection_uuid;
use crate::invocation::Invocation;
use crate::let_variables::Let;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_catalog::stored_document::EmptyTimestamps;
use bunko_catalog::{Namespace, Order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::id_lookup;
use bunko_query::write::records_expected;
use bunko_request::fields::Fields;
use bunko_session::Halt;
use bunko_update::Targets;
use std::cell::LazyCell;

/// Fields of `update`, `delete` and `findAndModify` that only MongoDB's servers send each other.
pub(crate) const INTERNAL_FIELDS: &[&str] = &[
    "$_isClusterQueryWithoutShardKeyCmd",
    "isTimeseriesNamespace",
    "legacyRuntimeConstants",
    "runtimeConstants",
    "sampleId",
];

/// Records that a command may examine on a thread that others wait for: about 2 ms.
const RECORDS_SHORT_MAX: u64 = 2000;

/// The options that all write commands have.
#[derive(Clone, Copy)]
pub(crate) struct WriteOptions {
    pub order: Order,
    pub empty_timestamps: EmptyTimestamps,
    /// The expected UUID of the collection.
    pub uuid: Option<[u8; 16]>,
    bypasses_validation: bool,
}

impl WriteOptions {
    /// # Errors
    /// `TypeMismatch`; `InvalidUUID`.
    pub(crate) fn parse(fields: &Fields<'_>) -> Result<Self> {
        let keeps_empty = fields.boolean("bypassEmptyTsReplacement", false)?;
        Ok(Self {
            order: if fields.strict_boolean("ordered", true)? { Order::Ordered } else { Order::Unordered },
            empty_timestamps: if keeps_empty { EmptyTimestamps::Kept } else { EmptyTimestamps::Filled },
            uuid: collection_uuid::parse(fields)?,
            bypasses_validation: fields.boolean("bypassDocumentValidation", false)?,
        })
    }

    /// Makes the command's operation bypass validation, if that is asked for.
    pub(crate) fn apply_bypass(&self, invocation: &Invocation<'_>) {
        if self.bypasses_validation {
            invocation.operation().bypass_validation();
        }
    }
}

/// An `update` or a `delete`, also one inside `explain`.
pub(crate) struct StatementBatch<'a> {
    pub options: WriteOptions,
    pub variables: Let<'a>,
    /// The entries of `updates` or `deletes`.
    pub statements: Vec<DocumentRef<'a>>,
}

impl<'a> StatementBatch<'a> {
    /// `name` is the field with the statements.
    /// # Errors
    /// MongoDB's codes for fields of the wrong type and for missing statements.
    pub(crate) fn parse(fields: &Fields<'a>, name: &str) -> Result<Self> {
        let (options, variables) = (WriteOptions::parse(fields)?, Let::parse(fields)?);
        Ok(Self { options, variables, statements: fields.documents(name)? })
    }
}

/// `u` of an update, or `update` of a findAndModify.
/// # Errors
/// `FailedToParse` if it is neither a document nor an array; `TypeMismatch` for a stage that is not a document.
pub(crate) fn check_modification(update: ValueRef<'_>) -> Result<ValueRef<'_>> {
    match update {
        ValueRef::Array(stages) if stages.iter().any(|stage| stage.as_document().is_none()) => {
            Err(Failure::type_mismatch("Each element of the 'pipeline' array must be an object"))
        }
        ValueRef::Document(_) | ValueRef::Array(_) => Ok(update),
        _ => Err(Failure::failed_to_parse("Update argument must be either an object or an array")),
    }
}

/// Halts a batch that would take long, before it does anything. Each statement is given by its filter, sort and
/// targets.
pub(crate) fn refuse_long_batch<'s>(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    statements: impl Iterator<Item = (DocumentRef<'s>, Option<DocumentRef<'s>>, Targets)>,
) -> Result<(), Halt> {
    // Most statements are for one `_id` and do not need the collection.
    let collection = LazyCell::new(|| invocation.collection(namespace));
    let mut records = 0_u64;
    for (filter, sort, targets) in statements {
        let expected = if id_lookup(filter).is_some() {
            1
        } else {
            records_expected(collection.as_deref(), filter, sort, targets)
        };
        records = records.saturating_add(expected);
        if records > RECORDS_SHORT_MAX {
            return invocation.refuse_if_long(true);
        }
    }
    Ok(())
}

/// Halts a batch of several statements with a script among them on a shared thread: the script would halt there, and
/// must not do so after another statement has made changes.
pub(crate) fn refuse_scripts(invocation: &Invocation<'_>, statements: &[DocumentRef<'_>]) -> Result<(), Halt> {
    let holds_script = |statement: &DocumentRef<'_>| holds_script(statement.as_bytes());
    invocation.refuse_if_long(statements.len() > 1 && statements.iter().any(holds_script))
}

/// Whether the name of an operator with a script occurs, even inside a string.
fn holds_script(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'$', bytes).any(|at| {
        let rest = &bytes[at..];
        rest.starts_with(b"$where\0") || rest.starts_with(b"$function\0")
    })
}

/// Runs statements in order, and returns failures with their positions. An ordered batch ends with the first failure.
/// # Errors
/// An interruption, which ends the whole command.
pub(crate) fn run_each<S>(
    statements: &[S],
    order: Order,
    mut run: impl FnMut(usize, &S) -> Result<()>,
) -> Result<Vec<(usize, Failure)>> {
    let mut failures = Vec::new();
    for (position, statement) in statements.iter().enumerate() {
        let Err(failure) = run(position, statement) else { continue };
        if is_interruption(&failure) {
            return Err(failure);
        }
        failures.push((position, failure));
        if order == Order::Ordered {
            break;
        }
    }
    Ok(failures)
}

/// Whether a failure ends the whole command, and not only a statement.
pub(crate) fn is_interruption(failure: &Failure) -> bool {
    failure.is_too_long()
        || matches!(
            failure.code(),
            ErrorCode::INTERRUPTED
                | ErrorCode::INTERRUPTED_AT_SHUTDOWN
                | ErrorCode::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE
                | ErrorCode::MAX_TIME_MS_EXPIRED
                | ErrorCode::CLIENT_DISCONNECT
        )
}
