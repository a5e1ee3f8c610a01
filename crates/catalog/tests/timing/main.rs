//! Tests that compare times. They are not part of the binary `all`, whose tests run at the same time: here each test
//! runs alone.

mod lag;
mod many_collections;
#[path = "../all/opened/mod.rs"]
#[allow(dead_code, reason = "the binary `all` uses the rest")]
mod opened;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test of this binary runs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
