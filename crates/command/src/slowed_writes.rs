//! Writes that flow control lets wait before they begin.

use crate::command_entry::Command;
use crate::connection::ClientConnection;
use crate::flow_control::Progress;
use crate::service::Service;
use bunko_bson::Writer;
use bunko_operation::Interruption as _;
use bunko_request::Request;
use bunko_request::facts::WriteConcernUse;
use bunko_session::Halt;
use bunko_session::awaiting::Await;
use bunko_session::operations::{Interruption, RunningOperation};
use bunko_session::options::GenericOptions;
use bunko_session::transactions::TransactionPart;
use std::sync::Arc;

impl Service {
    /// Lets a write wait while the commit point is far behind.
    /// # Errors
    /// [`Halt::Awaits`] before the wait, during which the connection keeps the operation; after it the reason for which
    /// the operation must stop.
    pub(crate) fn hold_back(
        &self,
        (command, request): (&Command, &Request<'_>),
        connection: &mut ClientConnection,
        options: &GenericOptions,
        operation: RunningOperation,
    ) -> Result<RunningOperation, Halt> {
        let until = options.max_time.map(|limit| operation.started() + limit);
        if connection.has_waited {
            let reason = Interruption::of(&operation, until).reason();
            return reason.map_or(Ok(operation), |failure| Err(failure.into()));
        }
        let Some(members) = self.members() else { return Ok(operation) };
        let target_ms = self.parameters.target_lag_ms();
        let lag_ms = members.commit_lag_ms();
        let is_slowed = self.flow_control.may_wait(lag_ms);
        let is_first = options.part.is_none_or(|part| part == TransactionPart::First);
        let is_write = command.write_concern != WriteConcernUse::Refused && command.writes(request.body);
        if !is_slowed || !is_write || !is_first || connection.is_own() {
            return Ok(operation);
        }
        let Some(target_ms) = target_ms else { return Ok(operation) };
        let now = self.world.clock.now();
        let now_ms = self.uptime().as_millis() as u64;
        let wait = self.flow_control.wait(Progress { now_ms, lag_ms, lag_ms_allowed: target_ms });
        if wait.is_zero() {
            return Ok(operation);
        }
        let ends = until.map_or(now + wait, |until| until.min(now + wait));
        let stop = Arc::clone(operation.stop_bell());
        let heard = stop.rings();
        if let Some(failure) = Interruption::of(&operation, until).reason() {
            return Err(failure.into());
        }
        let halt = Await { news: self.flow_control.begin(wait), stop: stop.after(heard), until: ends, turn: None };
        connection.hold_back(operation);
        Err(Halt::Awaits(Box::new(halt)))
    }

    /// Appends the section `flowControl` of `serverStatus`.
    pub(crate) fn write_flow_control(&self, out: &mut Writer<'_>) {
        let lag_ms = self.members().map_or(0, |members| members.commit_lag_ms());
        self.flow_control.write(lag_ms, self.parameters.target_lag_ms(), out);
    }
}
