//! Changing one document and returning its state before or after.

use super::search::{Choice, Operation, Wanted};
use super::{Upsert, Writes, note_answer, verdict};
use crate::QueryScope;
use crate::expr_filter::names_text;
use crate::find_query::FindQuery;
use crate::hint::Hint;
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, Value, ValueRef};
use bunko_catalog::{Did, Image, Outcome as Answer, Verdict};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::check_document_bytes;
use bunko_update::{Outcome, ParseContext, Targets, Update};
use std::sync::Arc;

/// One findAndModify, already checked for contradictions.
pub struct FindAndModify<'a> {
    /// The condition that the document matches.
    pub filter: DocumentRef<'a>,
    /// The order that decides which document is the first.
    pub sort: Option<DocumentRef<'a>>,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The fields to return.
    pub projection: Option<DocumentRef<'a>>,
    /// The string order, if not the collection's.
    pub strings: Option<StringOrder>,
    /// The change to make.
    pub action: Action<'a>,
}

/// The change that findAndModify makes.
pub enum Action<'a> {
    /// Removes the document and returns it.
    Remove,
    /// Updates it.
    Update(Modification<'a>),
}

/// The update of a findAndModify.
pub struct Modification<'a> {
    /// Operators, a replacement or a pipeline.
    pub update: ValueRef<'a>,
    /// For `$[name]` in the update's paths.
    pub array_filters: Vec<DocumentRef<'a>>,
    /// Whether to insert if no document matches.
    pub upsert: Upsert,
    /// The state to return.
    pub returning: Returning,
}

impl Modification<'_> {
    /// The context for parsing the update.
    pub(super) fn parse_context<'c>(&'c self, scope: &'c QueryScope) -> ParseContext<'c> {
        ParseContext {
            array_filters: &self.array_filters,
            targets: Targets::One,
            constants: None,
            variables: &scope.variables,
            strings: &scope.strings,
            operation: Some(&scope.operation),
            scripts: Some(&scope.scripts),
        }
    }
}

/// The state of the document to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returning {
    /// The state before the change; none if the document did not exist.
    Before,
    /// The state after the change.
    After,
}

impl Returning {
    /// The kind of change that the oplog records, with the image that is returned.
    fn done(self) -> Did {
        Did::Updated(if self == Self::After { Image::After } else { Image::Before })
    }
}

/// The result of findAndModify.
#[derive(Clone, Debug, Default)]
pub struct FindAndModifyOutcome {
    /// Whether a document matched.
    pub is_found: bool,
    /// Whether its bytes changed.
    pub is_modified: bool,
    /// The `_id` of the document that was inserted instead.
    pub upserted: Option<Value>,
    /// The document, projected.
    pub value: Option<DocumentBuf>,
}

impl Writes<'_> {
    /// Executes one findAndModify. If two of them want the same document, the second one searches again.
    /// # Errors
    /// As [`Writes::update`]; `BadValue` for a positional projection of the new state.
    pub fn find_and_modify(&mut self, statement: &FindAndModify<'_>) -> Result<FindAndModifyOutcome> {
        let projected = Projected::parse(statement, self)?;
        self.collate(statement.strings.as_ref())?;
        let choice = Choice { sort: statement.sort, hint: statement.hint.clone() };
        let wanted = Wanted::parse(statement.filter, choice, Operation::FindAndModify, &self.scope)?;
        let mut outcome = FindAndModifyOutcome::default();
        match &statement.action {
            Action::Remove => {
                let mut value = None;
                let scope = Arc::clone(&self.scope);
                let changes = self.change_matching(&wanted, Targets::One, &mut |document, position| {
                    value = Some(projected.apply(document, position)?);
                    note_answer(&scope, || Answer::Returned {
                        value: value.clone(),
                        upserted: None,
                        did: Some(Did::Removed),
                    });
                    Ok(Verdict::Delete)
                })?;
                outcome.is_found = changes.matched > 0;
                outcome.value = value.filter(|_| outcome.is_found);
            }
            Action::Update(modification) => {
                self.find_and_update(statement.filter, &wanted, modification, &projected, &mut outcome)?;
            }
        }
        Ok(outcome)
    }

    fn find_and_update(
        &mut self,
        filter: DocumentRef<'_>,
        wanted: &Wanted<'_>,
        modification: &Modification<'_>,
        projected: &Projected,
        outcome: &mut FindAndModifyOutcome,
    ) -> Result<()> {
        let update = Update::parse(modification.update, &modification.parse_context(&self.scope))?;
        wanted.check_upsert(modification.upsert)?;
        let scope = Arc::clone(&self.scope);
        let mut context = self.apply_context(&update, &scope);
        let (mut value, mut inserted) = (None, None);
        // The returned document is made before the change, so a failure to make it changes nothing.
        let mut before_insert = |document: DocumentRef<'_>| {
            if modification.returning == Returning::After {
                inserted = Some(projected.apply(document, None)?);
            }
            note_answer(&scope, || Answer::Returned {
                value: inserted.clone(),
                upserted: document.get("_id").map(ValueRef::to_value),
                did: Some(modification.returning.done()),
            });
            Ok(())
        };
        let mut attempt = |writes: &mut Self| {
            let telling = writes.telling();
            let changes = writes.change_matching(wanted, Targets::One, &mut |document, position| {
                context.matched_position = position;
                let (next, delta) = update.apply_telling(document, &context, telling)?;
                let returned = match (&next, modification.returning) {
                    (Outcome::Changed(next), Returning::After) => next.as_ref(),
                    _ => document,
                };
                value = Some(projected.apply(returned, position)?);
                note_answer(&scope, || Answer::Returned {
                    value: value.clone(),
                    upserted: None,
                    did: Some(modification.returning.done()),
                });
                Ok(match next {
                    Outcome::Unchanged => Verdict::Keep,
                    Outcome::Changed(next) => verdict(&update, next, delta),
                })
            })?;
            outcome.is_found = changes.matched > 0;
            outcome.is_modified = changes.changed > 0;
            Ok(changes.matched)
        };
        let upserted =
            self.or_upsert(&update, filter, wanted, modification.upsert, &mut attempt, &mut before_insert)?;
        // A document that another client changed first leaves a value behind, which is not returned.
        outcome.value = if upserted.is_some() { inserted } else { value.filter(|_| outcome.is_found) };
        outcome.upserted = upserted;
        Ok(())
    }
}

/// The `fields` of a findAndModify, checked before anything is changed.
struct Projected(Option<FindQuery>);

impl Projected {
    fn parse(statement: &FindAndModify<'_>, writes: &Writes<'_>) -> Result<Self> {
        let Some(fields) = statement.projection.filter(|fields| !fields.is_empty()) else { return Ok(Self(None)) };
        // `fields` can read no metadata except the score of a text search, which is at hand when a document is judged.
        let filter = if names_text(statement.filter) { statement.filter } else { DocumentRef::EMPTY };
        let mut query = FindQuery::new(filter, writes.scope.clone())?;
        query.set_projection(fields)?;
        if query.reads_what_plans_know() {
            let message = "$meta of recordId, indexKey and sortKey in the fields of findAndModify is not supported yet";
            return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
        }
        let is_positional = query.projection.as_ref().is_some_and(|projection| projection.positional_path().is_some());
        let returns_new = matches!(&statement.action, Action::Update(update) if update.returning == Returning::After);
        if is_positional && returns_new {
            return Err(Failure::bad_value("cannot use a positional projection and return the new document"));
        }
        Ok(Self(Some(query)))
    }

    fn apply(&self, document: DocumentRef<'_>, position: Option<usize>) -> Result<DocumentBuf> {
        let projection = self.0.as_ref().and_then(|query| Some((query, query.projection.as_ref()?)));
        let Some((query, projection)) = projection else { return Ok(document.to_owned()) };
        let mut bytes = Vec::with_capacity(document.len_bytes());
        projection.apply(&query.scope.context(document), position, &mut bytes)?;
        check_document_bytes(bytes.len())?;
        Ok(DocumentBuf::from_trusted(bytes))
    }
}
