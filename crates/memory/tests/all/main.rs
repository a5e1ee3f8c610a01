//! All integration tests of the crate, as modules of one program.

mod memory;
mod model;
mod store;
