//! Progress reports of a run.

use bunko_report::result::{Run, Step};
use std::time::Duration;

/// Receives a run's progress.
pub trait Observer {
    /// A step begins; it is step `number` of `of` over all repetitions, targets and variants.
    fn begin(&mut self, step: &StepName<'_>, number: usize, of: usize);

    /// A second has passed.
    fn tick(&mut self, tick: &Tick);

    /// A step is done.
    fn end(&mut self, step: &Step, run: &Run);

    /// Work outside steps: file allocation, waiting for other workers.
    fn note(&mut self, text: &str);
}

/// A step's name.
pub struct StepName<'a> {
    /// The target's label.
    pub target: &'a str,
    /// The swept settings.
    pub variant: &'a [(String, String)],
    /// The phase.
    pub phase: &'a str,
    /// Number of sockets.
    pub connections: usize,
    /// Counted from 1.
    pub repetition: u32,
}

/// The state of a running step.
pub struct Tick {
    /// Time since the starting signal.
    pub elapsed: Duration,
    /// Pace of the last second.
    pub pace: Pace,
    /// 99th percentile of latency in the last second.
    pub p99_us: Option<f64>,
    /// Time until the end, if it is known.
    pub remaining: Option<Duration>,
}

/// Work done in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Requests that were answered.
    Requests(u64),
    /// Documents that were dumped or restored.
    Documents(u64),
}

/// An observer that ignores all reports.
pub struct Unobserved;

impl Observer for Unobserved {
    fn begin(&mut self, _step: &StepName<'_>, _number: usize, _of: usize) {}
    fn tick(&mut self, _tick: &Tick) {}
    fn end(&mut self, _step: &Step, _run: &Run) {}
    fn note(&mut self, _text: &str) {}
}
