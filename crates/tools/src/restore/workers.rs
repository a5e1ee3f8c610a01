//! Adjusts the number of workers.

use super::adapt::{Backlog, Controller, INTERVAL, Observation};
use super::run::Run;
use super::worker;
use std::sync::atomic::Ordering;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// Initial number of links: a batch is sent on one while documents for the other are read.
const WORKERS_FIRST: usize = 2;
/// Maximum number of links, even if the options ask for more.
const WORKERS_MAX: usize = 64;
/// How often the main thread checks whether all workers have ended.
const POLL: Duration = Duration::from_millis(5);

/// Starts workers, adds more while that raises the rate, and returns once all have ended: the queue is closed and
/// empty, or an error stopped the restore.
pub(super) fn run_workers<'s, 'r: 's>(scope: &'s Scope<'s, '_>, run: &'r Run<'r>) {
    let (first, most) = how_many(run);
    let spawn = || {
        scope.spawn(move || {
            if let Err(error) = worker::work(run) {
                run.stop(error);
            }
        })
    };
    let mut workers: Vec<ScopedJoinHandle<'_, ()>> = (0..first).map(|_| spawn()).collect();
    let mut controller = Controller::new(first, most);
    let clock = run.progress.clock();
    let (mut watched, mut bytes_before) = (clock.now(), 0);
    while !workers.iter().all(ScopedJoinHandle::is_finished) {
        std::thread::sleep(POLL);
        if clock.since(watched) < INTERVAL || workers.iter().any(ScopedJoinHandle::is_finished) {
            continue;
        }
        let bytes = acknowledged_bytes(run);
        let backlog = if run.queue.is_empty() { Backlog::None } else { Backlog::Some };
        let observation = Observation { bytes: bytes - bytes_before, time: clock.since(watched), backlog };
        if controller.observe(observation) > workers.len() {
            workers.push(spawn());
        }
        (watched, bytes_before) = (clock.now(), bytes);
    }
}

fn how_many(run: &Run<'_>) -> (usize, usize) {
    match run.options.insertion_workers {
        Some(each) => {
            let collections = run.options.parallel_collections.get().min(run.targets.len()).max(1);
            let workers = each.get().saturating_mul(collections).min(WORKERS_MAX);
            (workers, workers)
        }
        None => (WORKERS_FIRST, (run.options.threads.get() * 2).clamp(WORKERS_FIRST, WORKERS_MAX)),
    }
}

fn acknowledged_bytes(run: &Run<'_>) -> u64 {
    run.targets.iter().map(|target| target.counts.bytes.load(Ordering::Relaxed)).sum()
}
