//! Runs the scripts with each engine as the store's own, and as guest in a store of each other durable engine.

mod script;

use bunko_conformance::roster;
use bunko_engines::Entry;
use bunko_store::Survival;
use script::{Role, Script, roles};
use std::cell::Cell;

/// Runs the scripts of a directory with an engine in each of its roles. Their expected output is the same for all
/// roles.
fn run(directory: &str, entry: &'static Entry) {
    for role in roles(entry) {
        let cases = Cell::new(0);
        datadriven::walk(directory, |file| {
            let name = file.filename.clone();
            eprintln!("{} as {}: {name}", entry.name, if matches!(role, Role::Own) { "own" } else { "guest" });
            let mut script = Script::new(entry, role);
            file.run(|case| {
                cases.set(cases.get() + 1);
                script.run_case(case)
            });
        });
        // A mistyped directory must not pass. With `RUN`, the requested file may be in the other directory.
        assert!(cases.get() > 0 || std::env::var_os("RUN").is_some(), "no cases below {directory}");
    }
}

#[test]
fn every_engine() {
    roster::each_engine(|entry| run("scripts/every", entry));
}

#[test]
fn engines_that_outlive_a_restart_and_those_that_do_not() {
    roster::each_engine(|entry| match roster::survival(entry) {
        Survival::Durable => run("scripts/durable", entry),
        Survival::Volatile => run("scripts/volatile", entry),
    });
}
