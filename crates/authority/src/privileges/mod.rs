//! The privileges that commands need, for all commands that need more than one action on one resource, and the client
//! that asks ([`Asker`]).
//!
//! Source: MongoDB manual 8.2, "Privilege Actions" and "Required Access" of each command.

pub mod administration;
mod asker;
pub mod collections;
mod localhost_exception;
pub mod pipelines;
mod request;
pub mod users;
pub mod writes;

pub use asker::Asker;
pub use request::{entries, has_on};
