//! The failpoints that a command meets.

use super::Invocation;
use bunko_errors::Result;
use bunko_fail_points::{FailPoints, InjectedError, RunningCommand};
use bunko_request::facts::FailPointUse;
use bunko_session::Halt;

impl Invocation<'_> {
    /// Applies failpoints to the command before it begins.
    /// # Errors
    /// As [`FailPoints::meet_command`]; [`Halt::TooLong`] on a thread that serves other connections.
    pub(crate) fn meet_failpoints(&mut self) -> Result<(), Halt> {
        if self.command.fail_point == FailPointUse::Exempt {
            return Ok(());
        }
        // A command that halts as too long on a shared thread would run again on its own thread, and would meet the
        // failpoints twice.
        self.refuse_if_long(true)?;
        self.meet(self.options.max_time.is_some(), FailPoints::meet_command)
    }

    /// Applies failpoints to a `getMore` that has taken its cursor.
    /// # Errors
    /// As [`FailPoints::meet_get_more`].
    pub(crate) fn meet_failpoints_of_get_more(&mut self, has_time_limit: bool) -> Result<(), Halt> {
        self.meet(has_time_limit, FailPoints::meet_get_more)
    }

    fn meet(
        &mut self,
        has_time_limit: bool,
        meet: fn(&FailPoints, &RunningCommand<'_>) -> Result<Option<InjectedError>, Halt>,
    ) -> Result<(), Halt> {
        let met = RunningCommand {
            entry: self.command,
            request: &self.request,
            application: self.connection.application(),
            has_time_limit,
            check: &|| self.operation().check(),
        };
        if let Some(injected) = meet(&self.service.fail_points, &met)? {
            self.injected = Some(injected);
        }
        Ok(())
    }
}
