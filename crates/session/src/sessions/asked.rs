//! The transaction number of a command, and whether its session allows it.

use super::id::{SessionId, text};
use super::standing::{Held, Standing};
use crate::transactions::TransactionPart;
use bunko_errors::{ErrorCode, Failure, Result};

/// The number under which a command takes its session, and its part in the transaction.
#[derive(Clone, Copy, Debug)]
pub struct NumberedCommand {
    /// The transaction number.
    pub number: i64,
    /// The command's part in the transaction; `None` for a retryable write.
    pub part: Option<TransactionPart>,
}

impl NumberedCommand {
    /// Checks whether the session allows this command under its number.
    /// # Errors
    /// `TransactionTooOld`, `NoSuchTransaction`, `TransactionCommitted`, `IncompleteTransactionHistory` and
    /// `ConflictingOperationInProgress` if the number does not allow this command.
    pub(super) fn judge(self, session: SessionId, held: &Held) -> Result<()> {
        let Self { number, part } = self;
        let newest = held.newest();
        if let Some(newer) = newest.filter(|newest| number < *newest) {
            return Err(self.too_old(session, newer));
        }
        let is_of_transaction = held.standing.number() == Some(number);
        match part {
            None if is_of_transaction => {
                let message = "Cannot retry a retryable write that has been converted into a transaction";
                Err(Failure::new(ErrorCode::INCOMPLETE_TRANSACTION_HISTORY, message))
            }
            None => Ok(()),
            Some(TransactionPart::First) if newest == Some(number) => {
                // MongoDB lets only a router begin a transaction again under its number, whatever the outcome of the
                // first attempt.
                let message = format!(
                    "Only servers in a sharded cluster can start a new transaction at the active transaction number \
                     {number} of session {}",
                    text(session)
                );
                Err(Failure::new(ErrorCode::CONFLICTING_OPERATION_IN_PROGRESS, message))
            }
            Some(TransactionPart::First) => Ok(()),
            Some(part) if is_of_transaction => goes_on(number, part, &held.standing),
            Some(_) => {
                let active = newest.unwrap_or(-1);
                let message = format!(
                    "Given transaction number {number} does not match any in-progress transactions. The active transaction \
                     number is {active}"
                );
                Err(Failure::new(ErrorCode::NO_SUCH_TRANSACTION, message))
            }
        }
    }

    fn too_old(self, session: SessionId, newer: i64) -> Failure {
        let (number, session) = (self.number, text(session));
        let message = match self.part {
            None => format!(
                "Retryable write with txnNumber {number} is prohibited on session {session} because a newer retryable write \
                 with txnNumber {newer} has already started on this session."
            ),
            Some(_) => format!(
                "Cannot start transaction with {{ txnNumber: {number} }} on session {session} because a newer transaction \
                 with txnNumber {newer} has already started on this session."
            ),
        };
        Failure::new(ErrorCode::TRANSACTION_TOO_OLD, message)
    }
}

/// Checks whether a transaction accepts a command that is not its first.
fn goes_on(number: i64, part: TransactionPart, standing: &Standing) -> Result<()> {
    match standing {
        Standing::InProgress { .. } | Standing::None => Ok(()),
        Standing::Committed { .. } if part == TransactionPart::Commit => Ok(()),
        Standing::Committed { .. } => {
            let message = format!("Transaction with {{ txnNumber: {number} }} has been committed.");
            Err(Failure::new(ErrorCode::TRANSACTION_COMMITTED, message))
        }
        Standing::Aborted { .. } => {
            let message = format!("Transaction with {{ txnNumber: {number} }} has been aborted.");
            Err(Failure::new(ErrorCode::NO_SUCH_TRANSACTION, message))
        }
    }
}
