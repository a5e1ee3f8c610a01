//! All integration tests of the crate, as modules of one program.

mod scripts;
mod sort_keys;
