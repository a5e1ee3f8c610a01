//! The steps before a command runs: it is found and admitted, its operation begins, and its times and concerns are
//! settled.

use crate::command_entry::Command;
use crate::commands;
use crate::connection::ClientConnection;
use crate::invocation::Invocation;
use crate::known_commands;
use crate::service::Service;
use crate::transaction_targets::check_targets;
use bunko_authority::{EXTERNAL_DATABASE, Shown};
use bunko_catalog::{StateAsked, check_database};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::Request;
use bunko_request::facts::TransactionUse;
use bunko_session::Halt;
use bunko_session::awaiting::Await;
use bunko_session::awaiting::{Heartbeat, ParkedCursor};
use bunko_session::operations::{Beginning, RunningOperation, at_shutdown};
use bunko_session::options::GenericOptions;
use bunko_session::sessions::SessionId;
use bunko_session::transactions::is_inside;

impl Service {
    /// Finds a command and checks whether the client may run it here and now.
    pub(super) fn admit(
        &self,
        connection: &mut ClientConnection,
        request: &Request<'_>,
    ) -> Result<(&'static Command, GenericOptions), Halt> {
        let name = request.name();
        let Some(command) = commands::find(name) else {
            self.counters.note_refused(None);
            return Err(no_such_command(name).into());
        };
        if command.databases.is_of_tests() && !self.fail_points.are_allowed() {
            return Err(no_such_command(name).into());
        }
        let mut options = check(self, connection, command, request)
            .inspect_err(|_| self.counters.note_refused(Some(command.name)))?;
        if self.operations.are_interrupted() {
            return Err(at_shutdown().into());
        }
        self.check_primary(command, request)?;
        if let Some(named) = options.named_session {
            options.session = self.use_session(connection, named)?;
        }
        Ok((command, options))
    }

    /// Begins the operation of an admitted command, or goes on with the one that waited or was held back.
    pub(super) fn begin_operation(
        &self,
        connection: &mut ClientConnection,
        (command, request): (&'static Command, &Request<'_>),
        session: Option<SessionId>,
        (parked, held_back): (Option<(RunningOperation, ParkedCursor)>, Option<RunningOperation>),
    ) -> Result<(RunningOperation, Option<ParkedCursor>)> {
        let shown = Shown::of_admitted(command, request);
        let beginning = Beginning { entry: command, database: request.database, command: shown.as_ref(), session };
        let begun = match parked {
            Some((operation, cursor)) => (operation, Some(cursor)),
            None => {
                let begin = || connection.begin_operation(&self.operations, &beginning);
                (held_back.unwrap_or_else(begin), None)
            }
        };
        if self.authority.access.is_enforced() && connection.has_outdated_user(&self.authority) {
            // A revocation after the command was admitted did not find the operation, which had not begun.
            check(self, connection, command, request)?;
        }
        Ok(begun)
    }

    /// The wait that must end before the operation begins: for a time to come, or for secondaries that are far behind. Fills in
    /// the default concerns.
    pub(super) fn wait_before(
        &self,
        options: &mut GenericOptions,
        asked: (&Command, &Request<'_>),
        connection: &mut ClientConnection,
        operation: &RunningOperation,
    ) -> Result<Option<Await>> {
        match self.settle_times_and_concerns(options, asked, connection, operation)? {
            None => self.slow_down(asked, connection, options, operation),
            wait => Ok(wait),
        }
    }

    /// In a set: takes over the cluster time, waits until a given time has come, and fills in the default concerns.
    ///
    /// Returns the wait that must end before the command begins; the command is then tried again.
    fn settle_times_and_concerns(
        &self,
        options: &mut GenericOptions,
        (command, request): (&Command, &Request<'_>),
        connection: &ClientConnection,
        operation: &RunningOperation,
    ) -> Result<Option<Await>> {
        let Some(set) = &self.replica_set else { return Ok(None) };
        if !options.has_write_concern {
            options.write_concern.is_journaled = self.default_concerns.is_journaled();
            options.write_concern.timeout_ms = self.default_concerns.timeout_ms();
        }
        options.cluster_time.map_or(Ok(()), |told| set.cluster_time.hear(told, self.world.now_ms()))?;
        let told = match options.read_concern.state {
            Some(StateAsked::At(time)) => {
                if time > self.catalog.store().newest_time_max() {
                    // Writes that come before that time has passed get a later timestamp.
                    self.catalog.keep_present_state()?;
                }
                Some(("atClusterTime", time))
            }
            _ => options.read_concern.after.map(|time| ("afterClusterTime", time)),
        };
        if let Some((name, time)) = told {
            let wait = self.wait_until_applied(time, options, connection, operation)?;
            if wait.is_some() {
                return Ok(wait);
            }
            set.cluster_time.wait_for(name, time)?;
        }
        self.settle_concerns(set, options, (command, request.body))?;
        Ok(None)
    }
}

/// Begins to count the command for `$queryStats`, lets failpoints act, takes the session of a transaction's statement, and chooses the state that the command reads.
pub(super) fn enter(invocation: &mut Invocation<'_>) -> Result<(), Halt> {
    invocation.begin_statistics();
    // A command that resumes after a wait has already passed the failpoints.
    let goes_on = invocation.parked.is_some() || invocation.heartbeat == Heartbeat::Waited;
    if invocation.service.fail_points.is_any_on() && !goes_on {
        invocation.meet_failpoints()?;
    }
    if let Some(number) = invocation.options.transaction_number {
        invocation.check_out_session(number)?;
        check_targets(invocation)?;
    }
    if !invocation.is_of_transaction() {
        invocation.connection.haste.set(false);
    }
    if let Some(asked) = invocation.state_asked() {
        invocation.read_past(asked)?;
    }
    Ok(())
}

fn no_such_command(name: &str) -> Failure {
    if known_commands::is_known(name) {
        return Failure::not_supported_yet(&format!("the command '{name}'"));
    }
    Failure::new(ErrorCode::COMMAND_NOT_FOUND, format!("no such command: '{name}'"))
}

/// Checks the command's database, the client's privileges and the command's fields.
fn check(
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
