//! From a request to a reply: finds the command, checks its fields, runs it, and writes its reply.
//!
//! [`Service::run`] takes these steps in this order; each may end with a failure.
//!
//! 1. The command is found in the table.
//! 2. `Service::admit` checks the database's name, the privileges, and then each field (`GenericOptions::parse`).
//! 3. A server that stops refuses everything, and a secondary refuses commands for the primary (`check_primary`).
//! 4. The session is used, and the operation begins: from here on, `currentOp` shows it and `killOp` ends it.
//! 5. In a set: the cluster time is taken over, waits for a given time end, and default concerns are filled in. A write
//!    waits if secondaries are far behind (`slow_down`).
//! 6. Failpoints act, a transaction number takes the session, and the lock of `fsync` is waited for.
//! 7. The command's own function runs (`Command::run`).
//! 8. The audit log, the counters and the profiler note the command; a write concern waits for other members.
//!
//! A command that halts (`Halt::TooLong`, `Halt::Awaits`) runs again from the first step, and finds what it parked.

mod admission;
mod attempt;
mod failure_reply;

pub use failure_reply::write_failure;
pub(crate) use failure_reply::write_labels;

use crate::acknowledgement::Acknowledgement;
use crate::connection::ClientConnection;
use crate::service::Service;
use bunko_operation::RunOn;
use bunko_request::Request;
use bunko_session::Halt;
use bunko_session::awaiting::FollowUp;
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
        if let Some(kept) = connection.unacknowledged.take() {
            // The command itself is over, so the next one on this connection may have to wait.
            connection.has_waited = false;
            return self.go_on_waiting(connection, kept, &request, out);
        }
        let start = out.len();
        let mut answer = Answer::default();
        let heartbeat = connection.heartbeat;
        let outcome = self.attempt(connection, request, run_on, out, &mut answer);
        if matches!(outcome, Ok(()) | Err(Halt::Failed(_))) {
            connection.has_waited = false;
        }
        match outcome {
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
                self.write_failed(failure, &request, out);
                Ok(answer)
            }
        }
    }
}
