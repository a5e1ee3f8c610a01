//! What a run tells while it runs.

use bunko_report::result::{Run, Step};
use std::time::Duration;

/// Somebody who watches a run.
pub trait Observer {
    /// A step begins; `number` of `of` over all repetitions, targets and variants.
    fn begin(&mut self, step: &StepName<'_>, number: usize, of: usize);

    /// A second has passed.
    fn tick(&mut self, tick: &Tick);

    /// A step is done.
    fn end(&mut self, step: &Step, run: &Run);

    /// Something that is not a step goes on: file allocation, waiting for other workers.
    fn note(&mut self, text: &str);
}

/// A step in words.
pub struct StepName<'a> {
    /// The target's label.
    pub target: &'a str,
    /// The swept settings.
    pub variant: &'a [(String, String)],
    /// The phase.
    pub phase: &'a str,
    /// Sockets.
    pub connections: usize,
    /// From 1.
    pub repetition: u32,
}

/// The state of a running step.
pub struct Tick {
    /// Since the starting signal.
    pub elapsed: Duration,
    /// Of the last second.
    pub pace: Pace,
    /// Of the last second.
    pub p99_us: Option<f64>,
    /// Until the end, where it can be foreseen.
    pub remaining: Option<Duration>,
}

/// What was done in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Requests that were answered.
    Requests(u64),
    /// Documents that were dumped or restored.
    Documents(u64),
}

/// Watches nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn begin(&mut self, _step: &StepName<'_>, _number: usize, _of: usize) {}
    fn tick(&mut self, _tick: &Tick) {}
    fn end(&mut self, _step: &Step, _run: &Run) {}
    fn note(&mut self, _text: &str) {}
}
