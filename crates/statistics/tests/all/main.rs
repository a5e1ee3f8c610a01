//! All integration tests of the crate, as modules of one program.

mod change_points;
mod level_or_rising;
mod merging;
mod noise;
mod same_or_slower;
mod steady_or_drifting;
