//! Merges the engines' sorted files, concurrently with all other work.

use crate::background::{self, WorkBell};
use crate::{Result, Store};
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Wakes the thread that merges.
#[derive(Default)]
pub(crate) struct Merger {
    bell: Arc<WorkBell>,
    /// Held during a merge: one runs at a time.
    pub(crate) running: Mutex<()>,
}

impl Merger {
    /// Starts the thread that merges after each checkpoint. It is not the checkpoint's thread, because a merge can take
    /// longer than the time to the next checkpoint.
    pub fn start(store: &Arc<Store>) -> JoinHandle<()> {
        let interval = store.options.checkpoint_interval;
        background::start(store, "merge", &store.merger.bell, interval, |store, _| store.merge_engines())
    }

    /// Wakes the thread soon.
    pub fn ask(&self) {
        self.bell.ring();
    }

    pub fn close(&self) {
        self.bell.close();
    }
}

impl Store {
    fn merge_engines(&self) -> Result<()> {
        let _running = self.merger.running.lock();
        self.engines.all().iter().try_for_each(|engine| engine.merge(&|| self.oldest_view()))
    }

    /// Makes the engines rewrite all of their sorted files.
    pub(crate) fn compact_engines(&self) -> Result<()> {
        let _running = self.merger.running.lock();
        self.engines.all().iter().try_for_each(|engine| engine.compact(self.oldest_view()))
    }
}
