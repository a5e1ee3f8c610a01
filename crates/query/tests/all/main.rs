//! All integration tests of the crate, as modules of one program.

mod concurrent_writes;
mod estimates;
mod found;
mod hostile_filters;
mod intersections;
mod later_states;
mod long_keys;
mod planning_limits;
mod planning_steps;
mod plans_agree;
mod reading_ahead;
mod samples;
mod scripts;
mod temporary;
