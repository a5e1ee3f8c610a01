//! Facts of a command that are gathered while it runs and reported when it is over.

use super::Invocation;
use crate::commands;
use bunko_authority::Shown;
use bunko_bson::DocumentBuf;
use bunko_catalog::Namespace;
use bunko_errors::ErrorCode;
use bunko_observe::entry::{Entry, Outcome, Sender};
use bunko_observe::lock_modes::Locking;
use bunko_observe::machine;
use bunko_observe::namespace_of;
use bunko_observe::profiler::ProfilerContext;
use bunko_operation::Examined;
use bunko_query::PlanReport;
use bunko_request::facts::{CommandFacts, Profiling, ReadsFrom};
use bunko_settings::query_settings::{ShapeHash, shape_of};
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

    /// The database and collection under which `top` counts the command; `None` if it has no collection or dropped it.
    pub(crate) fn namespace_noted(&self) -> Option<(&str, &str)> {
        let collection = self.collection.as_deref().filter(|_| !self.is_collection_gone);
        collection.map(|collection| (self.request.database, collection))
    }

    /// The namespace that the profiler shows. For a collection given by its UUID, this is its name.
    pub(crate) fn namespace_shown(&self) -> String {
        match &self.collection {
            Some(Cow::Owned(collection)) => format!("{}.{collection}", self.request.database),
            _ => namespace_of(self.command, self.request.database, self.operation.command().as_ref()),
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

    /// Notes the plan that ran, if the command may be logged, profiled or counted: making the report takes work.
    pub(crate) fn note_plan(&mut self, report: impl FnOnce() -> Option<PlanReport>) {
        if self.observation.plan.is_none() && (self.is_counted || self.is_noted_after(self.running_for())) {
            self.observation.plan = report().map(Box::new);
        }
    }

    /// Measures the processor time of the command from now on.
    pub(crate) fn measure_processor_time(&mut self) {
        self.processor_time_before = self.processor_time_before.or_else(machine::thread_time);
    }

    /// Processor time of the command, if it was measured.
    pub(crate) fn processor_time(&self) -> Option<Duration> {
        let before = self.processor_time_before?;
        machine::thread_time().map(|now| now.saturating_sub(before))
    }

    /// The client and its request, for an entry of the profiler or the log.
    pub(crate) fn sender(&self) -> Sender<'_> {
        let connection = &*self.connection;
        Sender {
            connection: connection.id,
            peer: &connection.peer,
            ip: connection.peer.ip(),
            application: connection.application(),
            user: connection.user().map(|user| &user.name),
            protocol: if self.request.message.is_some() { "op_msg" } else { "op_query" },
            request_bytes: self.request.body.len_bytes(),
            comment: self.options.comment.as_ref(),
            trace: &self.trace,
            ended_ms: self.service.world.now_ms(),
            processor_time: self.processor_time(),
        }
    }

    /// Records a finished operation where the settings ask for it.
    pub(crate) fn record(&self, entry: &Entry<'_>) {
        let service = self.service;
        let context = ProfilerContext {
            catalog: &service.catalog,
            stamps: &service.world,
            random: &*service.world.random,
            logs_all_commands: service.parameters.verbosity.logs_all_commands(),
            may_write: service.may_write() && !service.write_lock.is_closed(),
        };
        service.profiler.note(&context, entry);
    }

    /// The command without secrets.
    pub(crate) fn shown(&self) -> Shown<'a> {
        Shown::of_admitted(self.command, &self.request)
    }

    /// Records the command in the log and the profile, if the settings ask for it.
    pub(crate) fn note_end(&self, outcome: Outcome<'_>) {
        let CommandFacts { reads, profiling, usage, .. } = self.command;
        let has_statements = *profiling == Profiling::ByStatement;
        let has_collection = self.collection.is_some();
        // A command without its cursor uses no collection.
        let is_unknown_cursor = *reads == ReadsFrom::Cursor
            && outcome.failure.is_some_and(|failure| failure.code() == ErrorCode::CURSOR_NOT_FOUND);
        let entry = Entry {
            op: usage.opcode_name(),
            log_type: "command",
            component: "COMMAND",
            operation: self.command.name,
            database: self.request.database,
            namespace: if has_statements || !has_collection {
                format!("{}.$cmd", self.request.database)
            } else {
                self.namespace_shown()
            },
            collection: self.collection.as_deref(),
            command: self.command_told(),
            // A large command keeps only its small fields for `currentOp`.
            small_fields: Some(&|| self.operation.command()),
            shape_hash: Some(&|| self.shape_hash()),
            sender: self.sender(),
            observation: &self.observation,
            outcome,
            locking: Locking::of(self.command, has_collection),
            // Statements have their own entries.
            is_profiled: has_collection && *profiling == Profiling::Whole && !is_unknown_cursor,
        };
        self.record(&entry);
    }

    /// The hash of the query's shape; for a `getMore`, of the query that opened the cursor.
    fn shape_hash(&self) -> Option<String> {
        let opened_by = self.observation.originating_command.as_ref().map(DocumentBuf::as_ref);
        let (command, body): (&CommandFacts, _) = match opened_by {
            Some(body) => (commands::find(body.first()?.name)?, body),
            None => (self.command, self.request.body),
        };
        let shape = command.has_query_shape().then(|| shape_of(command, self.request.database, body));
        shape.map(|shape| ShapeHash::of(&shape).to_string())
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

#[cfg(test)]
mod tests {
    use crate::commands;
    use bunko_bson::DocumentBuf;
    use bunko_observe::lock_modes::Locking;

    #[test]
    fn locks_follow_from_the_command() {
        for (command, has_collection, locking) in [
            ("find", true, Locking::Read),
            ("insert", true, Locking::Write),
            ("bulkWrite", true, Locking::Write),
            ("createIndexes", true, Locking::Definition),
            ("collStats", true, Locking::Read),
            ("ping", false, Locking::None),
        ] {
            let entry = commands::find(command).expect("a command");
            assert_eq!(Locking::of(entry, has_collection), locking, "{command}");
        }
        assert_eq!(Locking::Read.held(), DocumentBuf::new().with("Global", "r"));
    }
}
