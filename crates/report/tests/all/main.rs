//! All integration tests of the crate, as modules of one program.

mod compare;
#[path = "../../src/fixture/mod.rs"]
mod fixture;
mod history;
mod merge;
mod rendering;
mod steps;
