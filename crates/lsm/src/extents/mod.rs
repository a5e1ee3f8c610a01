//! Compressed homes for documents whose segment of the log is full.
//!
//! An extent takes over the live documents of a few segments. A document keeps the name that it got when it was
//! written, its place in the log: which extent took over that segment is looked up, and where in it by a search. So
//! moving a document changes no tree, and a reader with an old location finds it as well.

mod block;
mod file;
mod registry;
mod walk;

pub(crate) use block::{Block, Held};
pub(crate) use file::{Contents, Extent, ExtentWriter};
pub(crate) use registry::Registry;
pub(crate) use walk::ExtentWalk;
