//! Ports for HTTP, beside the port of the database's clients.
//!
//! A port has one thread with a runtime of its own, so its requests never take a thread from the database's clients. It
//! hands each request to its [`Site`].
//!
//! **Invariant:** connections, the bytes of a header, and the time for a header and for a connection have limits, so
//! clients that send nothing, or too much, hold no place for ever.
#![forbid(unsafe_code)]

mod password_checks;
mod port;

pub use password_checks::PasswordChecks;
pub use port::{Arrival, Port, PortOptions, Site};
