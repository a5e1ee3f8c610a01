//! All integration tests of the crate, as modules of one program.

mod long_queries;
mod postings_agree;
