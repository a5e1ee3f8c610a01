//! Dump and restore, import and export: parallel, resumable, in the classic tools' formats. Copies from server to server.
//!
//! **Invariant:** servers are reached only through [`Link`], so any server that speaks the protocol works; documents
//! remain raw bytes from one end to the other.
#![forbid(unsafe_code)]

pub mod copy;
mod cursor;
pub mod dump;
mod error;
pub mod export;
pub mod import;
mod link;
pub mod namespaces;
mod pipe;
pub mod progress;
pub mod restore;
mod retry;
pub mod tune;
mod unfinished;
pub mod verify;

pub use error::{Interrupted, ToolError};
pub use link::{Absent, Command, Link, Remote, Server};
pub use pipe::PipeEnd;
pub use retry::is_transient;
