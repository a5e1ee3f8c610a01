//! Compressed files for documents whose log segment is full.
//!
//! An extent takes over the live documents of a few segments. A document keeps its location, which is its position in
//! the log at the time of the write: a lookup finds the extent that took over the segment, and a search finds the
//! document in it. So moving a document changes no tree, and a reader with an old location still finds it.
//!
//! ```text
//!  .tmp ──► synced and renamed ──► in the registry ──► in a durable manifest
//!       ──► replaced in the registry ──► no longer in a durable manifest ──► removed
//! ```
//! An extent that was staged for a bulk load is named by a log record before the registry has it.

mod block;
mod file;
mod registry;
mod walk;

pub(crate) use block::{Block, Held};
pub(crate) use file::{Contents, Extent, ExtentWriter};
pub(crate) use registry::Registry;
pub(crate) use walk::ExtentWalk;
