//! `autoCompact`: a thread that checks at intervals whether collections hold much free space, and then gives it back.

use bunko_catalog::Catalog;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_pipelines::CollectionStatistics;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two checks.
const INTERVAL: Duration = Duration::from_mins(1);

/// The options of `autoCompact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Free bytes of a collection that make compaction worthwhile.
    pub free_bytes_min: u64,
    pub rounds: Rounds,
}

/// How often the thread checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounds {
    Once,
    Always,
}

/// The thread, if there is one.
#[derive(Debug, Default)]
pub(crate) struct AutoCompaction {
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    settings: Settings,
    control: Arc<Control>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Control {
    is_ended: Mutex<bool>,
    changed: Condvar,
}

impl AutoCompaction {
    /// Starts the thread, unless it runs with these settings already.
    /// # Errors
    /// `AlreadyInitialized` if it runs with other settings, `ObjectIsBusy` if it was told to end and still runs.
    pub fn start(&self, catalog: &Arc<Catalog>, settings: Settings) -> Result<()> {
        let mut running = self.running.lock();
        if let Some(before) = running.as_ref().filter(|running| !running.thread.is_finished()) {
            if *before.control.is_ended.lock() {
                let message = "Background compaction was disabled and has not ended yet";
                return Err(Failure::new(ErrorCode::OBJECT_IS_BUSY, message));
            }
            if before.settings == settings {
                return Ok(());
            }
            let message = "Cannot reconfigure background compaction while it is running; disable it first";
            return Err(Failure::new(ErrorCode::ALREADY_INITIALIZED, message));
        }
        let control = Arc::new(Control::default());
        let work = {
            let (catalog, control) = (Arc::clone(catalog), Arc::clone(&control));
            move || control.compact(&catalog, settings)
        };
        let thread = std::thread::Builder::new()
            .name("auto-compact".into())
            .spawn(work)
            .map_err(|error| Failure::new(ErrorCode::OPERATION_FAILED, format!("cannot start a thread: {error}")))?;
        *running = Some(Running { settings, control, thread });
        Ok(())
    }

    /// Tells the thread to end after its current step.
    pub fn stop(&self) {
        if let Some(running) = self.running.lock().as_ref() {
            running.control.end();
        }
    }

    /// Tells the thread to end, and waits for it.
    pub fn stop_and_wait(&self) {
        self.stop();
        let running = self.running.lock().take();
        if let Some(running) = running {
            let _ = running.thread.join();
        }
    }
}

impl Control {
    fn end(&self) {
        *self.is_ended.lock() = true;
        self.changed.notify_all();
    }

    fn compact(&self, catalog: &Catalog, settings: Settings) {
        loop {
            if is_worth_it(catalog, settings.free_bytes_min)
                && let Err(error) = catalog.store().reclaim_all(|| !*self.is_ended.lock())
            {
                tracing::error!(target: "STORAGE", id = 22435, ctx = "auto-compact", error = %error, "Background compaction failed and will be tried again");
            }
            let mut is_ended = self.is_ended.lock();
            if settings.rounds == Rounds::Once || *is_ended {
                return;
            }
            self.changed.wait_for(&mut is_ended, INTERVAL);
            if *is_ended {
                return;
            }
        }
    }
}

/// Whether any collection has at least `free_bytes_min` bytes of free space.
fn is_worth_it(catalog: &Catalog, free_bytes_min: u64) -> bool {
    let databases = catalog.databases();
    let mut collections = databases.iter().flat_map(|database| catalog.collections(database));
    collections.any(|collection| CollectionStatistics::of(&collection).free_bytes() >= free_bytes_min)
}
