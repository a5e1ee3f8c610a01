//! What tests share: shell-syntax documents, script runner, crash harness.
#![forbid(unsafe_code)]

pub mod process;
pub mod script;
pub mod shell;
