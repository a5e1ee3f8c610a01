//! Checkpoints: the log synced, the view flushed, the watermark noted - in that order.

use crate::manifest::Manifest;
use crate::statistics::live_segments;
use crate::{Lsn, Result, Store};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How far the background thread steps back when the cores are busy.
const BACKGROUND_NICENESS: i32 = 10;

/// When to checkpoint, and what the last one found.
#[derive(Default)]
pub(crate) struct Checkpointer {
    requests: Arc<Requests>,
    /// One checkpoint or compaction at a time.
    running: Mutex<Retiring>,
    count: AtomicU64,
    last_ms: AtomicU64,
}

/// What the background thread waits on; it must not keep the store alive.
#[derive(Default)]
struct Requests {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_asked: bool,
    is_closing: bool,
}

/// Segments without a live document at the last checkpoint; a view older than `since` may still read them.
#[derive(Default)]
struct Retiring {
    since: Lsn,
    numbers: Vec<u64>,
}

impl Checkpointer {
    pub fn start(store: &Arc<Store>) -> std::thread::JoinHandle<()> {
        let weak = Arc::downgrade(store);
        let requests = Arc::clone(&store.checkpointer.requests);
        let interval = store.options.checkpoint_interval;
        std::thread::Builder::new()
            .name("checkpoint".into())
            .spawn(move || {
                // Clients wait for the other threads, nobody waits for this one; where it is refused nothing is lost.
                let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), BACKGROUND_NICENESS);
                while requests.wait(interval) {
                    let Some(store) = weak.upgrade() else { return };
                    if let Err(error) = store.checkpoint().and_then(|()| store.maintain()) {
                        (store.options.on_background_error)("checkpoint", &error);
                        // A full disk empties slowly: do not spin.
                        std::thread::sleep(Duration::from_secs(1));
                    }
                }
            })
            .expect("a thread can be started")
    }

    /// Asks for a checkpoint soon.
    pub fn ask(&self) {
        let mut state = self.requests.state.lock();
        if !state.is_asked {
            state.is_asked = true;
            self.requests.changed.notify_one();
        }
    }

    pub fn close(&self) {
        self.requests.state.lock().is_closing = true;
        self.requests.changed.notify_one();
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub fn last_ms(&self) -> u64 {
        self.last_ms.load(Ordering::Relaxed)
    }
}

impl Requests {
    /// Waits for the interval or for somebody who asks; false when closing.
    fn wait(&self, interval: Duration) -> bool {
        let deadline = Instant::now() + interval;
        let mut state = self.state.lock();
        while !state.is_asked && !state.is_closing {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.is_asked = false;
        !state.is_closing
    }
}

impl Store {
    /// Makes the present state durable in the engine, so that recovery starts here.
    pub fn checkpoint(&self) -> Result<()> {
        let mut retiring = self.checkpointer.running.lock();
        let started = Instant::now();
        let (watermark, keyspaces) = {
            let _no_batch_in_flight = self.gate.write();
            let watermark = self.watermark.visible();
            self.engine.begin_checkpoint(watermark)?;
            (watermark, self.statistics.copy())
        };
        // A view must never point past the durable log.
        self.log.sync_blocking(watermark)?;
        let oldest = self.oldest_view();
        self.engine.finish_checkpoint(oldest)?;
        let live = live_segments(&keyspaces);
        Manifest { engine: self.engine.name().to_owned(), watermark, keyspaces }.write(&self.directory.path)?;
        self.retire_segments(&mut retiring, &live, watermark, oldest)?;
        self.checkpointer.count.fetch_add(1, Ordering::Relaxed);
        self.checkpointer.last_ms.store(started.elapsed().as_millis() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Lets the engine compact.
    fn maintain(&self) -> Result<()> {
        let _not_beside_a_checkpoint = self.checkpointer.running.lock();
        self.engine.maintain(self.oldest_view())
    }

    /// Gives up what was without a live document at the last checkpoint already and no open view can reach.
    fn retire_segments(
        &self,
        retiring: &mut Retiring,
        live: &std::collections::BTreeSet<u64>,
        watermark: Lsn,
        oldest: Lsn,
    ) -> Result<()> {
        if oldest >= retiring.since {
            self.log.retire(&retiring.numbers)?;
        }
        let current = crate::log::segment_of(watermark.0);
        retiring.numbers = self
            .log
            .segment_numbers()
            .into_iter()
            .filter(|number| *number < current && !live.contains(number))
            .collect();
        retiring.since = watermark;
        Ok(())
    }
}
