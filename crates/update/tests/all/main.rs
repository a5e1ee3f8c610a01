//! All integration tests of the crate, as modules of one program.

mod large;
mod limits;
mod oracle;
mod scripts;
