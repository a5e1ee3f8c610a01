//! Ctrl-C ends a run in an orderly way; pressed twice, at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// What a shell reports for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// A flag that SIGINT and SIGTERM set.
pub fn on_signal() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // Without signals the run ends as it always did: by the kernel.
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            loop {
                tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
                if flag.swap(true, Ordering::Relaxed) {
                    std::process::exit(INTERRUPTED);
                }
                eprintln!("\nbunko: stopping; once more stops at once");
            }
        });
    });
    stop
}
