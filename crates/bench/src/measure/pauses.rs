//! Measures how late this machine wakes sleeping threads, during a load or a tool.

use bunko_host::{SleepPriority as Priority, Sleeper, Slept, usable_processors};
use bunko_report::result::{MachinePauses, SleepPriority};
use bunko_statistics::LatencyHistogram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

/// A sleeping thread on each processor. They are stopped when it is dropped.
pub(super) struct PauseWatch {
    stop: Arc<AtomicBool>,
    sleepers: Vec<JoinHandle<Option<Watched>>>,
}

/// Result of one sleeper.
struct Watched {
    priority: Priority,
    slept: Slept,
    milliseconds: LatencyHistogram,
}

impl PauseWatch {
    /// Begins to watch, and returns when all sleepers sleep. A processor on which no thread can be started is not
    /// watched.
    pub fn begin() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (awake, all_asleep) = mpsc::channel::<()>();
        let watch = |processor: usize| {
            let (stop, awake) = (Arc::clone(&stop), awake.clone());
            let watch = move || {
                let sleeper = Sleeper::on(processor)?;
                let (priority, mut milliseconds) = (sleeper.priority(), LatencyHistogram::default());
                drop(awake);
                let slept = sleeper.sleep(&stop, |late| milliseconds.record(late));
                Some(Watched { priority, slept, milliseconds })
            };
            Builder::new().name(format!("pauses-{processor}")).spawn(watch).ok()
        };
        let sleepers = usable_processors().into_iter().filter_map(watch).collect();
        drop(awake);
        // No message is ever sent: the wait ends when the last sender is dropped.
        let _ = all_asleep.recv();
        Self { stop, sleepers }
    }

    /// Tells the sleepers to stop; later pauses do not count.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The pauses that were noticed; `None` if no sleeper ran.
    pub fn end(mut self) -> Option<MachinePauses> {
        self.stop();
        let sleepers = std::mem::take(&mut self.sleepers).into_iter();
        let watched = sleepers.filter_map(|sleeper| sleeper.join().expect("a sleeper does not panic"));
        sum(&watched.collect::<Vec<_>>())
    }
}

impl Drop for PauseWatch {
    fn drop(&mut self) {
        self.stop();
    }
}

fn sum(watched: &[Watched]) -> Option<MachinePauses> {
    let priority = |watched: &Watched| match watched.priority {
        Priority::RealTime => SleepPriority::RealTime,
        Priority::Ordinary => SleepPriority::Ordinary,
    };
    let mut milliseconds = LatencyHistogram::default();
    for sleeper in watched {
        milliseconds.merge(&sleeper.milliseconds);
    }
    Some(MachinePauses::new(
        watched.len(),
        watched.iter().map(priority).min()?,
        watched.iter().map(|sleeper| sleeper.slept.wake_ups).sum(),
        watched.iter().map(|sleeper| sleeper.slept.cpu.as_secs_f64()).sum(),
        &milliseconds,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_report::result::lateness;
    use std::time::Duration;

    #[test]
    fn every_processor_is_watched() {
        let watch = PauseWatch::begin();
        std::thread::sleep(Duration::from_millis(100));
        let Some(pauses) = watch.end() else {
            eprintln!("SKIPPED: neither real-time priority nor scheduler statistics");
            return;
        };
        assert_eq!(pauses.threads, usable_processors().len());
        let milliseconds = pauses.lateness.samples / pauses.threads as u64;
        assert!((50..10_000).contains(&milliseconds), "{pauses:?}");
        assert!(pauses.wake_ups > 0 && pauses.wake_ups <= pauses.lateness.samples && pauses.cpu_seconds > 0.0);
        let decoded = LatencyHistogram::decode(&pauses.histogram).expect("encoded");
        assert_eq!(lateness(&decoded, pauses.wake_ups), pauses.lateness);
    }

    #[test]
    fn a_sum_is_worth_no_more_than_its_least_part() {
        let watched = |priority, late_us| {
            let mut milliseconds = LatencyHistogram::default();
            milliseconds.record(Duration::from_micros(late_us));
            Watched { priority, slept: Slept { wake_ups: 1, cpu: Duration::from_millis(1) }, milliseconds }
        };
        let pauses = sum(&[watched(Priority::RealTime, 100), watched(Priority::Ordinary, 20_000)]).expect("two");
        assert_eq!((pauses.threads, pauses.wake_ups, pauses.cpu_seconds), (2, 2, 0.002));
        assert_eq!(pauses.priority, SleepPriority::Ordinary);
        assert!(pauses.lateness.samples == 2 && pauses.lateness.max_us.is_some_and(|us| us > 19_900.0), "{pauses:?}");
        assert_eq!(sum(&[]), None);
    }
}
