//! Facts of a command that are gathered while it runs and told when it is over.

use super::{Examined, Invocation};
use crate::access_control::Shown;
use crate::lock_modes::Locking;
use crate::machine;
use crate::operation_description::operation_name;
use crate::profiler::{Entry, Outcome};
use bunko_bson::DocumentBuf;
use bunko_errors::ErrorCode;
use bunko_query::PlanReport;
use std::time::Duration;

impl<'a> Invocation<'a> {
    /// Notes the keys and documents that were examined.
    pub(crate) fn note_examined(&mut self, examined: Examined) {
        self.observation.examined = Some(examined);
    }

    /// Counts the keys and documents that one of its statements examined.
    pub(crate) fn count_examined(&mut self, examined: Examined) {
        self.examined_by_statements.keys += examined.keys;
        self.examined_by_statements.documents += examined.documents;
    }

    /// All that was looked at, for the counters.
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
            self.observation.add(context.operation.work_done().take());
        }
    }

    /// Whether an operation that took that long may be noted in a log or a profile.
    pub(crate) fn is_noted_after(&self, elapsed: Duration) -> bool {
        self.service.profiler.may_note(elapsed) || self.service.parameters.verbosity.logs_all_commands()
    }

    /// Notes the plan that ran, if the command may be noted; making the report takes work.
    pub(crate) fn note_plan(&mut self, report: impl FnOnce() -> Option<PlanReport>) {
        if self.observation.plan.is_none() && self.is_noted_after(self.started().elapsed()) {
            self.observation.plan = report().map(Box::new);
        }
    }

    /// Processor time of the command, where it is known.
    pub(crate) fn processor_time(&self) -> Option<Duration> {
        let before = self.processor_time_before?;
        machine::thread_time().map(|now| now.saturating_sub(before))
    }

    /// The command as `currentOp` shows it: of a large one the small fields.
    pub(crate) fn command_kept(&self) -> DocumentBuf {
        self.operation.command()
    }

    /// The command as it may be shown.
    pub(crate) fn shown(&self) -> Shown<'a> {
        Shown::of_admitted(self.command, &self.request)
    }

    /// Notes the command in the log and the profile, as far as it is to be noted there.
    pub(crate) fn note_end(&self, outcome: Outcome<'_>) {
        let name = self.command.name;
        let has_statements = matches!(name, "update" | "delete" | "bulkWrite");
        let has_collection = self.collection.is_some();
        // Without its cursor a getMore reaches no collection.
        let is_unknown_cursor =
            name == "getMore" && outcome.failure.is_some_and(|failure| failure.code() == ErrorCode::CURSOR_NOT_FOUND);
        let entry = Entry {
            op: operation_name(name),
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
            locking: Locking::of(name, has_collection),
            // Statements have entries of their own.
            is_profiled: has_collection
                && !has_statements
                && !is_unknown_cursor
                && !matches!(name, "killCursors" | "profile"),
        };
        self.service.profiler.note(self, &entry);
    }

    /// The command without secrets, and with the name of its database.
    fn command_told(&self) -> DocumentBuf {
        let mut command = self.shown().as_ref().to_owned();
        if command.as_ref().get("$db").is_none() {
            command.append("$db", self.request.database);
        }
        command
    }
}
