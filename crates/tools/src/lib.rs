//! Dump and restore: parallel, resumable, in the classic tools' formats.
//!
//! **Invariant:** servers are reached only through [`Link`], so any server that speaks the protocol works; documents
//! remain raw bytes from one end to the other.
#![forbid(unsafe_code)]

mod cursor;
pub mod dump;
mod error;
mod link;
pub mod namespaces;
pub mod progress;
pub mod restore;
mod retry;
pub mod tune;
mod unfinished;
pub mod verify;

pub use error::{Interrupted, ToolError};
pub use link::{Absent, Command, Link, Remote, Server};
