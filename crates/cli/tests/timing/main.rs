//! Tests that measure how long a server, a tool or the lab takes, or that disturb all others. They are not part of the
//! binary `all`, whose tests run at the same time: here each test runs alone.

mod bench_runs;
mod bystander;
mod grinder;
mod hostile_expressions;
mod hostile_pipelines;
#[path = "../all/lab/mod.rs"]
#[allow(dead_code, reason = "the binary `all` uses the rest")]
mod lab;
mod large_updates;
mod nothing_freezes;
#[path = "../all/peer/mod.rs"]
#[allow(dead_code, reason = "the binary `all` uses the rest")]
mod peer;
mod scripts_of_clients;
#[path = "../all/tool/mod.rs"]
#[allow(dead_code, reason = "the binary `all` uses the rest")]
mod tool;
mod unreachable;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test of this binary runs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
