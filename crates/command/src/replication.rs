//! Writes whose replies wait until other members have them. A wait holds no thread.
//!
//! ```text
//!   run ── the write is done, its reply is written ──► kept with the connection ──► Halt::Awaits
//!                                                              ▲                        │ bell, time, stop
//!                                                              └── not yet ── run again ◄┘
//!                                                                                │ met, or over
//!                                                                                ▼
//!                                                                  the kept reply, with an error if it was not met
//! ```
//! Source: MongoDB manual 8.2, "Write Concern".

use crate::command_entry::Command;
use crate::connection::ClientConnection;
use crate::dispatch::{Answer, write_labels};
use crate::invocation::Invocation;
use crate::service::Service;
use crate::unacknowledged::{LOOK_INTERVAL, Unacknowledged};
use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure};
use bunko_members::{Members, Need, Standing, Stored, Wait};
use bunko_operation::Interruption as _;
use bunko_replica_set::{Listed, ReplicaSet, Tagged};
use bunko_request::Request;
use bunko_request::facts::WriteConcernUse;
use bunko_request::write_concern::{self, Replicas};
use bunko_session::Halt;
use bunko_session::awaiting::Await;
use bunko_session::error_labels;
use bunko_session::operations::{Interruption, RunningOperation, at_disconnection, at_shutdown};
use bunko_session::options::GenericOptions;
use bunko_store::{Lsn, Role};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Service {
    /// The members that must have a command's writes; `None` if this one is enough, or if the set had no such members
    /// when the command began. The reply says so then.
    fn need_of(&self, invocation: &Invocation<'_>, request: &Request<'_>) -> Option<Need> {
        let options = &invocation.options;
        if options.unmet_write_concern.is_some() {
            return None;
        }
        let stored = if options.write_concern.is_journaled { Stored::Synced } else { Stored::Written };
        match self.replicas(options) {
            Replicas::Own => None,
            Replicas::Majority => Some(Need::Majority),
            Replicas::Members(members) => Some(Need::Members(members.into(), stored)),
            Replicas::Tagged => Some(Need::Tagged(Arc::new(self.tagged(request.body)?), stored)),
        }
    }

    /// The members that a command's write concern names, or the default one.
    fn replicas(&self, options: &GenericOptions) -> Replicas {
        match (options.has_write_concern, self.default_concerns.replicas()) {
            (true, _) => options.write_concern.replicas,
            (false, Some(default)) => default,
            (false, None) => self.implied_replicas(),
        }
    }

    /// The tags that a command's write concern asks for, or the default one.
    fn tagged(&self, body: DocumentRef<'_>) -> Option<Tagged> {
        match body.get("writeConcern").and_then(ValueRef::as_document) {
            Some(given) => Tagged::of(given.get("w")?),
            None => Tagged::of(self.default_concerns.set()?.write?.as_ref().get("w")?),
        }
    }

    /// The implied default: the majority, unless the loss of one data member would then block all writes.
    /// Source: MongoDB manual 8.2, "Implicit Default Write Concern".
    pub(crate) fn implied_replicas(&self) -> Replicas {
        let Some(set) = &self.replica_set else { return Replicas::Majority };
        implied_by(&set.member().listed)
    }

    /// Notes in the options whether the set lacks the members for the command's write concern. The command writes in
    /// any case, and its reply then has a write concern error.
    /// # Errors
    /// `NotWritablePrimary` for the read concern `linearizable` on a secondary.
    pub(crate) fn settle_concerns(
        &self,
        set: &ReplicaSet,
        options: &mut GenericOptions,
        (command, body): (&Command, DocumentRef<'_>),
    ) -> Result<(), Failure> {
        // Reads, statements of a transaction, and commands that take no write concern have no default.
        let is_write = command.writes(body) && options.part.is_none() || command.transaction.is_end();
        let has_default = is_write && command.write_concern != WriteConcernUse::Refused;
        if (options.has_write_concern || has_default)
            && self.replicas(options) == Replicas::Tagged
            && let Some(tagged) = self.tagged(body)
        {
            options.unmet_write_concern = set.member().check_tagged(&tagged).err();
        }
        let Some(members) = self.members() else { return Ok(()) };
        if options.read_concern.is_linearizable {
            options.read_concern.begun_in_term = members.term_led();
            if !self.may_write() {
                let message = "cannot satisfy linearizable read concern on non-primary node";
                return Err(Failure::new(ErrorCode::NOT_WRITABLE_PRIMARY, message));
            }
        }
        if let Replicas::Members(wanted) = options.write_concern.replicas {
            options.unmet_write_concern = set.member().check_count(wanted.into()).err();
        }
        Ok(())
    }

    /// The wait of a read on a secondary until a time is applied; `None` if it is.
    /// # Errors
    /// The reason for which the operation must stop.
    pub(crate) fn wait_until_applied(
        &self,
        time: Timestamp,
        options: &GenericOptions,
        connection: &ClientConnection,
        operation: &RunningOperation,
    ) -> Result<Option<Await>, Failure> {
        let Some(members) = self.members() else { return Ok(None) };
        if members.has_applied(time) {
            return Ok(None);
        }
        let until = options.max_time.map(|limit| operation.started() + limit);
        let stop = Arc::clone(operation.stop_bell());
        let heard = stop.rings();
        if let Some(failure) = Interruption::of(operation, until).reason() {
            return Err(failure);
        }
        // No reply can be sent, whatever the command is.
        if connection.absence().is_some_and(|absence| absence.is_noted()) {
            return Err(at_disconnection());
        }
        let bell = members.add_wait_for_time(time);
        if members.has_applied(time) {
            return Ok(None);
        }
        let until = until.unwrap_or_else(|| self.world.clock.now() + LOOK_INTERVAL);
        Ok(Some(Await { news: bell.after(0), stop: stop.after(heard), until, turn: None }))
    }

    /// Lets the reply to a command wait for other members, where its write concern asks for them.
    /// # Errors
    /// [`Halt::Awaits`], once the reply is kept.
    pub(crate) fn wait_for_members(
        &self,
        invocation: &mut Invocation<'_>,
        command: &Command,
        request: &Request<'_>,
        reply: &[u8],
    ) -> Result<(), Halt> {
        let Some(members) = self.members() else { return Ok(()) };
        let is_statement = invocation.is_of_transaction() && !command.transaction.is_end();
        let writes = command.writes(request.body) || command.transaction.is_end();
        let is_silent = invocation.options.write_concern.is_unacknowledged;
        if is_statement || is_silent || invocation.connection.is_own() {
            return Ok(());
        }
        if !writes && invocation.options.read_concern.is_linearizable {
            let begun_in = invocation.options.read_concern.begun_in_term;
            let until = invocation.deadline().map(|deadline| (deadline, ErrorCode::MAX_TIME_MS_EXPIRED));
            let wait = members.wait_for_read(self.catalog.store().visible_end(), begun_in);
            return self.keep_reply(members, invocation, (reply, true), (wait, until));
        }
        if !writes {
            return Ok(());
        }
        let Some(set) = &self.replica_set else { return Ok(()) };
        let Some(need) = self.need_of(invocation, request) else { return Ok(()) };
        let store = self.catalog.store();
        // `replSetInitiate` leaves the primary's role itself, and `replSetReconfig` may take members away.
        if command.write_concern == WriteConcernUse::Refused
            && (store.role() == Role::Secondary || unmet(set, &need).is_some())
        {
            return Ok(());
        }
        // A write that changed nothing may repeat one that is not committed yet.
        let end = invocation.written().map_or_else(|| store.visible_end(), |lsn| Lsn(lsn.0 + 1));
        let wait = members.wait_for(end, need);
        if members.standing(&wait) == Standing::Met {
            return Ok(());
        }
        let timeout = invocation.options.write_concern.timeout_ms;
        let timeout = (timeout > 0).then(|| invocation.now() + Duration::from_millis(timeout.into()));
        let until = match (timeout, invocation.deadline()) {
            (Some(timeout), Some(deadline)) if deadline < timeout => Some((deadline, ErrorCode::MAX_TIME_MS_EXPIRED)),
            (Some(timeout), _) => Some((timeout, ErrorCode::WRITE_CONCERN_FAILED)),
            (None, deadline) => deadline.map(|deadline| (deadline, ErrorCode::MAX_TIME_MS_EXPIRED)),
        };
        self.keep_reply(members, invocation, (reply, false), (wait, until))
    }

    /// Keeps the reply of a write, or of a linearizable read, with the connection until its wait is over.
    fn keep_reply(
        &self,
        members: &Members,
        invocation: &mut Invocation<'_>,
        (reply, is_read): (&[u8], bool),
        (wait, until): (Wait, Option<(Instant, ErrorCode)>),
    ) -> Result<(), Halt> {
        // The log may not have begun to sync these records; asking for their durability makes it begin.
        let last = Lsn(wait.end.0.saturating_sub(1));
        self.catalog.store().on_durable(last, Box::new(|_| ()));
        let bell = members.add_wait(wait.clone());
        match members.standing(&wait) {
            Standing::Met => return Ok(()),
            // Nothing that other members send could end the wait.
            Standing::SteppedDown | Standing::TooFew => bell.ring(),
            Standing::Waits => {}
        }
        let stop = Arc::clone(invocation.stop_bell());
        let heard = stop.rings();
        let kept = Unacknowledged { operation: None, is_read, reply: reply.to_vec(), wait, bell, stop, until };
        let halt = kept.halt(invocation.now(), heard);
        invocation.connection.unacknowledged = Some(Box::new(kept));
        Err(halt)
    }

    /// Goes on with a write whose reply waits.
    /// # Errors
    /// [`Halt::Awaits`] if it still waits.
    pub(crate) fn go_on_waiting(
        &self,
        connection: &mut ClientConnection,
        mut kept: Box<Unacknowledged>,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Halt> {
        let (now, heard) = (self.world.clock.now(), kept.stop.rings());
        let standing = self.members().map_or(Standing::Met, |members| members.standing(&kept.wait));
        let is_gone = connection.absence().is_some_and(|absence| absence.is_noted());
        let failure = match standing {
            Standing::Met => None,
            Standing::SteppedDown if kept.is_read => Some(Failure::new(
                ErrorCode::NOT_WRITABLE_PRIMARY,
                "No longer primary when waiting for linearizable read concern",
            )),
            Standing::SteppedDown => Some(Failure::new(
                ErrorCode::PRIMARY_STEPPED_DOWN,
                "Primary stepped down while waiting for replication",
            )),
            Standing::TooFew => {
                let failure = self.replica_set.as_ref().and_then(|set| unmet(set, &kept.wait.need));
                Some(failure.unwrap_or_else(too_few))
            }
            Standing::Waits if self.operations.are_interrupted() => Some(at_shutdown()),
            Standing::Waits if kept.is_killed() => {
                Some(Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted"))
            }
            Standing::Waits => match kept.until {
                Some((until, code)) if now >= until => Some(late(code)),
                _ if is_gone => None,
                _ => {
                    if let Some(members) = self.members().filter(|_| kept.bell.rings() > 0) {
                        kept.bell = members.add_wait(kept.wait.clone());
                    }
                    let halt = kept.halt(now, heard);
                    connection.unacknowledged = Some(kept);
                    return Err(halt);
                }
            },
        };
        match failure {
            None => out.extend_from_slice(&kept.reply),
            Some(failure) if kept.is_read => {
                self.close_unseen_cursor(&kept.reply);
                self.write_failed(failure, request, out);
            }
            Some(failure) => self.write_unmet(&kept.reply, &failure, request, out),
        }
        Ok(Answer::default())
    }
}

impl Service {
    /// Closes the cursor that a kept reply names: the client gets an error in place of the reply, so it never learns
    /// the cursor's id.
    fn close_unseen_cursor(&self, reply: &[u8]) {
        let cursor = DocumentRef::trusted(reply).get("cursor").and_then(ValueRef::as_document);
        if let Some(ValueRef::Int64(id)) = cursor.and_then(|cursor| cursor.get("id"))
            && id != 0
        {
            self.cursors.kill(id, None);
        }
    }

    /// Appends the reply to a write that was done, with the error that its write concern was not met.
    fn write_unmet(&self, reply: &[u8], failure: &Failure, request: &Request<'_>, out: &mut Vec<u8>) {
        let given = request.body.get("writeConcern").and_then(ValueRef::as_document);
        let concern = given.map_or_else(|| self.default_concern(), write_concern::as_used);
        let mut used = DocumentBuf::new();
        if failure.code() == ErrorCode::WRITE_CONCERN_FAILED {
            used.append("wtimeout", true);
        }
        let error = DocumentBuf::new()
            .with("code", failure.code().0)
            .with("codeName", failure.code().name().as_str())
            .with("errmsg", failure.message())
            .with("errInfo", &used.with("writeConcern", &concern));
        let mut writer = Writer::new(out);
        let code = Some(ValueRef::Int32(failure.code().0));
        if let Some(command) = crate::commands::find(request.name()) {
            // The reply to a failed command has its own labels.
            if DocumentRef::trusted(reply).get("errorLabels").is_none() {
                write_labels(&mut writer, &error_labels::of_write_concern_error(code, command, request));
            }
        }
        let (mut is_written, fields) = (false, DocumentRef::trusted(reply));
        for field in fields {
            if field.name == "ok" {
                writer.append("writeConcernError", &error);
                is_written = true;
            }
            writer.append(field.name, field.value);
        }
        debug_assert!(is_written, "a reply has a field 'ok'");
        writer.end();
    }

    /// The write concern of a command that names none, as errors show it.
    pub(crate) fn default_concern(&self) -> DocumentBuf {
        match self.default_concerns.set().and_then(|set| set.write) {
            Some(set) => set.with("provenance", "customDefault"),
            None => DocumentBuf::new().with("w", "majority").with("wtimeout", 0).with("provenance", "implicitDefault"),
        }
    }
}

/// The implied default write concern of a set: one member if the set has arbiters and its other voters are no more than
/// a majority of all voters; otherwise a majority.
pub(crate) fn implied_by(members: &[Listed]) -> Replicas {
    let voters = members.iter().filter(|listed| listed.is_to_vote());
    let arbiters = voters.clone().filter(|listed| listed.arbiter).count();
    let voters = voters.count();
    if arbiters > 0 && voters - arbiters <= voters / 2 + 1 { Replicas::Own } else { Replicas::Majority }
}

/// Why all members of the set together do not meet a need.
fn unmet(set: &ReplicaSet, need: &Need) -> Option<Failure> {
    let member = set.member();
    match need {
        Need::Majority => None,
        Need::Members(needed, _) => member.check_count(*needed).err(),
        Need::Tagged(tagged, _) => member.check_tagged(tagged).err(),
    }
}

fn too_few() -> Failure {
    Failure::new(ErrorCode::UNSATISFIABLE_WRITE_CONCERN, "Not enough data-bearing nodes")
}

fn late(code: ErrorCode) -> Failure {
    let message = match code {
        ErrorCode::WRITE_CONCERN_FAILED => "waiting for replication timed out",
        _ => "operation exceeded time limit",
    };
    Failure::new(code, message)
}
