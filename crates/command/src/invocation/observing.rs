//! Facts of a command that are gathered while it runs and reported when it is over.

use super::Invocation;
use bunko_authority::Shown;
use bunko_operation::Examined;

use crate::lock_modes::Locking;
use crate::machine;
use crate::operation_description;
use crate::profiler::{Entry, Outcome};
use bunko_bson::DocumentBuf;
use bunko_catalog::Namespace;
use bunko_errors::ErrorCode;
use bunko_query::PlanReport;
use bunko_request::facts::{CommandFacts, Profiling, ReadsFrom};
use std::borrow::Cow;
use std::time::Duration;

impl<'a> Invocation<'a> {
    /// Sets the collection under which `top` counts the command, if its first value does not name it.
    pub fn note_collection(&mut self, name: &'a str) {
        self.collection = Some(Cow::Borrowed(name));
    }

    /// As [`Self::note_collection`], for a command that identifies its collection by more than a name. A collection in
    /// another database is not noted: `top` and the profiler use the database of the command.
    pub(crate) fn note_namespace(&mut self, namespace: &Namespace) {
        if namespace.database() == self.request.database {
            self.collection = Some(Cow::Owned(namespace.collection().to_owned()));
        }
    }

    /// Notes that the collection was dropped: `top` removes it, and counts the command under none.
    pub(crate) fn forget_namespace(&mut self, namespace: &Namespace) {
        self.service.counters.forget_namespace(namespace.database(), Some(namespace.collection()));
        self.is_collection_gone = true;
    }

    /// The database and collection under which `top` counts the command.
    pub(crate) fn namespace_noted(&self) -> Option<(&'a str, Cow<'a, str>)> {
        let collection = self.collection.clone().filter(|_| !self.is_collection_gone);
        collection.map(|collection| (self.request.database, collection))
    }

    /// The namespace that the profiler shows. For a collection given by its UUID, this is its name.
    pub(crate) fn namespace_shown(&self) -> String {
        match &self.collection {
            Some(Cow::Owned(collection)) => format!("{}.{collection}", self.request.database),
            _ => {
                operation_description::namespace(self.command, self.request.database, self.operation.command().as_ref())
            }
        }
    }

    /// Notes the keys and documents that the command examined.
    pub(crate) fn note_examined(&mut self, examined: Examined) {
        self.observation.examined = Some(examined);
    }

    /// Counts the keys and documents that a statement of the command examined.
    pub(crate) fn count_examined(&mut self, examined: Examined) {
        self.examined_by_statements.keys += examined.keys;
        self.examined_by_statements.documents += examined.documents;
    }

    /// All keys and documents examined, for the counters.
    pub(crate) fn examined(&self) -> Examined {
        let own = self.observation.examined.unwrap_or_default();
        Examined {
            keys: own.keys + self.examined_by_statements.keys,
            documents: own.documents + self.examined_by_statements.documents,
        }
    }

    /// Adds the operation's counters to the observation.
    pub(crate) fn gather_work(&mut self) {
        if let Some(context) = self.context.get() {
            self.observation.add(context.operation().work_done().take());
        }
    }

    /// Whether an operation that took that long may be logged or profiled.
    pub(crate) fn is_noted_after(&self, elapsed: Duration) -> bool {
        self.service.profiler.may_note(elapsed) || self.service.parameters.verbosity.logs_all_commands()
    }

    /// Notes the plan that ran, if the command may be logged or profiled: making the report takes work.
    pub(crate) fn note_plan(&mut self, report: impl FnOnce() -> Option<PlanReport>) {
        if self.observation.plan.is_none() && self.is_noted_after(self.started().elapsed()) {
            self.observation.plan = report().map(Box::new);
        }
    }

    /// Processor time of the command, if it was measured.
    pub(crate) fn processor_time(&self) -> Option<Duration> {
        let before = self.processor_time_before?;
        machine::thread_time().map(|now| now.saturating_sub(before))
    }

    /// The command as `currentOp` shows it. A large command keeps only its small fields.
    pub(crate) fn command_kept(&self) -> DocumentBuf {
        self.operation.command()
    }

    /// The command without secrets.
    pub(crate) fn shown(&self) -> Shown<'a> {
        Shown::of_admitted(self.command, &self.request)
    }

    /// Records the command in the log and the profile, if the settings ask for it.
    pub(crate) fn note_end(&self, outcome: Outcome<'_>) {
        let CommandFacts { reads, profiling, usage, .. } = &self.command.facts;
        let has_statements = *profiling == Profiling::ByStatement;
        let has_collection = self.collection.is_some();
        // A command without its cursor uses no collection.
        let is_unknown_cursor = *reads == ReadsFrom::Cursor
            && outcome.failure.is_some_and(|failure| failure.code() == ErrorCode::CURSOR_NOT_FOUND);
        let entry = Entry {
            op: usage.opcode_name(),
            log_type: "command",
            component: "COMMAND",
            database: self.request.database,
            namespace: if has_statements || !has_collection {
                format!("{}.$cmd", self.request.database)
            } else {
                self.namespace_shown()
            },
            command: self.command_told(),
            observation: &self.observation,
            outcome,
            locking: Locking::of(self.command, has_collection),
            // Statements have their own entries.
            is_profiled: has_collection && *profiling == Profiling::Whole && !is_unknown_cursor,
        };
        self.service.profiler.note(self, &entry);
    }

    /// The command without secrets, with its database.
    fn command_told(&self) -> DocumentBuf {
        let mut command = self.shown().as_ref().to_owned();
        if command.as_ref().get("$db").is_none() {
            command.append("$db", self.request.database);
        }
        command
    }
}
