//! Ctrl-C ends a run in an orderly way; pressed twice, or if that takes long, at once.

use crate::{embedded, exit_status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long a tool may take to end in order. Its record for `--resume` is correct at every moment.
pub const TOOL_GRACE: Duration = Duration::from_millis(800);
/// How long the lab may take to write its report and to remove what it created.
pub const LAB_GRACE: Duration = Duration::from_secs(5);

/// A flag that SIGINT and SIGTERM set. A process that still runs `grace` later ends at once.
pub fn on_signal(grace: Duration) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // Without a handler the kernel ends the process on a signal.
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            flag.store(true, Ordering::Relaxed);
            eprintln!("\nbunko: stopping; once more stops at once");
            tokio::select! {
                _ = interrupt.recv() => {},
                _ = terminate.recv() => {},
                () = tokio::time::sleep(grace) => eprintln!("bunko: the work takes too long to end: stopped at once"),
            }
            embedded::kill_all();
            std::process::exit(exit_status::INTERRUPTED_TOOL.number.into());
        });
    });
    stop
}
