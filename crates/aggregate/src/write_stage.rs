//! The write of a pipeline's last stage.

use crate::{Environment, SourceName};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Expression, FieldPath};
use bunko_timeseries::TimeSeries;
use std::sync::Arc;

/// Internal databases, which no pipeline writes to.
const INTERNAL: &[&str] = &["admin", "config", "local"];

/// The target of `$out`.
#[derive(Clone, Debug)]
pub struct OutTarget {
    /// The collection.
    pub name: SourceName,
    /// The time series that the collection must be, if the stage demands one.
    pub series: Option<TimeSeries>,
}

/// The parameters of `$merge`. The pipeline's caller writes; the stage only passes its input on.
pub struct Merge {
    /// The database, if the stage names it.
    pub database: Option<String>,
    /// The collection.
    pub collection: String,
    /// The fields that documents are matched by; `_id` by default.
    pub on: Vec<FieldPath>,
    /// The action for a document with a match.
    pub when_matched: WhenMatched,
    /// The action for a document without a match.
    pub when_not_matched: WhenNotMatched,
    /// Variables of the pipeline, evaluated on the new document.
    pub(crate) variables: Vec<(String, Expression)>,
}

impl Merge {
    /// Variables of [`WhenMatched::Pipeline`]: the new document and the variables of `let`.
    /// # Errors
    /// Errors of the expressions.
    pub fn constants(&self, new: DocumentRef<'_>, environment: &Environment) -> Result<DocumentBuf> {
        let mut constants = DocumentBuf::new().with("new", new);
        let context = environment.context(new);
        for (name, expression) in &self.variables {
            if let Some(value) = expression.evaluate(&context)?.get() {
                constants.append(name, value);
            }
        }
        Ok(constants)
    }
}

/// The action on a matching document.
pub enum WhenMatched {
    /// Replaced by the new document.
    Replace,
    /// Left unchanged.
    KeepExisting,
    /// Keeps its fields, and gets those of the new document.
    Merge,
    /// Fails.
    Fail,
    /// Changed by these stages of an update.
    Pipeline(ArrayBuf),
}

/// The action for a document without a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// Inserted.
    Insert,
    /// Dropped.
    Discard,
    /// Fails.
    Fail,
}

/// A stage that writes; it comes last.
#[derive(Clone)]
pub enum WriteStage {
    /// `$out` to this target.
    Out(OutTarget),
    /// `$merge`.
    Merge(Arc<Merge>),
}

impl WriteStage {
    /// Refuses an internal database as target, whether the stage or the command names it.
    /// # Errors
    /// 31321 for `$out`, 31320 for `$merge`.
    pub fn check_database(&self, database: &str) -> Result<()> {
        if !INTERNAL.contains(&database) {
            return Ok(());
        }
        let (code, message) = match self {
            Self::Out(_) => (31321, format!("Can't $out to internal database: {database}")),
            Self::Merge(_) => (31320, format!("Cannot $merge to internal database: {database}")),
        };
        Err(Failure::new(ErrorCode(code), message))
    }
}
