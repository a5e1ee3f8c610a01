//! Update statements.

use super::search::{Choice, Operation, Wanted};
use super::{Writes, note_answer, verdict};
use crate::QueryScope;
use crate::hint::Hint;
use bunko_bson::{DocumentRef, StringOrder, Timestamp, Value, ValueRef};
use bunko_catalog::stored_document::EmptyTimestamps;
use bunko_catalog::{Outcome as Answer, Verdict};
use bunko_errors::Result;
use bunko_update::{ApplyContext, Insertion, Outcome, ParseContext, Targets, Update};
use std::sync::Arc;

/// Whether to insert a document if none matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upsert {
    /// Insert.
    Yes,
    /// Do not insert.
    No,
}

/// One entry of `updates`.
pub struct UpdateStatement<'a> {
    /// The condition that documents match.
    pub filter: DocumentRef<'a>,
    /// Operators, a replacement or a pipeline.
    pub update: ValueRef<'a>,
    /// Constants that a pipeline reads like variables.
    pub constants: Option<DocumentRef<'a>>,
    /// For `$[name]` in the update's paths.
    pub array_filters: Vec<DocumentRef<'a>>,
    /// The first document or all of them.
    pub targets: Targets,
    /// Whether to insert if no document matches.
    pub upsert: Upsert,
    /// The document to insert then; `None` to make it from filter and update.
    pub supplied: Option<DocumentRef<'a>>,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The order that decides which document is the first.
    pub sort: Option<DocumentRef<'a>>,
    /// The string order, if not the collection's.
    pub strings: Option<StringOrder>,
}

/// Counts of an update statement.
#[derive(Clone, Debug, Default)]
pub struct UpdateOutcome {
    /// Documents that matched.
    pub matched: u64,
    /// Documents whose bytes changed.
    pub modified: u64,
    /// The `_id` of the document that was inserted instead.
    pub upserted: Option<Value>,
}

impl UpdateStatement<'_> {
    /// The context for parsing the update.
    pub(super) fn parse_context<'c>(&'c self, scope: &'c QueryScope) -> ParseContext<'c> {
        ParseContext {
            array_filters: &self.array_filters,
            targets: self.targets,
            constants: self.constants,
            variables: &scope.variables,
            strings: &scope.strings,
            operation: Some(&scope.operation),
            scripts: Some(&scope.scripts),
        }
    }
}

impl Writes<'_> {
    /// Executes one update statement.
    /// # Errors
    /// Errors in the statement, before anything is done. Errors of operators and unique indexes; a statement for many
    /// leaves earlier documents updated, as MongoDB does. `WriteConflict` if other clients change the candidates too
    /// often.
    pub fn update(&mut self, statement: &UpdateStatement<'_>) -> Result<UpdateOutcome> {
        self.collate(statement.strings.as_ref())?;
        let update = Update::parse(statement.update, &statement.parse_context(&self.scope))?;
        let supplied = statement.supplied.map(Update::replacement).transpose()?;
        let choice = Choice { sort: statement.sort, hint: statement.hint.clone() };
        let wanted = Wanted::parse(statement.filter, choice, Operation::Update, &self.scope)?;
        wanted.check_upsert(statement.upsert)?;
        let scope = Arc::clone(&self.scope);
        let mut context = self.apply_context(&update, &scope);
        let inserting = supplied.as_ref().unwrap_or(&update);
        let mut outcome = UpdateOutcome::default();
        let mut attempt = |writes: &mut Self| {
            note_answer(&scope, || Answer::One);
            let telling = writes.telling();
            let changes = writes.change_matching(&wanted, statement.targets, &mut |document, position| {
                context.matched_position = position;
                let (outcome, delta) = update.apply_telling(document, &context, telling)?;
                Ok(match outcome {
                    Outcome::Unchanged => Verdict::Keep,
                    Outcome::Changed(next) => verdict(&update, next, delta),
                })
            })?;
            outcome.matched = changes.matched;
            outcome.modified = changes.changed;
            Ok(changes.matched)
        };
        outcome.upserted =
            self.or_upsert(inserting, statement.filter, &wanted, statement.upsert, &mut attempt, &mut |document| {
                let id = document.get("_id").map_or(Value::Null, ValueRef::to_value);
                note_answer(&scope, || Answer::Upserted(id));
                Ok(())
            })?;
        Ok(outcome)
    }

    /// The context of a whole statement, with one time and one timestamp.
    pub(super) fn apply_context<'s>(&self, update: &Update, scope: &'s QueryScope) -> ApplyContext<'s> {
        let keeps_empty = update.is_replacement() && self.empty_timestamps == EmptyTimestamps::Kept;
        // A replacement needs the timestamp only to fill its zero timestamps. A zero timestamp leaves them zero.
        let timestamp = if keeps_empty { Timestamp { seconds: 0, increment: 0 } } else { self.stamps.timestamp() };
        ApplyContext {
            matched_position: None,
            now_ms: scope.now_ms,
            timestamp,
            insert: Insertion::No,
            operation: &scope.operation,
        }
    }
}
