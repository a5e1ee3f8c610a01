//! All integration tests of the crate, as modules of one program.

mod memory_agrees;
mod memory_limit;
mod rules_agree;
mod scripts;
