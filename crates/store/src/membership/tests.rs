//! Tests over an engine that records its calls.

mod commit_points;
mod roles;
mod terms;
mod votes;
