//! Reports about a server that runs. [`check()`] says before a move what would not work, [`advise()`] which indexes are
//! missing or useless.
//!
//! The check rehearses the move on an empty server, the *rehearsal*. It creates there all collections, views, indexes,
//! roles and users of the other server, and runs there the operations that its profiler and log show, without documents.
//! A refusal of the rehearsal would come after the move as well, in the same words. So there is no list of supported
//! features that could be wrong.
//!
//! The advice comes from the same operations, from the counters of indexes, and from samples of documents.
//!
//! **Invariant:** the server is only read.
//! **Invariant:** a list that the server refused to show is reported as unknown, and never counts as fine.
#![forbid(unsafe_code)]

pub mod advise;
pub mod check;
mod error;
mod operations;
mod peer;
mod printable;
mod shape;

pub use advise::advise;
pub use check::check;
pub use error::InspectionError;
