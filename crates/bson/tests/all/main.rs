//! All integration tests of the crate, as modules of one program.

mod extended_json;
mod properties;
