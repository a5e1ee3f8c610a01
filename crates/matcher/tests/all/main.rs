//! All integration tests of the crate, as modules of one program.

mod one_walk_agrees;
mod scripts;
mod simplified_agrees;
