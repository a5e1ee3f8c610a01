//! A parsed update, and its application to documents.

use crate::array_filters::ArrayFilters;
use crate::context::{ApplyContext, Insertion, ParseContext, Targets, Telling};
use crate::immutable_id;
use crate::merge_walk::MergeWalk;
use crate::operators;
use crate::pipeline::UpdatePipeline;
use crate::replacement::Replacement;
use crate::trie::{Plan, Trie};
use crate::upsert;
use bunko_bson::{DocumentBuf, DocumentRef, MAX_USER_DOCUMENT_BYTES, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;

/// The result of an update for one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No byte changes. In an upsert, the document that was passed is then the one to insert.
    Unchanged,
    /// The new document.
    Changed(DocumentBuf),
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
    /// Parses the `u` of an update statement: an array is a pipeline, a document whose first field starts with `$` has
    /// operators, and any other document is a replacement.
    /// # Errors
    /// `FailedToParse` for unknown operators, unused array filters and a replacement of many documents; 51198 for
    /// constants without a pipeline; errors of paths, operators' arguments and stages.
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

    /// An update that replaces the document, even if field names look like operators.
    /// # Errors
    /// `DollarPrefixedFieldName` for a name that starts with `$`, `BadValue` for a second `_id`, `Overflow` for a
    /// document nested too deep.
    pub fn replacement(document: DocumentRef<'_>) -> Result<Self> {
        Replacement::parse(document).map(|replacement| Self(Kind::Replacement(replacement)))
    }

    /// Makes the next document. With [`Insertion::Upsert`] the `_id`, if there is one, is checked and moved to the
    /// front.
    /// # Errors
    /// Errors of the operators; `ImmutableField` for a change of `_id`; `Overflow` for a document nested deeper than
    /// [`bunko_bson::MAX_DEPTH_STORED`]; 17419, or 17420 in an upsert, for a document larger than
    /// [`MAX_USER_DOCUMENT_BYTES`].
    pub fn apply(&self, document: DocumentRef<'_>, context: &ApplyContext<'_>) -> Result<Outcome> {
        self.apply_telling(document, context, Telling::Nothing).map(|(outcome, _)| outcome)
    }

    /// As [`Self::apply`], and returns the delta if `telling` asks for it: the `diff` of an oplog entry, for operators
    /// that change an existing document.
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
                // As on MongoDB, a replacement without `_id` counts as a change even if the document stays equal.
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

    /// The document that an upsert starts from: the filter's equalities, or only their `_id` for a replacement.
    /// # Errors
    /// `NotSingleValueField` if the filter gives two values for one path, or for a path and its parent;
    /// `NotExactValueField` if it gives a part of `_id` and a replacement needs the whole; errors of writing the paths.
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
    if document.len_bytes() <= MAX_USER_DOCUMENT_BYTES { Ok(()) } else { Err(insert.too_large()) }
}
