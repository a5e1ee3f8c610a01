//! All integration tests of the crate, as modules of one program.

mod authentication;
mod fake;
mod load;
mod tls;
mod topology;
