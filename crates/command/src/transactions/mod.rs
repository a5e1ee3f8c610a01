//! Transactions as clients know them: which commands belong to one, and what becomes of it with each.
//!
//! ```text
//!          startTransaction              commitTransaction
//! (none) ───────────────────► in progress ────────────────► committed
//!                                  │ abortTransaction, any failure, the next number of the session,
//!                                  │ the end of its time, the end of its session
//!                                  └──────────────────────► aborted
//! ```
//! A session has one at most ([`crate::sessions`]); what it does to data is `bunko_catalog::Transaction`.
//! Source: MongoDB manual 8.2, "Transactions"; MongoDB's specification of transactions for drivers.

mod admission;
mod description;
mod ending;
mod open;
mod targets;

pub(crate) use admission::{Part, TransactionFields, is_inside};
pub(crate) use description::{describe_idle, describe_running};
pub(crate) use ending::{Fate, fate_by_reply};
pub(crate) use open::{Entry, Open, Transactions};
pub(crate) use targets::{check_read, check_targets};

use std::time::Duration;

/// How long a statement that meets another transaction waits for its turn, of all who wait for the same. The first one of its
/// transaction begins anew then, and any other has failed already: it is its reply that waits, since to try again before would
/// be in vain.
pub(crate) const CONFLICT_WAIT_MAX: Duration = Duration::from_millis(100);
/// How often the first statement of a transaction tries again while it waits, though it is not its turn: a transaction that has
/// failed, and whose turn it is, may never be begun anew.
pub(crate) const CONFLICT_LOOK: Duration = Duration::from_millis(20);
