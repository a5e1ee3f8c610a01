//! What tests share: shell-syntax documents, script runner, crash harness, data directories.
#![forbid(unsafe_code)]

pub mod directory;
pub mod process;
pub mod script;
pub mod shell;
