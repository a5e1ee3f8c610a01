//! Tests that every engine of `bunko_engines::ENGINES` must pass. They walk that table, so that a new engine is one
//! crate and one line there, and nothing here.
//!
//! - `tests/all/properties.rs`: random operations against a [`model`].
//! - `tests/all/scripts.rs`: the scripts in `scripts/`, once with the engine as the store's own and once as a guest.
//! - `tests/all/concurrency.rs`: readers concurrent with writers, checkpoints and compactions.
//! - `tests/all/limits.rs`: engines that are full.
//! - `tests/all/damage.rs`: missing files, files cut short, flipped bytes.
//! - `tests/all/images.rs`: images that are made, received and installed.
//! - `tests/all/recovery.rs`: closing, crashing, and a log of many segments.
//! - `tests/all/checked_in.rs`: data directories that earlier versions of the engines' crates made.
//!
//! `BUNKO_CONFORMANCE_ENGINE=lsm` runs one engine alone, `BUNKO_CONFORMANCE_CASES=1000` more random cases of each.
//!
//! **Invariant:** no code of this crate names an engine.
#![forbid(unsafe_code)]

pub mod comparison;
pub mod directory;
pub mod document;
pub mod model;
pub mod roster;
pub mod subject;
