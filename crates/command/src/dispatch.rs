//! From a request to a reply: finds the command, checks its fields, runs it, and writes its reply.

use crate::access_control;
use crate::acknowledgement::Acknowledgement;
use crate::command_entry::Command;
use crate::commands;
use crate::connection::ClientConnection;
use crate::invocation::{Conflict, Invocation};
use crate::known_commands;
use crate::reply_room::check_reply_bytes;
use crate::service::Service;
use crate::transaction_targets::check_targets;
use bunko_authority::audit::note_created;
use bunko_authority::{DATABASE, EXTERNAL_DATABASE, Shown};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::{StateAsked, Turn, check_database};
use bunko_errors::{ErrorCode, Failure};
use bunko_fail_points::InjectedError;
use bunko_observe::entry::Outcome;
use bunko_operation::RunOn;
use bunko_request::Request;
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{Changes, ReadsFrom, TransactionUse};
use bunko_request::write_concern;
use bunko_session::Halt;
use bunko_session::awaiting::{FollowUp, Heartbeat};
use bunko_session::error_labels;
use bunko_session::operations::{Beginning, at_shutdown};
use bunko_session::options::GenericOptions;
use bunko_session::transactions::{Fate, fate_by_reply, is_inside};
use std::time::Duration;

/// How to send the reply that [`Service::run`] wrote.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    /// The acknowledgement to wait for before the reply is sent.
    pub acknowledgement: Acknowledgement,
    /// How long to hold the reply back (after a refused login).
    pub delay: Option<Duration>,
    /// The reply that follows unasked, if the client allows that: its request is run again.
    pub follow_up: Option<FollowUp>,
    /// Whether the reply is held until the wait in [`ClientConnection::take_hold`] is over.
    pub is_held: bool,
}

impl Service {
    /// Runs one command and appends its reply document to `out`.
    ///
    /// # Errors
    /// [`Halt::TooLong`], never with [`RunOn::OwnThread`]: run it again with that. [`Halt::Awaits`]: run it again after
    /// the wait. [`Halt::ClosesConnection`]: close the connection. Failures are replies.
    pub fn run(
        &self,
        connection: &mut ClientConnection,
        request: Request<'_>,
        run_on: RunOn,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Halt> {
        let start = out.len();
        let mut answer = Answer::default();
        let heartbeat = connection.heartbeat;
        match self.attempt(connection, request, run_on, out, &mut answer) {
            Ok(()) => Ok(answer),
            Err(halt @ (Halt::TooLong | Halt::Awaits(_) | Halt::ClosesConnection)) => {
                out.truncate(start);
                if matches!(halt, Halt::TooLong) {
                    connection.heartbeat = heartbeat;
                }
                Err(halt)
            }
            Err(Halt::Failed(failure)) => {
                connection.end_move();
                out.truncate(start);
                let mut reply = Writer::new(out);
                let command = commands::find(request.name()).map(|command| &command.facts);
                if self.replica_set.is_some() && is_of_secondary(failure.code()) {
                    let counter = commands::hello::topology(self);
                    reply.append("topologyVersion", &commands::hello::topology_version(self, counter));
                }
                write_failure_fields(&mut reply, &error_labels::labelled(failure, command, &request));
                self.write_times(&mut reply);
                reply.end();
                Ok(answer)
            }
        }
    }

    fn attempt(
        &self,
        connection: &mut ClientConnection,
        request: Request<'_>,
        run_on: RunOn,
        out: &mut Vec<u8>,
        answer: &mut Answer,
    ) -> Result<(), Halt> {
        // The command no longer waits, whatever its outcome.
        let parked = connection.unpark();
        // The turn is given up after this attempt, and the next command in the queue runs then, unless it now waits for
        // this one.
        let turn = connection.turn.take();
        let heartbeat = std::mem::take(&mut connection.heartbeat);
        let name = request.name();
        let Some(command) = commands::find(name) else {
            self.counters.note_refused(None);
            return Err(no_such_command(name).into());
        };
        if command.databases.is_of_tests() && !self.fail_points.are_allowed() {
            return Err(no_such_command(name).into());
        }
        let mut options = admit(self, connection, command, &request)
            .inspect_err(|_| self.counters.note_refused(Some(command.name)))?;
        if self.operations.are_interrupted() {
            return Err(at_shutdown().into());
        }
        self.check_primary(command, &request)?;
        if let Some(named) = options.named_session {
            options.session = self.use_session(connection, named)?;
        }
        let shown = Shown::of_admitted(command, &request);
        let beginning =
            Beginning { entry: command, database: request.database, command: shown.as_ref(), session: options.session };
        let (operation, parked) = match parked {
            Some((operation, cursor)) => (operation, Some(cursor)),
            None => (connection.begin_operation(&self.operations, &beginning), None),
        };
        if self.authority.access.is_enforced() && connection.has_outdated_user(&self.authority) {
            // A revocation after the command was admitted did not find the operation, which had not begun.
            admit(self, connection, command, &request)?;
        }
        if let Some(set) = &self.replica_set {
            if !options.has_write_concern {
                options.write_concern.is_journaled = self.default_concerns.is_journaled();
            }
            options.cluster_time.map_or(Ok(()), |told| set.cluster_time.hear(told, self.world.now_ms()))?;
            let told = match options.read_concern.state {
                Some(StateAsked::At(time)) => {
                    if time > self.catalog.store().newest_time_max() {
                        // Writes that come before that time has passed get a later timestamp.
                        self.catalog.read_past(StateAsked::Present)?;
                    }
                    Some(("atClusterTime", time))
                }
                _ => options.read_concern.after.map(|time| ("afterClusterTime", time)),
            };
            told.map_or(Ok(()), |(name, time)| set.cluster_time.wait_for(name, time))?;
        }
        let waited = operation.waited();
        let mut invocation = Invocation::new(self, connection, request, &command.facts, options, run_on, &operation);
        invocation.parked = parked;
        invocation.heartbeat = heartbeat;
        // A command that resumes after a wait has already passed the failpoints.
        let goes_on = invocation.parked.is_some() || heartbeat == Heartbeat::Waited;
        if self.fail_points.is_any_on() && !goes_on {
            invocation.meet_failpoints()?;
        }
        if let Some(number) = invocation.options.transaction_number {
            invocation.check_out_session(number)?;
            check_targets(&invocation)?;
        }
        if !invocation.is_of_transaction() {
            invocation.connection.haste.set(false);
        }
        if let Some(asked) = invocation.state_asked() {
            invocation.read_past(asked)?;
        }
        let start = out.len();
        let room_before = out.capacity();
        let mut reply = Writer::new(out);
        let generation = self.authority.access.generation();
        let mut outcome = if self.write_lock.is_closed() && command.writes(request.body) {
            invocation.wait_for_write_lock().and_then(|()| (command.run)(&mut invocation, &mut reply))
        } else {
            (command.run)(&mut invocation, &mut reply)
        };
        for _ in 0..OVERTAKEN_MAX {
            if !is_overtaken(&invocation, &outcome) {
                break;
            }
            out.truncate(start);
            reply = Writer::new(out);
            outcome = (command.run)(&mut invocation, &mut reply);
        }
        invocation.gather_work();
        // This also holds if the failure was reported as a write error, or was not reported at all. The reply's memory
        // goes with the connection, and no longer counts for the operation.
        let given_away = reply.capacity_bytes().saturating_sub(room_before);
        let outcome = if invocation.leave(given_away) { Err(Halt::TooLong) } else { outcome };
        if let Some(id) = invocation.cursor_left.take() {
            let memory = &self.facts.memory_limits.server;
            self.cursors.let_wait(id, invocation.operation(), || invocation.deadline(), memory);
        }
        let (outcome, held, next_turn) = match invocation.wait_after_conflict(turn.as_ref().map(Turn::until)) {
            // By then the command holds nothing that other operations wait for.
            Some(Conflict::Again(wait, next_turn)) => (Err(Halt::Awaits(Box::new(wait))), None, Some(next_turn)),
            Some(Conflict::Over(wait)) => (outcome, Some(wait), None),
            None => (outcome, None, None),
        };
        if matches!(outcome, Err(Halt::TooLong | Halt::Awaits(_))) {
            invocation.set_fate(Fate::AsBefore);
        }
        if matches!(outcome, Err(Halt::TooLong)) {
            operation.note_move();
        }
        let written = invocation.written();
        if written.is_some() && may_change_users(command, &request) {
            self.authority.access.note_change();
        }
        if self.authority.access.generation() != generation {
            access_control::end_revoked(self, invocation.opid());
        }
        let has_integer_ok = invocation.has_integer_ok;
        answer.delay = invocation.delay;
        answer.follow_up = invocation.follow_up.filter(|_| outcome.is_ok());
        // Writes before a failure are acknowledged together with the failure, so they must be durable too.
        answer.acknowledgement = Acknowledgement::of(invocation.options.write_concern, written);
        if let Err(Halt::Awaits(_)) = &outcome {
            let parked = invocation.parked.take();
            drop(invocation);
            connection.turn = next_turn;
            connection.park(operation, parked);
            return outcome;
        }
        if let Some(left) = invocation.parked.take() {
            self.cursors.finish(left.id);
        }
        let failure = match &outcome {
            Ok(()) => None,
            Err(Halt::Failed(failure)) => Some(failure),
            // The command runs again, and is counted then.
            Err(Halt::TooLong | Halt::Awaits(_) | Halt::ClosesConnection) => return outcome,
        };
        answer.is_held = held.is_some();
        invocation.connection.hold = held;
        let elapsed = invocation.running_for().saturating_sub(waited);
        if self.authority.audit.is_on() {
            note_created(&self.authority, invocation.connection, invocation.created());
            let code = failure.map(Failure::code);
            self.authority.note_command(invocation.connection, command, command.audit, &request, code);
        }
        let (namespace, examined) = (invocation.namespace_noted(), invocation.examined());
        self.counters.note_command(command, namespace, elapsed, examined, failure.map(Failure::code));
        if invocation.is_noted_after(elapsed) {
            invocation.note_end(Outcome { elapsed, failure, reply_bytes: Some(reply.len_bytes()) });
        }
        outcome?;
        let ok = if has_integer_ok { ValueRef::Int32(1) } else { ValueRef::Double(1.0) };
        if let Some(unmet) = invocation.options.unmet_write_concern.take() {
            let error = DocumentBuf::new()
                .with("code", unmet.code().0)
                .with("codeName", unmet.code().name().as_str())
                .with("errmsg", unmet.message());
            let given = request.body.get("writeConcern").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
            let used = DocumentBuf::new().with("writeConcern", &write_concern::as_used(given));
            reply.append("writeConcernError", &error.with("errInfo", &used));
        }
        if let Some(injected) = invocation.injected.take() {
            write_injected(&mut reply, injected, command, &request);
        }
        reply.append("ok", ok);
        self.write_times(&mut reply);
        reply.end();
        check_reply_bytes(out.len() - start)?;
        if invocation.is_of_transaction() {
            invocation.set_fate(fate_by_reply(DocumentRef::trusted(&out[start..]))?);
        }
        Ok(())
    }
}

/// Maximum number of times that a read starts again because its collection was dropped.
const OVERTAKEN_MAX: usize = 100;

/// Whether a command read a collection that was dropped meanwhile, and had no other effect. Another collection may have
/// the name by now. A drop during a later batch (`getMore`) is reported to the client instead.
fn is_overtaken(invocation: &Invocation<'_>, outcome: &Result<(), Halt>) -> bool {
    matches!(outcome, Err(Halt::Failed(failure)) if failure.code() == ErrorCode::QUERY_PLAN_KILLED)
        && invocation.command.reads == ReadsFrom::Collection
        && invocation.command.class == OperationClass::Read
        && invocation.written().is_none()
        && !invocation.is_of_transaction()
}

/// Whether a command may have written users or roles. The output of a pipeline may go into any database.
fn may_change_users(command: &Command, request: &Request<'_>) -> bool {
    let is_theirs = |database| [DATABASE, EXTERNAL_DATABASE].contains(&database);
    is_theirs(request.database) || matches!(command.changes, Changes::Output(_))
}

fn no_such_command(name: &str) -> Failure {
    if known_commands::is_known(name) {
        return Failure::not_supported_yet(&format!("the command '{name}'"));
    }
    Failure::new(ErrorCode::COMMAND_NOT_FOUND, format!("no such command: '{name}'"))
}

/// Checks the command's database, the client's privileges and the command's fields.
fn admit(
    service: &Service,
    connection: &mut ClientConnection,
    command: &Command,
    request: &Request<'_>,
) -> Result<GenericOptions, Failure> {
    if request.database != EXTERNAL_DATABASE {
        check_database(request.database)?;
    }
    if command.databases.is_admin_only() && request.database != "admin" {
        // If the command is not allowed in a transaction, that error comes first.
        if command.transaction == TransactionUse::Refused && is_inside(request.body) {
            GenericOptions::parse(service.deployment(), command, request)?;
        }
        return Err(Failure::new(
            ErrorCode::UNAUTHORIZED,
            format!("{} may only be run against the admin database.", command.name),
        ));
    }
    connection.renew_user(&service.authority, &service.transactions)?;
    if service.authority.access.is_enforced() {
        command.privileges.authorize(service, connection, command, request)?;
    }
    GenericOptions::parse(service.deployment(), command, request)
}

/// Appends an error reply.
pub fn write_failure(out: &mut Vec<u8>, failure: &Failure) {
    let mut reply = Writer::new(out);
    write_failure_fields(&mut reply, failure);
    reply.end();
}

fn write_labels(reply: &mut Writer<'_>, labels: &[impl AsRef<str>]) {
    if labels.is_empty() {
        return;
    }
    reply.begin_array("errorLabels");
    for (index, label) in labels.iter().enumerate() {
        reply.push(index, label.as_ref());
    }
    reply.end();
}

/// Appends the write concern error that a failpoint adds.
fn write_injected(reply: &mut Writer<'_>, injected: InjectedError, command: &Command, request: &Request<'_>) {
    let InjectedError { error, labels } = injected;
    let code = error.as_ref().get("code");
    let labels = labels.unwrap_or_else(|| error_labels::of_write_concern_error(code, command, request));
    write_labels(reply, &labels);
    reply.append("writeConcernError", &error);
}

/// Whether a failure says that the member is not the primary. By the topology version beside it, clients tell whether
/// they know of that already.
/// Source: MongoDB drivers' specification, "Server Discovery And Monitoring", errors with `topologyVersion`.
fn is_of_secondary(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NOT_WRITABLE_PRIMARY
            | ErrorCode::NOT_PRIMARY_NO_SECONDARY_OK
            | ErrorCode::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE
    )
}

fn write_failure_fields(reply: &mut Writer<'_>, failure: &Failure) {
    write_labels(reply, failure.labels());
    reply
        .append("ok", 0.0)
        .append("errmsg", failure.message())
        .append("code", failure.code().0)
        .append("codeName", failure.code().name().as_str())
        .extend(failure.details());
}
