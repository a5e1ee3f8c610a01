//! One attempt at a command, and the steps after the command's own function: waits, notes and the end of the reply.

use super::admission::enter;
use super::{Answer, write_labels};
use crate::access_control;
use crate::acknowledgement::Acknowledgement;
use crate::command_entry::Command;
use crate::connection::ClientConnection;
use crate::invocation::{Conflict, Invocation};
use crate::reply_room::check_reply_bytes;
use crate::service::Service;
use bunko_authority::audit::note_created;
use bunko_authority::{DATABASE, EXTERNAL_DATABASE};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::Turn;
use bunko_errors::{ErrorCode, Failure};
use bunko_fail_points::InjectedError;
use bunko_observe::entry::Outcome;
use bunko_operation::RunOn;
use bunko_request::Request;
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{Changes, ReadsFrom};
use bunko_request::write_concern;
use bunko_session::Halt;
use bunko_session::awaiting::Await;
use bunko_session::error_labels;
use bunko_session::transactions::{Fate, fate_by_reply};
use std::time::{Duration, Instant};

impl Service {
    /// Takes all steps of a command, for [`Service::run`].
    pub(super) fn attempt(
        &self,
        connection: &mut ClientConnection,
        request: Request<'_>,
        run_on: RunOn,
        out: &mut Vec<u8>,
        answer: &mut Answer,
    ) -> Result<(), Halt> {
        // The command no longer waits, whatever its outcome.
        let before = (connection.unpark(), connection.take_held_back());
        // The turn is given up after this attempt. The next command in the queue then runs, unless this attempt made it
        // wait for this command.
        let turn = connection.turn.take();
        let heartbeat = std::mem::take(&mut connection.heartbeat);
        let (command, mut options) = self.admit(connection, &request)?;
        let asked = (command, &request);
        let (operation, parked) = self.begin_operation(connection, asked, options.session, before)?;
        if let Some(wait) = self.wait_before(&mut options, asked, connection, &operation)? {
            return Err(connection.hold_back(operation, wait));
        }
        let waited = operation.waited();
        let mut invocation = Invocation::new(self, connection, request, &command.facts, options, run_on, &operation);
        invocation.parked = parked;
        invocation.heartbeat = heartbeat;
        enter(&mut invocation)?;
        let (start, room_before) = (out.len(), out.capacity());
        let mut reply = Writer::new(out);
        let generation = self.authority.access.generation();
        let outcome = self.run_command(&mut invocation, command, &mut reply);
        invocation.gather_work();
        let given_away = reply.capacity_bytes().saturating_sub(room_before);
        let until = turn.as_ref().map(Turn::until);
        let Ended { outcome, hold, next_turn } = self.end(&mut invocation, outcome, (given_away, until));
        if matches!(outcome, Err(Halt::TooLong)) {
            operation.note_move();
        }
        self.answer(&mut invocation, (command, generation), outcome.is_ok(), answer);
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
        if matches!(outcome, Err(Halt::TooLong | Halt::ClosesConnection)) {
            // The command runs again, and is counted then.
            return outcome;
        }
        answer.is_held = hold.is_some();
        invocation.connection.hold = hold;
        self.note_command(&mut invocation, command, &outcome, (waited, reply.len_bytes()));
        let outcome = match outcome {
            Ok(()) => {
                self.write_end(&mut invocation, command, &mut reply);
                self.acknowledge(&mut invocation, command, &out[start..])
            }
            Err(Halt::Failed(failure)) if invocation.written().is_some() => {
                self.acknowledge_before(&mut invocation, command, failure)
            }
            Err(halt) => Err(halt),
        };
        drop(invocation);
        if let Some(kept) = &mut connection.unacknowledged {
            kept.keep(operation);
        }
        outcome
    }

    /// Runs the command's own function, again if its collection was dropped meanwhile.
    fn run_command(
        &self,
        invocation: &mut Invocation<'_>,
        command: &Command,
        reply: &mut Writer<'_>,
    ) -> Result<(), Halt> {
        if self.write_lock.is_closed() && command.writes(invocation.request.body) {
            invocation.wait_for_write_lock()?;
        }
        let mut outcome = (command.run)(invocation, reply);
        for _ in 0..OVERTAKEN_MAX {
            if !is_overtaken(invocation, &outcome) {
                break;
            }
            reply.restart();
            outcome = (command.run)(invocation, reply);
        }
        outcome
    }

    /// Lets go of memory and of the cursor that the command leaves open, and finds out whether the command waits after
    /// a conflict. `given_away` is memory of the reply, which goes with the connection and no longer counts for the
    /// operation. `until` is the end of a wait that was begun before.
    fn end(
        &self,
        invocation: &mut Invocation<'_>,
        outcome: Result<(), Halt>,
        (given_away, until): (usize, Option<Instant>),
    ) -> Ended {
        // A command that is too long for this thread runs again, also where the failure was reported as a write error
        // or not at all.
        let outcome = if invocation.leave(given_away) { Err(Halt::TooLong) } else { outcome };
        if let Some(id) = invocation.cursor_left.take() {
            let memory = &self.facts.memory_limits.server;
            self.cursors.let_wait(id, invocation.operation(), || invocation.deadline(), memory);
        }
        let (outcome, hold, next_turn) = match invocation.wait_after_conflict(until) {
            // By then the command holds nothing that other operations wait for.
            Some(Conflict::Again(wait, next_turn)) => (Err(Halt::Awaits(Box::new(wait))), None, Some(next_turn)),
            Some(Conflict::Over(wait)) => (outcome, Some(wait), None),
            None => (outcome, None, None),
        };
        if matches!(outcome, Err(Halt::TooLong | Halt::Awaits(_))) {
            invocation.set_fate(Fate::AsBefore);
        }
        Ended { outcome, hold, next_turn }
    }

    /// Ends operations and cursors of users that the command changed, and tells how to send its reply.
    fn answer(
        &self,
        invocation: &mut Invocation<'_>,
        (command, generation): (&Command, u64),
        is_ok: bool,
        answer: &mut Answer,
    ) {
        let written = invocation.written();
        if written.is_some() && may_change_users(command, &invocation.request) {
            self.authority.access.note_change();
        }
        if self.authority.access.generation() != generation {
            access_control::end_revoked(self, invocation.opid());
        }
        answer.delay = invocation.delay;
        answer.follow_up = invocation.follow_up.filter(|_| is_ok);
        // Writes before a failure are acknowledged together with the failure, so they must be durable too.
        answer.acknowledgement = Acknowledgement::of(invocation.options.write_concern, written);
    }

    /// Notes a command that is over in the audit log, the counters and the profiler.
    fn note_command(
        &self,
        invocation: &mut Invocation<'_>,
        command: &'static Command,
        outcome: &Result<(), Halt>,
        (waited, reply_bytes): (Duration, usize),
    ) {
        let failure = match outcome {
            Err(Halt::Failed(failure)) => Some(failure),
            _ => None,
        };
        let elapsed = invocation.running_for().saturating_sub(waited);
        if self.authority.audit.is_on() {
            note_created(&self.authority, invocation.connection, invocation.created());
            let code = failure.map(Failure::code);
            self.authority.note_command(invocation.connection, command, command.audit, &invocation.request, code);
        }
        let (namespace, examined) = (invocation.namespace_noted(), invocation.examined());
        self.counters.note_command(command, namespace, elapsed, examined, failure.map(Failure::code));
        if failure.is_none() {
            invocation.note_query(elapsed);
        }
        if invocation.is_noted_after(elapsed) {
            invocation.note_end(Outcome { elapsed, failure, reply_bytes: Some(reply_bytes) });
        }
    }

    /// Writes the last fields of a reply, from `writeConcernError` on.
    fn write_end(&self, invocation: &mut Invocation<'_>, command: &Command, reply: &mut Writer<'_>) {
        let request = invocation.request;
        if let Some(unmet) = &invocation.options.unmet_write_concern {
            let error = DocumentBuf::new()
                .with("code", unmet.code().0)
                .with("codeName", unmet.code().name().as_str())
                .with("errmsg", unmet.message());
            let given = request.body.get("writeConcern").and_then(ValueRef::as_document);
            let concern = given.map_or_else(|| self.default_concern(), write_concern::as_used);
            let used = DocumentBuf::new().with("writeConcern", &concern);
            reply.append("writeConcernError", &error.with("errInfo", &used));
        }
        if let Some(injected) = invocation.injected.take() {
            write_injected(reply, injected, command, &request);
        }
        reply.append("ok", if invocation.has_integer_ok { ValueRef::Int32(1) } else { ValueRef::Double(1.0) });
        self.write_times(reply);
        reply.end();
    }

    /// Checks the finished reply, tells the transaction how its statement ended, and waits for other members.
    fn acknowledge(&self, invocation: &mut Invocation<'_>, command: &Command, reply: &[u8]) -> Result<(), Halt> {
        check_reply_bytes(reply.len())?;
        if invocation.is_of_transaction() {
            invocation.set_fate(fate_by_reply(DocumentRef::trusted(reply))?);
        }
        let request = invocation.request;
        self.wait_for_members(invocation, command, &request, reply)
    }

    /// After a failure: waits until other members have the writes that the command made before it.
    fn acknowledge_before(
        &self,
        invocation: &mut Invocation<'_>,
        command: &Command,
        failure: Failure,
    ) -> Result<(), Halt> {
        let (mut kept, request) = (Vec::new(), invocation.request);
        self.write_failed(failure.clone(), &request, &mut kept);
        self.wait_for_members(invocation, command, &request, &kept)?;
        Err(failure.into())
    }
}

/// The outcome of a command's own function, and the waits that follow.
struct Ended {
    outcome: Result<(), Halt>,
    /// The wait before the reply is sent.
    hold: Option<Await>,
    /// The turn of a command that runs again.
    next_turn: Option<Turn>,
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

/// Appends the write concern error that a failpoint adds.
fn write_injected(reply: &mut Writer<'_>, injected: InjectedError, command: &Command, request: &Request<'_>) {
    let InjectedError { error, labels } = injected;
    let code = error.as_ref().get("code");
    let labels = labels.unwrap_or_else(|| error_labels::of_write_concern_error(code, command, request));
    write_labels(reply, &labels);
    reply.append("writeConcernError", &error);
}
