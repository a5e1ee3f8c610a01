//! Tools that tests share: shell-syntax documents, script runner, parts of the handbook, crash harness, data
//! directories, orders of strings, sleeping threads, waits for conditions, processor time, numbers that follow from a seed.
#![forbid(unsafe_code)]

pub mod collators;
pub mod cpu_time;
pub mod directory;
pub mod handbook;
pub mod patience;
pub mod process;
pub mod random;
pub mod script;
pub mod shell;
pub mod sleeps;
