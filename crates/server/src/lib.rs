//! Sockets: reads frames, runs commands, writes replies.
//!
//! One thread and one single-threaded runtime per core; a connection stays with the thread that it was given to, so
//! nothing on the way of a short command is shared but the store. A command that would keep others waiting is run
//! again on a thread of its own.
//!
//! **Invariant:** requests of one connection are answered in order.
//! **Invariant:** no reply leaves before its acknowledgement holds.
#![forbid(unsafe_code)]

mod acknowledge;
mod connection;
mod execute;
mod input;
mod legacy;
mod listener;
mod socket;
mod unix_socket;
mod worker;

pub use listener::{Server, ServerOptions};
pub use unix_socket::UnixSocketOptions;
