//! Keeps files unchanged so that they can be copied: no checkpoint, merge or reclaim runs meanwhile.

use crate::Store;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// While it lives, no background work changes a file of the data directory. Writes still append to the log; a caller
/// that must exclude them too has to hold them back itself.
#[derive(Debug)]
pub struct StillFiles {
    /// The thread that holds the locks ends once this is dropped.
    release: Option<Sender<()>>,
    holder: Option<JoinHandle<()>>,
}

impl StillFiles {
    /// Waits for running background work to end, and keeps more from beginning.
    pub fn hold(store: &Arc<Store>) -> Self {
        let (ready, is_ready) = channel();
        let (release, released) = channel();
        let store = Arc::clone(store);
        // A lock must be released by the thread that took it, and the calling thread serves other requests meanwhile.
        let hold = move || {
            let _held = store.hold_background_work();
            let _ = ready.send(());
            // No value is ever sent: this returns when the sender is dropped.
            let _ = released.recv();
        };
        let holder = std::thread::Builder::new().name("still-files".into()).spawn(hold);
        let holder = holder.expect("a thread can be started");
        let _ = is_ready.recv();
        Self { release: Some(release), holder: Some(holder) }
    }
}

impl Drop for StillFiles {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(holder) = self.holder.take() {
            let _ = holder.join();
        }
    }
}
