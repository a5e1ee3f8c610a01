//! All integration tests of the crate, as modules of one program.

mod deep_pipelines;
mod huge_pipelines;
mod memory_agrees;
mod memory_limit;
mod rules_agree;
mod scripts;
