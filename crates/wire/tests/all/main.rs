//! All integration tests of the crate, as modules of one program.

mod frames;
mod mutation;
mod round_trip;
mod seeds;
