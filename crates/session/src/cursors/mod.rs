//! Cursors between two `getMore` commands.

mod closed;
mod idle;
mod open_cursor;
mod room;
mod shares;
mod source;
mod spooled;
mod store;
mod told;

pub use open_cursor::OpenCursor;
pub use source::{BatchLimits, CursorSource, NoDocuments};
pub use store::{CursorStore, IdleCursor, Killed};
pub use told::{CursorOrigin, CursorProgress, CursorTold};
