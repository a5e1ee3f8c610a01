//! All integration tests of the crate, as modules of one program.

mod process;
mod script;
