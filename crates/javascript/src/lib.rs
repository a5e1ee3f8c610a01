//! Scripts of clients: `$where`, `$function`, `$accumulator`, `mapReduce`. QuickJS (crate `rquickjs`) runs them, in a
//! process that its operation has for itself.
//!
//! An operation that has scripts has one engine, made for the first of them that is called: they share its global
//! object, as they do in MongoDB. A script is compiled once. It sees the documents that it is given, as MongoDB's
//! scripts see them (`prelude.js`), and nothing else: no file, no socket, no other operation.
//!
//! A script may stay for hours inside one function of the engine that never asks whether to go on: `normalize`, a sort,
//! a proxy with many keys. So the engine runs in a worker (`worker.rs`), which can be killed whatever it does. The
//! server starts it from its own program ([`Workers`]), sends the calls there and waits (`client.rs`).
//!
//! `docs/decisions/001-script-processes.md` says why it is a process, and what a call costs.
//!
//! **Invariant:** only a thread of its own operation waits for a script, never a thread that serves other clients
//! ([`Scripts::admit`]).
//! **Invariant:** an operation that has to stop stops within moments, whatever its script does.
//! **Invariant:** a script that damages its engine or its process affects no other operation.
//! **Invariant:** no worker serves two operations, and none outlives the server.
#![deny(unsafe_code)]

mod allocation;
mod call;
mod client;
mod engine;
mod from_script;
mod interpreter_failure;
mod kit;
mod processes;
mod protocol;
mod scripts;
mod source;
mod stored_functions;
mod to_script;
mod worker;

pub use processes::{WORKER_BYTES, Workers};
pub use scripts::{Function, Scripts};
pub use stored_functions::{StoredFunctions, StoredVisitor};
pub use worker::{WORKER_ARGUMENT, work_for_server};
