//! Files that stay as they are: no checkpoint, no merge and no reclaim goes on, so that they can be copied.

use crate::Store;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// While it lives, nothing in the background changes a file of the data directory. Writes do: whoever wants none holds
/// them back himself.
#[derive(Debug)]
pub struct StillFiles {
    /// The thread that holds the locks ends once this is gone.
    release: Option<Sender<()>>,
    holder: Option<JoinHandle<()>>,
}

impl StillFiles {
    /// Waits for what goes on in the background to end, and lets nothing begin.
    pub fn hold(store: &Arc<Store>) -> Self {
        let (ready, is_ready) = channel();
        let (release, released) = channel();
        let store = Arc::clone(store);
        // A lock is given back by the thread that took it, and the one that asks serves others meanwhile.
        let hold = move || {
            let _held = store.hold_background_work();
            let _ = ready.send(());
            // Nobody sends anything: this ends when the other end goes.
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
