//! Writes that flow control lets wait before they begin.

use crate::command_entry::Command;
use crate::connection::ClientConnection;
use crate::flow_control::Progress;
use crate::service::Service;
use bunko_bson::Writer;
use bunko_errors::Result;
use bunko_operation::Interruption as _;
use bunko_request::Request;
use bunko_request::facts::WriteConcernUse;
use bunko_session::awaiting::Await;
use bunko_session::operations::{Interruption, RunningOperation};
use bunko_session::options::GenericOptions;
use bunko_session::transactions::TransactionPart;
use std::sync::Arc;

impl Service {
    /// The wait of a write that must not begin yet, because the commit point is far behind.
    /// # Errors
    /// After the wait: the reason for which the operation must stop.
    pub(crate) fn slow_down(
        &self,
        (command, request): (&Command, &Request<'_>),
        connection: &mut ClientConnection,
        options: &GenericOptions,
        operation: &RunningOperation,
    ) -> Result<Option<Await>> {
        let until = options.max_time.map(|limit| operation.started() + limit);
        if connection.has_waited {
            return Interruption::of(operation, until).reason().map_or(Ok(None), Err);
        }
        let Some(members) = self.members() else { return Ok(None) };
        let lag_ms = members.commit_lag_ms();
        // The usual case, which is decided before the command's body is read.
        if !self.flow_control.may_wait(lag_ms) {
            return Ok(None);
        }
        let Some(target_ms) = self.parameters.target_lag_ms() else { return Ok(None) };
        let is_first = options.part.is_none_or(|part| part == TransactionPart::First);
        let is_write = command.write_concern != WriteConcernUse::Refused && command.writes(request.body);
        if !is_write || !is_first || connection.is_own() {
            return Ok(None);
        }
        let now = self.world.clock.now();
        let now_ms = self.uptime().as_millis() as u64;
        let wait = self.flow_control.wait(Progress { now_ms, lag_ms, lag_ms_allowed: target_ms });
        if wait.is_zero() {
            return Ok(None);
        }
        let ends = until.map_or(now + wait, |until| until.min(now + wait));
        let stop = Arc::clone(operation.stop_bell());
        let heard = stop.rings();
        if let Some(failure) = Interruption::of(operation, until).reason() {
            return Err(failure);
        }
        let wait = Await { news: self.flow_control.begin(wait), stop: stop.after(heard), until: ends, turn: None };
        operation.note_slowing();
        connection.has_waited = true;
        Ok(Some(wait))
    }

    /// Appends the section `flowControl` of `serverStatus`.
    pub(crate) fn write_flow_control(&self, out: &mut Writer<'_>) {
        let lag_ms = self.members().map_or(0, |members| members.commit_lag_ms());
        self.flow_control.write(lag_ms, self.parameters.target_lag_ms(), out);
    }
}
