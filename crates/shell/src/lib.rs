//! `bunko shell`: a JavaScript shell with mongosh's habits, for any server of the MongoDB protocol.
//!
//! QuickJS (crate `rquickjs`) runs the scripts in this process. The objects that scripts see (`db`, cursors,
//! `ObjectId`, `rs`, ...) are written in JavaScript, one file for each subject (`src/prelude`). Rust gives them a small
//! *host*: to send a command, to print, to read a file (`host.rs`). All calls are synchronous: a script waits for each
//! reply, so `await` before a call changes nothing.
//!
//! **Invariant:** the heap of scripts has a limit ([`Limits`]).
//! **Invariant:** Ctrl-C ends a script, and the operation that the server runs for it ([`Interruption`]).
//! **Invariant:** no password is printed or kept in the history.
#![deny(unsafe_code)]

mod address;
mod bounded_file;
mod completeness;
mod decode;
mod encode;
mod engine;
mod evaluation;
mod history;
mod host;
mod interruption;
mod line_editor;
mod links;
mod login;
mod output;
mod prelude;
mod run;
mod target;
mod terminal;
mod text;

pub use engine::Limits;
pub use interruption::{Interruption, Rung};
pub use login::Login;
pub use output::Output;
pub use run::{Shell, Start, Work};
pub use target::{DEFAULT_HOST, Target, at_local, is_script};
pub use terminal::{ask_at_terminal, ask_password};
