//! The proofs of the agreement: a simulator that runs sets through faults from one seed, an exhaustive search of small
//! sets, scenarios that tell one story each, and planted bugs.
//!
//! - `SEED=17 cargo test -p bunko-replica --test all simulator -- --nocapture` runs one seed and prints what happens;
//! - `SEEDS=10000 cargo test -p bunko-replica --test all simulator` runs more seeds;
//! - `STATES=5000000 cargo test -p bunko-replica --test all exhaustive` visits more states.

mod checks;
mod disk;
mod exhaustive;
mod planted;
mod random;
mod scenarios;
mod simulator;
mod speed;
mod world;

/// A number from the environment.
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a number"))
}
