//! Tests over an engine that records its calls.

mod commit_points;
mod formats;
mod roles;
mod terms;
mod votes;
