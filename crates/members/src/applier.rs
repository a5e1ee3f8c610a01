//! The thread `apply`: on a secondary, applies the records that are committed. A delayed member applies them so many
//! seconds after they were written.

use crate::clock::{WAIT_MAX, wait_for_ring};
use crate::core::Core;
use bunko_store::Role;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The pause after records could not be applied.
const PAUSE: Duration = Duration::from_millis(500);

/// Applies records until the member ends.
pub(crate) fn run(core: &Core, is_over: &AtomicBool) {
    let bell = core.store.log_bell();
    // When the record was written that was too new at the last look. Each look rings the bell, so it must not be repeated at
    // once.
    let mut too_new: Option<u64> = None;
    while !is_over.load(Ordering::Acquire) {
        let heard = bell.rings();
        let applied = core.store.visible_end();
        let until = core.applies_until();
        if core.store.role() == Role::Secondary
            && applied < core.committed()
            && too_new.zip(until).is_none_or(|(time_ms, (until_ms, _))| time_ms <= until_ms)
            && let Some(_change) = core.begin_change()
        {
            let outcome = match until {
                None => core.catalog.apply_committed().map(|_| None),
                Some((until_ms, least)) => core.catalog.apply_committed_until(until_ms, least),
            };
            too_new = None;
            match outcome {
                Ok(left) => {
                    too_new = left;
                    core.show_again();
                }
                Err(failure) if core.store.role() == Role::Secondary => {
                    tracing::error!(target: "REPL", id = 310, ctx = "apply", error = %failure, "Committed records cannot be applied, and are tried again");
                    thread::sleep(PAUSE);
                }
                Err(_) => {}
            }
            if core.store.visible_end() > applied {
                continue;
            }
        }
        wait_for_ring(&core.clock, bell, heard, core.clock.now() + WAIT_MAX);
    }
}
