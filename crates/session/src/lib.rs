//! The state of clients' work that outlives a command or is shared between commands: sessions and their transactions,
//! running operations, and open cursors. The crate runs no command itself: `command` passes it the facts in a command's
//! entry, the operation, and the user.
#![forbid(unsafe_code)]

pub mod awaiting;
pub mod cursors;
pub mod error_labels;
mod halt;
pub mod operations;
pub mod options;
pub mod sessions;
pub mod transactions;
pub mod write_lock;

pub use halt::Halt;
