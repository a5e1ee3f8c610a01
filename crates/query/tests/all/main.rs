//! All integration tests of the crate, as modules of one program.

mod concurrent_writes;
mod estimates;
mod intersections;
mod long_keys;
mod planning_steps;
mod plans_agree;
mod samples;
mod scripts;
mod temporary;
