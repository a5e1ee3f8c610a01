//! Profiler entries and slow lines in the log for each statement of a command with several.
//! Source: MongoDB manual 8.2, "Database Profiler Output".

use crate::invocation::Invocation;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{Failure, Result};
use bunko_observe::entry::{Entry, Outcome};
use bunko_observe::lock_modes::Locking;
use bunko_observe::observation::{Observation, WriteCounts};
use bunko_operation::Examined;
use bunko_query::write::{DeleteStatement, Express, LastSearch, UpdateOutcome, UpdateStatement, Upsert};
use bunko_request::secret_names::shown_statement;
use bunko_session::Halt;
use bunko_update::Targets;
use std::time::Instant;

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementKind {
    Update,
    Remove,
    /// One operation, or several adjacent inserts, of a command that writes to several collections; holds the command's
    /// name.
    OfSeveral(&'static str),
}

impl StatementKind {
    /// The value of `op` in the profiler's entry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Remove => "remove",
            Self::OfSeveral(command) => command,
        }
    }
}

/// A finished statement.
pub(crate) struct Statement<'s> {
    pub kind: StatementKind,
    pub namespace: &'s Namespace,
    /// The statement as it was sent.
    pub sent: DocumentRef<'s>,
    /// The statement's counts, or its failure.
    pub counts: Result<WriteCounts, &'s Failure>,
    pub search: Option<LastSearch>,
    /// The plan stage above the search: `UPDATE` or `DELETE`.
    pub stage: &'static str,
    pub express: Express,
}

impl<'s> Statement<'s> {
    /// The statement of an entry in `updates`.
    pub fn update(
        namespace: &'s Namespace,
        sent: DocumentRef<'s>,
        statement: &UpdateStatement<'_>,
        outcome: &'s Result<UpdateOutcome>,
        search: Option<LastSearch>,
    ) -> Self {
        let is_express = statement.targets == Targets::One && statement.upsert == Upsert::No;
        Self {
            kind: StatementKind::Update,
            namespace,
            sent,
            counts: outcome.as_ref().map(WriteCounts::updated),
            search,
            stage: "UPDATE",
            express: if is_express { Express::Yes } else { Express::No },
        }
    }

    /// The statement of an entry in `deletes`.
    pub fn delete(
        namespace: &'s Namespace,
        sent: DocumentRef<'s>,
        statement: &DeleteStatement<'_>,
        outcome: &'s Result<u64>,
        search: Option<LastSearch>,
    ) -> Self {
        Self {
            kind: StatementKind::Remove,
            namespace,
            sent,
            counts: outcome.as_ref().map(|deleted| WriteCounts::deleted(*deleted)),
            search,
            stage: "DELETE",
            express: if statement.targets == Targets::One { Express::Yes } else { Express::No },
        }
    }
}

/// When the current statement began.
pub(crate) struct StatementClock(Instant);

impl StatementClock {
    /// Starts the clock. The first statement begins with its command.
    /// # Errors
    /// `TooLong` on a shared thread while a database is profiled: a command that started again on another thread after
    /// some of its statements would record these twice.
    pub fn begin(invocation: &Invocation<'_>) -> Result<Self, Halt> {
        invocation.refuse_if_long(invocation.service.profiler.is_any_on())?;
        Ok(Self(invocation.started()))
    }

    /// Ends a statement: counts the keys and documents that it examined, and records it if the settings ask for it.
    pub fn end(&mut self, invocation: &mut Invocation<'_>, statement: &Statement<'_>) {
        let began = std::mem::replace(&mut self.0, invocation.now());
        let elapsed = self.0.saturating_duration_since(began);
        let examined = statement.search.as_ref().map(|search| {
            let totals = search.statistics();
            Examined { keys: totals.keys_examined, documents: totals.docs_examined }
        });
        if let Some(examined) = examined {
            invocation.count_examined(examined);
        }
        let done = invocation.operation().work_done().take();
        // A statement that runs again on another thread is recorded there.
        if !invocation.is_noted_after(elapsed) || statement.counts.is_err_and(Failure::is_too_long) {
            return;
        }
        let mut observation = Observation {
            examined,
            counts: statement.counts.unwrap_or_default(),
            plan: statement.search.as_ref().map(|search| Box::new(search.report(statement.stage, statement.express))),
            ..Observation::default()
        };
        observation.add(done);
        let command = match statement.kind {
            StatementKind::Update => update_command(statement.sent),
            StatementKind::Remove | StatementKind::OfSeveral(_) => statement.sent.to_owned(),
        };
        let entry = Entry {
            op: statement.kind.name(),
            log_type: statement.kind.name(),
            component: "WRITE",
            operation: invocation.command.name,
            database: statement.namespace.database(),
            namespace: statement.namespace.as_str().to_owned(),
            collection: Some(statement.namespace.collection()),
            command: shown_statement(statement.namespace.as_str(), command),
            small_fields: None,
            shape_hash: None,
            sender: invocation.sender(),
            observation: &observation,
            outcome: Outcome { elapsed, failure: statement.counts.err(), reply_bytes: None },
            locking: Locking::Write,
            is_profiled: true,
        };
        invocation.record(&entry);
    }
}

/// An entry of `updates` as MongoDB shows it: with `multi` and `upsert`, even if they were not sent.
fn update_command(sent: DocumentRef<'_>) -> DocumentBuf {
    let mut command = DocumentBuf::new();
    for name in ["q", "u", "c", "arrayFilters", "hint", "multi", "upsert", "upsertSupplied", "collation", "sort"] {
        match (sent.get(name), name) {
            (Some(value), _) => {
                command.append(name, value);
            }
            (None, "multi" | "upsert") => {
                command.append(name, ValueRef::Boolean(false));
            }
            (None, _) => {}
        }
    }
    command
}
