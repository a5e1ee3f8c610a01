//! All integration tests of the crate, as modules of one program.

mod committed_reads;
mod engine_of_a_collection;
mod index_builds;
mod index_keys;
mod multikey;
mod opened;
mod secondary;
mod structure;
mod transactions;
