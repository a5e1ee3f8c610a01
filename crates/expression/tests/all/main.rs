//! All integration tests of the crate, as modules of one program.

mod interruption;
mod limits;
mod scripts;
