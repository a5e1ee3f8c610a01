//! Cursors between two `getMore` commands. `store` holds them.
//!
//! A cursor ends:
//! - with its last batch, or a failure of a `getMore` (`finish`);
//! - by `killCursors`, or when the client does not take a batch, or loses the rights to it (`kill`);
//! - with its session or its transaction (`end_sessions`, `end_transaction`);
//! - when no client has used it for `cursorTimeoutMillis` (`purge`);
//! - when waiting cursors hold too much memory (`idle`), or make engines keep too much (`room`). `closed` remembers
//!   which of these two reasons it was.
//!
//! The drop of a collection or index ends no cursor here: the next `getMore` finds it out and fails (`Footing` of
//! `query`).

mod closed;
mod idle;
mod open_cursor;
mod room;
mod shares;
mod source;
mod spooled;
mod store;
mod tally;
mod told;

pub use open_cursor::OpenCursor;
pub use source::{BatchLimits, CursorSource, NoDocuments};
pub use store::{CursorStore, IdleCursor, Killed};
pub use tally::QueryTally;
pub use told::{CursorOrigin, CursorProgress, CursorTold};
