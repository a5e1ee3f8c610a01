//! One parsed update and what it makes of a document.

use crate::array_filters::ArrayFilters;
use crate::immutable_id;
use crate::merge_walk::MergeWalk;
use crate::operators;
use crate::pipeline::UpdatePipeline;
use crate::replacement::Replacement;
use crate::trie::{Plan, Trie};
use crate::upsert;
use bunko_bson::{DocumentBuf, DocumentRef, MAX_USER_DOCUMENT_BYTES, StringOrder, Timestamp, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Variables;
use bunko_javascript::Scripts;
use bunko_operation::OperationContext;
use std::sync::Arc;

/// How many documents the statement may update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// The first that matches.
    One,
    /// All that match (`multi: true`).
    Many,
}

/// Whether the document is being created by the update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// Nothing matched: the document comes from [`Update::upsert_base`].
    Upsert,
    /// The document exists.
    No,
}

/// What an update is read with, beside itself.
#[derive(Clone, Debug)]
pub struct ParseContext<'a> {
    /// For `$[name]` in paths of operators.
    pub array_filters: &'a [DocumentRef<'a>],
    /// Which documents it is for.
    pub targets: Targets,
    /// Values that a pipeline names like variables, before which the variables of the same names step back.
    pub constants: Option<DocumentRef<'a>>,
    /// What the expressions of a pipeline see.
    pub variables: &'a Variables,
    /// In which order operators, array filters and expressions have strings.
    pub strings: &'a StringOrder,
    /// For whom the work of reading is counted.
    pub operation: Option<&'a Arc<OperationContext>>,
    /// Those of the operation, where a pipeline may have any.
    pub scripts: Option<&'a Arc<Scripts>>,
}

impl ParseContext<'_> {
    /// For an update of one document that needs nothing of this.
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

/// What an update cannot know from the document alone.
#[derive(Clone, Copy, Debug)]
pub struct ApplyContext<'a> {
    /// The array position that the query matched, for `$` in paths.
    pub matched_position: Option<usize>,
    /// The time for `$currentDate` dates, in milliseconds since 1970.
    pub now_ms: i64,
    /// The time for `$currentDate` timestamps and for zero timestamps of replacements, which zero leaves as they are.
    pub timestamp: Timestamp,
    /// Whether `$setOnInsert` counts and `_id` may be new.
    pub insert: Insertion,
    /// For whom it is applied: whatever loops counts its work there.
    pub operation: &'a OperationContext,
}

/// What became of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The update leaves every byte as it is; in an upsert, the base is the document to insert.
    Unchanged,
    /// The new document.
    Changed(DocumentBuf),
}

/// What is told of a change beside the new document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Nothing.
    Nothing,
    /// Of operators the delta that the oplog has: by the paths that they name.
    Delta,
}

/// A parsed update, applicable to any number of documents.
#[derive(Debug)]
pub struct Update(Kind);

#[derive(Debug)]
enum Kind {
    Operators(Trie),
    Replacement(Replacement),
    Pipeline(UpdatePipeline),
}

impl Update {
    /// Parses the `u` of an update statement: a pipeline where it is an array, operators where the first field starts
    /// with `$`, else a replacement.
    /// # Errors
    /// `FailedToParse` for unknown operators, array filters without use and a replacement of many documents; 51198 for
    /// constants without use; else what is wrong with a path, an operator's argument or a stage.
    pub fn parse(update: ValueRef<'_>, context: &ParseContext<'_>) -> Result<Self> {
        let document = match update {
            ValueRef::Document(document) => document,
            ValueRef::Array(stages) => {
                if !context.array_filters.is_empty() {
                    let message = "arrayFilters may not be specified for pipeline-syle updates";
                    return Err(Failure::failed_to_parse(message));
                }
                return UpdatePipeline::parse(stages, context).map(|pipeline| Self(Kind::Pipeline(pipeline)));
            }
            _ => {
                let message = "Update argument must be either an object or an array";
                return Err(Failure::failed_to_parse(message));
            }
        };
        if context.constants.is_some() {
            let message = "Constant values may only be specified for pipeline updates";
            return Err(Failure::new(ErrorCode(51198), message));
        }
        if document.first_name().is_some_and(|name| name.starts_with('$')) {
            return parse_operators(document, context).map(|trie| Self(Kind::Operators(trie)));
        }
        if context.targets == Targets::Many {
            let message = "multi update is not supported for replacement-style update";
            return Err(Failure::failed_to_parse(message));
        }
        if !context.array_filters.is_empty() {
            let message = "arrayFilters may not be specified for replacement-style updates";
            return Err(Failure::failed_to_parse(message));
        }
        context.operation.map_or(Ok(()), |operation| operation.will_take(document.len_bytes()))?;
        Self::replacement(document)
    }

    /// An update that puts a document in the place of another, whatever its fields are called.
    /// # Errors
    /// `DollarPrefixedFieldName` for a name with `$` in front, `BadValue` for a second `_id`, `Overflow` for a document
    /// nested too deep.
    pub fn replacement(document: DocumentRef<'_>) -> Result<Self> {
        Replacement::parse(document).map(|replacement| Self(Kind::Replacement(replacement)))
    }

    /// Makes the next document. With [`Insertion::Upsert`] its `_id`, if it has one, is checked and stands in front.
    /// # Errors
    /// What the operators answer; `ImmutableField` for a change of `_id`; `Overflow` for a document nested deeper than
    /// [`bunko_bson::MAX_DEPTH_STORED`]; 17419, of an upsert 17420, for one beyond [`MAX_USER_DOCUMENT_BYTES`].
    pub fn apply(&self, document: DocumentRef<'_>, context: &ApplyContext<'_>) -> Result<Outcome> {
        self.apply_telling(document, context, Telling::Nothing).map(|(outcome, _)| outcome)
    }

    /// The same, with what is told of the change: `diff` of an oplog's entry, for operators that change a document that is
    /// there.
    /// # Errors
    /// As [`Self::apply`].
    pub fn apply_telling(
        &self,
        document: DocumentRef<'_>,
        context: &ApplyContext<'_>,
        telling: Telling,
    ) -> Result<(Outcome, Option<DocumentBuf>)> {
        let mut delta = None;
        let next = match &self.0 {
            Kind::Operators(trie) => MergeWalk::run(trie, document, context, telling)?.map(|(next, told)| {
                delta = told;
                next
            }),
            Kind::Replacement(replacement) => {
                // One that brings no `_id` counts as a change even where it changes nothing, as on MongoDB.
                let next = replacement.apply(document, context)?;
                Some(next).filter(|next| !replacement.has_id() || next.as_ref() != document)
            }
            Kind::Pipeline(pipeline) => {
                Some(pipeline.apply(document, context)?).filter(|next| next.as_ref() != document)
            }
        };
        let next = match (next, context.insert) {
            (None, Insertion::No) => return Ok((Outcome::Unchanged, None)),
            (Some(next), Insertion::No) => next,
            (next, Insertion::Upsert) => {
                let next = immutable_id::moved_to_front(next.unwrap_or_else(|| document.to_owned()));
                immutable_id::check(next.as_ref())?;
                if next.as_ref() == document {
                    return Ok((Outcome::Unchanged, None));
                }
                next
            }
        };
        check_size(next.as_ref(), context.insert)?;
        Ok((Outcome::Changed(next), delta))
    }

    /// The document that an upsert starts from: what the filter's equalities say, for a replacement only `_id`.
    /// # Errors
    /// `NotSingleValueField` where the filter gives one path, or a path and one above it, two values;
    /// `NotExactValueField` where it gives a part of `_id` and a replacement needs the whole; what writing the paths
    /// answers.
    pub fn upsert_base(&self, filter: DocumentRef<'_>, operation: &OperationContext) -> Result<DocumentBuf> {
        match &self.0 {
            Kind::Operators(_) | Kind::Pipeline(_) => upsert::base(filter, upsert::Fields::All, operation),
            Kind::Replacement(_) => upsert::base(filter, upsert::Fields::OnlyId, operation),
        }
    }

    /// Whether a pipeline makes the next document.
    pub fn is_pipeline(&self) -> bool {
        matches!(self.0, Kind::Pipeline(_))
    }

    /// Whether the whole document is replaced.
    pub fn is_replacement(&self) -> bool {
        matches!(self.0, Kind::Replacement(_))
    }
}

fn parse_operators(document: DocumentRef<'_>, context: &ParseContext<'_>) -> Result<Trie> {
    let array_filters =
        ArrayFilters::parse(context.array_filters, context.strings, context.operation.map(|operation| &**operation))?;
    let mut plan = Plan::new(array_filters, context.strings.clone()).counted_for(context.operation.cloned());
    for modifier in document {
        operators::parse(&mut plan, modifier)?;
    }
    plan.filters.check_all_used(document)?;
    Ok(plan.finish())
}

fn check_size(document: DocumentRef<'_>, insert: Insertion) -> Result<()> {
    if document.len_bytes() <= MAX_USER_DOCUMENT_BYTES { Ok(()) } else { Err(too_large(insert)) }
}

/// The failure of an update whose document would be larger than [`MAX_USER_DOCUMENT_BYTES`].
pub(crate) fn too_large(insert: Insertion) -> Failure {
    let (code, what) = match insert {
        Insertion::No => (17419, "Resulting document after update"),
        Insertion::Upsert => (17420, "Document to upsert"),
    };
    Failure::new(ErrorCode(code), format!("{what} is larger than {MAX_USER_DOCUMENT_BYTES}"))
}

/// The failure of an update that would create a top-level field with `$` in front.
pub(crate) fn dollar_prefixed(name: &str, path: &str) -> Failure {
    let message = format!(
        "The dollar ($) prefixed field '{name}' in '{path}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith."
    );
    Failure::new(ErrorCode::DOLLAR_PREFIXED_FIELD_NAME, message)
}
