//! What a stage did while its pipeline ran, for `explain`.

use crate::DocumentStream;
use bunko_bson::DocumentBuf;
use bunko_errors::Result;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counts of one stage.
#[derive(Debug, Default)]
pub struct StageRun {
    returned: AtomicU64,
    nanoseconds: AtomicU64,
    facts: Mutex<DocumentBuf>,
}

impl StageRun {
    /// Documents that came out of it.
    pub fn returned(&self) -> u64 {
        self.returned.load(Ordering::Relaxed)
    }

    /// What else it did, once it has ended.
    pub fn facts(&self) -> DocumentBuf {
        self.facts.lock().clone()
    }

    /// How long it and what is below it took.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }
}

/// A stage's documents, counted.
pub(crate) struct Counted {
    pub input: Box<dyn DocumentStream>,
    pub run: Arc<StageRun>,
}

impl DocumentStream for Counted {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let began = Instant::now();
        let document = self.input.next()?;
        self.run.nanoseconds.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.run.returned.fetch_add(u64::from(document.is_some()), Ordering::Relaxed);
        Ok(document)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.input.describe_run(&mut self.run.facts.lock());
    }
}
