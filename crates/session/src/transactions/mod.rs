//! Transactions of clients: the commands that belong to one, and its fate after each of them.
//!
//! ```text
//!          startTransaction              commitTransaction
//! (none) ───────────────────► in progress ────────────────► committed
//!                                  │ abortTransaction, any failure, the next number of the session,
//!                                  │ the end of its time, the end of its session
//!                                  └──────────────────────► aborted
//! ```
//! A session has at most one ([`crate::sessions`]). Its effect on data is in `bunko_catalog::Transaction`.
//!
//! A command's entry in the table says whether a transaction may contain it (`TransactionUse`); `TransactionFields`
//! judges the command's fields. `CheckedOut::take` gives the command its session; the first command of a transaction
//! puts the transaction into it. The transaction is the unit of work of each of its commands' operations. Dropping the
//! `CheckedOut` aborts the transaction, unless the reply has shown that no statement failed (`fate_by_reply`), or the
//! command runs again elsewhere (`Fate::AsBefore`).
//!
//! [`Transactions`] has the open ones, for `currentOp`, for commands that end sessions, and for
//! `TransactionContext::abort_expired`, which runs each second. A transaction in which a command runs is aborted when
//! that command ends. A statement that met another transaction's claim waits for its turn without a thread: the first
//! statement of a transaction runs again then; a later statement's transaction is aborted already, and only the reply
//! waits.
//! Source: MongoDB manual 8.2, "Transactions"; MongoDB's specification of transactions for drivers.

mod admission;
mod description;
mod ending;
mod open;
mod table;

pub use admission::{TransactionFields, TransactionPart, check_read, is_inside, not_supported};
pub use description::{Surroundings, describe_idle, describe_running};
pub use ending::{Fate, TransactionContext, fate_by_reply};
pub use open::Open;
pub use table::{Counts, Entry, Transactions};

use std::time::Duration;

/// How long a statement that conflicts with another transaction waits for its turn. The first statement of a
/// transaction then runs again. A later statement has failed already and only its reply waits, because an earlier retry
/// of the transaction would fail too.
pub const CONFLICT_WAIT_MAX: Duration = Duration::from_millis(100);
/// How often the first statement of a transaction tries again before its turn: the transaction whose turn it is may
/// have failed, and its client may never retry that transaction.
pub const CONFLICT_LOOK: Duration = Duration::from_millis(20);
