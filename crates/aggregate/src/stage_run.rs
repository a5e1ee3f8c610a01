//! Statistics of a stage's run, for `explain`.

use crate::DocumentStream;
use bunko_bson::DocumentBuf;
use bunko_errors::Result;
use bunko_operation::Clock;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of one stage.
#[derive(Debug, Default)]
pub struct StageRun {
    returned: AtomicU64,
    nanoseconds: AtomicU64,
    facts: Mutex<DocumentBuf>,
}

impl StageRun {
    /// Facts beyond the counts, once the stage has ended.
    pub fn facts(&self) -> DocumentBuf {
        self.facts.lock().clone()
    }

    /// Number of documents returned.
    pub fn returned(&self) -> u64 {
        self.returned.load(Ordering::Relaxed)
    }

    /// Adds statistics to a stage's description: its facts once it has ended, the number of documents returned, and the
    /// time for this stage and those below it.
    pub fn describe(&self, stage: &mut DocumentBuf) {
        let elapsed = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed));
        stage
            .extend(self.facts().as_ref())
            .append("nReturned", self.returned() as i64)
            .append("executionTimeMillisEstimate", elapsed.as_millis() as i64);
    }
}

/// Passes on a stage's documents, and counts them.
pub(crate) struct Counted {
    pub input: Box<dyn DocumentStream>,
    pub run: Arc<StageRun>,
    pub clock: Clock,
}

impl DocumentStream for Counted {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let began = self.clock.now();
        let document = self.input.next()?;
        self.run.nanoseconds.fetch_add(self.clock.since(began).as_nanos() as u64, Ordering::Relaxed);
        self.run.returned.fetch_add(u64::from(document.is_some()), Ordering::Relaxed);
        Ok(document)
    }

    fn take_count(&mut self) -> Option<u64> {
        let count = self.input.take_count()?;
        self.run.returned.fetch_add(count, Ordering::Relaxed);
        Some(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.input.describe_run(&mut self.run.facts.lock());
    }
}
