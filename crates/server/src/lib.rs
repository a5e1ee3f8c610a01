//! Sockets: reads frames, runs commands, writes replies.
//!
//! A connection is a task of an executor, and a short command runs on the thread that read it. A command that would
//! keep others waiting is run again on a thread of its own.
//!
//! **Invariant:** requests of one connection are answered in order.
//! **Invariant:** no reply leaves before its acknowledgement holds.
//! **Invariant:** no input of a client makes it panic, or grow without a stated limit.
#![forbid(unsafe_code)]

mod acknowledge;
mod admission;
mod backlog;
mod connection;
mod doorway;
mod execute;
mod executed;
mod executor;
mod first_bytes;
mod held_memory;
mod input;
mod legacy;
mod listener;
mod listening_sockets;
mod message_room;
mod newcomer;
mod rate_limit;
mod scratch;
mod socket;
mod stream;
mod tls;
mod unix_socket;
mod unread_replies;

pub use admission::AdmissionOptions;
pub use doorway::{Doorway, Entrance, doorway};
pub use listener::{Server, ServerOptions, Stopped};
pub use listening_sockets::{ListeningSockets, bind_listener};
pub use tls::{ClientCertificates, PlainClients, Tls, TlsOptions};
pub use unix_socket::UnixSocketOptions;
