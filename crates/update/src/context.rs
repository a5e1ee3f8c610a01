//! The context of parsing an update, and of applying it to a document.

use bunko_bson::{DocumentRef, MAX_USER_DOCUMENT_BYTES, StringOrder, Timestamp};
use bunko_errors::{ErrorCode, Failure};
use bunko_expression::Variables;
use bunko_javascript::Scripts;
use bunko_operation::OperationContext;
use std::sync::Arc;

/// The documents that the statement may update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// The first match.
    One,
    /// All matches (`multi: true`).
    Many,
}

/// Whether the update creates the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// Nothing matched: the document comes from [`crate::Update::upsert_base`].
    Upsert,
    /// The document exists.
    No,
}

impl Insertion {
    /// The failure of an update whose document would be larger than [`MAX_USER_DOCUMENT_BYTES`].
    pub(crate) fn too_large(self) -> Failure {
        let (code, what) = match self {
            Self::No => (17419, "Resulting document after update"),
            Self::Upsert => (17420, "Document to upsert"),
        };
        Failure::new(ErrorCode(code), format!("{what} is larger than {MAX_USER_DOCUMENT_BYTES}"))
    }
}

/// Context for parsing an update.
#[derive(Clone, Debug)]
pub struct ParseContext<'a> {
    /// For `$[name]` in paths of operators.
    pub array_filters: &'a [DocumentRef<'a>],
    /// The documents that the update may change.
    pub targets: Targets,
    /// Values that a pipeline reads like variables; they hide variables with the same names.
    pub constants: Option<DocumentRef<'a>>,
    /// Variables for the expressions of a pipeline.
    pub variables: &'a Variables,
    /// String order of operators, array filters and expressions.
    pub strings: &'a StringOrder,
    /// The operation that counts the work of parsing.
    pub operation: Option<&'a Arc<OperationContext>>,
    /// The scripts of the operation, if a pipeline may contain scripts.
    pub scripts: Option<&'a Arc<Scripts>>,
}

impl ParseContext<'_> {
    /// The context for a plain update of one document.
    pub fn plain() -> Self {
        Self {
            array_filters: &[],
            targets: Targets::One,
            constants: None,
            variables: Variables::NONE,
            strings: StringOrder::BYTES,
            operation: None,
            scripts: None,
        }
    }
}

/// Context for applying an update to a document.
#[derive(Clone, Copy, Debug)]
pub struct ApplyContext<'a> {
    /// The array position that the query matched, for `$` in paths.
    pub matched_position: Option<usize>,
    /// The time for `$currentDate` dates, in milliseconds since 1970.
    pub now_ms: i64,
    /// The time for `$currentDate` timestamps and for zero timestamps of replacements. A zero timestamp here leaves
    /// those zero.
    pub timestamp: Timestamp,
    /// Whether `$setOnInsert` applies and `_id` may be new.
    pub insert: Insertion,
    /// The operation of the update; every loop counts its work there.
    pub operation: &'a OperationContext,
}

/// Whether the caller wants a description of the change beside the new document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Nothing.
    Nothing,
    /// For operators, the delta that the oplog records, by paths.
    Delta,
}
