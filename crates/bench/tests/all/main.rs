//! All integration tests of the crate, as modules of one program.

mod documentation;
mod scenario_files;
