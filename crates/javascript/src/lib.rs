//! Scripts of clients: `$where`, `$function`, `$accumulator`, `mapReduce`. QuickJS (crate `rquickjs`) runs them, within what
//! their operation may still do.
//!
//! An operation that has scripts has one engine, made for the first of them that is called: they share its global object,
//! as they do in MongoDB. A script is compiled once. It sees the documents that it is given, as MongoDB's scripts see
//! them (`prelude.js`), and nothing else: no file, no socket, no other operation.
//!
//! **Invariant:** a script runs on a thread of its operation's own, never on one that serves others ([`Scripts::admit`]).
//! **Invariant:** a script that has to stop stops: the engine asks the operation at every few thousand steps, whenever it
//! takes a large piece of memory, and before loops of its own.
//! **Invariant:** what a script does to the engine is nobody's business but its own operation's.
#![deny(unsafe_code)]

mod allocation;
mod engine;
mod from_script;
mod kit;
mod scripts;
mod source;
mod stored_functions;
mod to_script;

pub use scripts::{Function, Scripts};
pub use stored_functions::{StoredFunctions, StoredVisitor};
