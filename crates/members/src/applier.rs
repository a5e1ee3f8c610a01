//! The thread `apply`: on a secondary, applies the records that are committed. A delayed member applies them so many
//! seconds after they were written.

use crate::clock::{WAIT_MAX, wait_for_ring};
use crate::core::Core;
use bunko_store::{Lsn, Role};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The pause after records could not be applied.
const PAUSE: Duration = Duration::from_millis(500);

/// The outcome of the last look for records to apply, so that the thread rests until another look can find more.
#[derive(Debug, Default)]
struct Looked {
    /// The commit point of that look, if all records below it are applied or belong to a chain that ends above it.
    up_to: Lsn,
    /// When the next record was written, in milliseconds since 1970, if it was too new for a delayed member.
    too_new: Option<u64>,
}

impl Looked {
    /// Whether a look can find more. A member with a delay applies what was written until `until_ms`.
    fn is_outdated(&self, committed: Lsn, until_ms: Option<u64>) -> bool {
        match self.too_new.zip(until_ms) {
            Some((written_ms, until_ms)) => written_ms <= until_ms,
            None => committed > self.up_to,
        }
    }
}

/// Applies records until the member ends.
pub(crate) fn run(core: &Core, is_over: &AtomicBool) {
    let bell = core.store.log_bell();
    let mut looked = Looked::default();
    while !is_over.load(Ordering::Acquire) {
        let heard = bell.rings();
        let applied = core.store.visible_end();
        let (committed, until) = (core.store.committed_part_end(), core.applies_until());
        if core.store.role() == Role::Secondary
            && applied < core.committed()
            && looked.is_outdated(committed, until.map(|(until_ms, _)| until_ms))
            && let Some(_change) = core.begin_change()
        {
            let outcome = match until {
                None => core.catalog.apply_committed().map(|_| None),
                Some((until_ms, least)) => core.catalog.apply_committed_until(until_ms, least),
            };
            match outcome {
                Ok(too_new) => {
                    let up_to = if too_new.is_none() { committed } else { looked.up_to };
                    looked = Looked { up_to, too_new };
                    core.show_again();
                }
                Err(failure) if core.store.role() == Role::Secondary => {
                    tracing::error!(target: "REPL", id = 310, ctx = "apply", error = %failure, "Committed records cannot be applied, and are tried again");
                    thread::sleep(PAUSE);
                }
                Err(_) => {}
            }
            if core.store.visible_end() > applied {
                core.end_reads_that_wait();
                continue;
            }
        }
        wait_for_ring(&core.clock, bell, heard, core.clock.now() + WAIT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_repeated_when_it_can_find_more() {
        let chain_is_open = Looked { up_to: Lsn(20), too_new: None };
        assert!(!chain_is_open.is_outdated(Lsn(20), None) && chain_is_open.is_outdated(Lsn(21), None));
        assert!(!chain_is_open.is_outdated(Lsn(20), Some(u64::MAX)) && chain_is_open.is_outdated(Lsn(21), Some(0)));
        let delayed = Looked { up_to: Lsn(10), too_new: Some(1000) };
        assert!(!delayed.is_outdated(Lsn(30), Some(999)) && delayed.is_outdated(Lsn(30), Some(1000)));
        // The configuration has taken the delay away.
        assert!(delayed.is_outdated(Lsn(30), None));
    }
}
