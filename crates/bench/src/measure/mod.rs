//! Measures one load: generator, seconds, the server's side, judgement.

mod collector;
mod loop_use;
mod pauses;
mod recorder;
mod sampler;
mod set;
mod transfer;

pub(crate) use loop_use::LoopUse;
pub(crate) use set::{WatchedSet, watch_set};
pub(crate) use transfer::{MeasuredTransfer, measure_transfer};

use crate::BenchError;
use crate::clock;
use crate::judge::{self, Evidence};
use crate::observer::{Observer, Pace, Tick};
use crate::operation::{Assignment, Budget, Effect, Moves, OperationSettings, SessionUse};
use crate::server::Probe;
use bunko_client::load::{Load, LoadFigures};
use bunko_host::{CpuQuota, MachineCpu};
use bunko_report::result::{Finding, Measurement, OperationPart, ServerSample};
use bunko_statistics::LatencyHistogram;
use collector::Collector;
use pauses::PauseWatch;
use recorder::{Answered, Recorder, Second};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const TICK: Duration = Duration::from_secs(1);

/// The load and its conditions.
pub(crate) struct Task<'a> {
    pub operation: &'a OperationSettings,
    pub sessions: SessionUse,
    pub assignment: Assignment<'a>,
    /// Maximum number of requests that are made.
    pub requests: Option<u64>,
    /// Requests per second over all threads; `None` in a closed loop.
    pub offered_rate: Option<f64>,
}

/// A load's figures before counts and contents have been verified.
pub(crate) struct Measured {
    pub measurement: Measurement,
    pub acknowledges: bool,
}

/// Runs a load without measuring it, as warm-up. All replies have arrived when this returns.
pub(crate) fn warm_up(load: &mut Load, task: &Task<'_>) -> Result<(), BenchError> {
    let (sender, _receiver) = mpsc::channel();
    let mut recorders = recorders(load, task, &sender)?;
    load.run(&mut recorders)?;
    Ok(())
}

/// Runs and measures a load.
pub(crate) fn measure(
    load: &mut Load,
    task: &Task<'_>,
    probe: &mut Probe,
    observer: &mut dyn Observer,
) -> Result<Measured, BenchError> {
    let (sender, receiver) = mpsc::channel();
    let mut recorders = recorders(load, task, &sender)?;
    drop(sender);
    let over = sampler::Over::default();
    let duration = load.options_mut().duration;
    let before = Before::read(probe);
    let sleepers = PauseWatch::begin();
    let (figures, samples, collected) = std::thread::scope(|scope| {
        let sampled = scope.spawn(|| sampler::sample(probe, &over));
        let generated = scope.spawn(|| {
            let figures = load.run(&mut recorders);
            recorders.iter_mut().for_each(Recorder::finish);
            let parts: Vec<_> = recorders.iter_mut().map(|recorder| std::mem::take(&mut recorder.parts)).collect();
            // The last sender is dropped with them, which tells the collector that all seconds have arrived.
            drop(recorders);
            figures.map(|figures| (figures, parts))
        });
        let collected = collect(&receiver, &Progress { duration, requests: task.requests }, observer);
        let figures = generated.join().expect("the generator does not panic");
        over.announce();
        (figures, sampled.join().expect("the sampler does not panic"), collected)
    });
    sleepers.stop();
    let (figures, parts) = figures?;
    Ok(before.finish(task, &figures, collected, &parts, ServerSide { samples, probe }, sleepers))
}

fn recorders(load: &Load, task: &Task<'_>, seconds: &mpsc::Sender<Second>) -> Result<Vec<Recorder>, BenchError> {
    let threads = load.threads() as u64;
    let budget = Arc::new(Budget::new(task.requests.unwrap_or(u64::MAX)));
    let origin = Arc::new(OnceLock::new());
    let operation = task.operation.operation();
    let parts = match task.operation {
        OperationSettings::Mixed(mix) => mix.parts.len(),
        _ => 0,
    };
    let answered = if task.acknowledges() { Answered::Yes } else { Answered::No };
    let recorder = |thread: u64| {
        let assignment = Assignment { stream: task.assignment.stream * threads + thread, ..task.assignment };
        let started = operation.start(&assignment);
        let requests = started.and_then(|requests| task.sessions.around(requests, assignment.reply_mode()));
        let requests = requests.map_err(|detail| BenchError::Option { name: "set", detail })?;
        Ok(Recorder::new(requests, &budget, &origin, answered, parts, seconds.clone()))
    };
    (0..threads).map(recorder).collect()
}

impl Task<'_> {
    /// Whether every request is answered.
    fn acknowledges(&self) -> bool {
        let always = !self.operation.operation().effects().iter().any(Effect::obeys_write_concern);
        always || self.assignment.write_concern.expects_reply()
    }
}

/// Length of a run, for its remaining time.
struct Progress {
    duration: Option<Duration>,
    requests: Option<u64>,
}

impl Progress {
    fn remaining(&self, elapsed: Duration, requests: u64) -> Option<Duration> {
        if let Some(duration) = self.duration {
            return Some(duration.saturating_sub(elapsed));
        }
        let wanted = self.requests.filter(|&wanted| wanted < u64::MAX && requests > 0)?;
        Some(elapsed.mul_f64(wanted.saturating_sub(requests) as f64 / requests as f64))
    }
}

/// Collects seconds until the last thread is done; shows progress meanwhile.
fn collect(
    receiver: &Receiver<Second>,
    progress: &Progress,
    observer: &mut dyn Observer,
) -> (Collector, Option<String>) {
    let (mut collector, mut first_error) = (Collector::default(), None);
    let started = clock::now();
    let mut next_tick = started + TICK;
    loop {
        match receiver.recv_timeout(next_tick.saturating_duration_since(clock::now())) {
            Ok(mut second) => {
                first_error = first_error.or(second.first_error.take());
                collector.add(&second);
            }
            Err(RecvTimeoutError::Timeout) => {
                next_tick += TICK;
                let elapsed = clock::since(started);
                let (rate, latency) = collector.latest().map_or((0, None), |(rate, latency)| (rate, Some(latency)));
                observer.tick(&Tick {
                    elapsed,
                    pace: Pace::Requests(rate),
                    p99_us: latency.and_then(|latency| latency.summary().p99_us),
                    remaining: progress.remaining(elapsed, collector.requests()),
                });
            }
            Err(RecvTimeoutError::Disconnected) => return (collector, first_error),
        }
    }
}

/// Samples of the server during the load, and the probe for more.
struct ServerSide<'p> {
    samples: Vec<ServerSample>,
    probe: &'p mut Probe,
}

/// Differences between the readings before the load and after it.
struct Since {
    /// The reading after the load.
    process: Option<bunko_host::ProcessReading>,
    server_cpu: Option<Duration>,
    throttled: Duration,
    machine: Option<MachineCpu>,
    journal_syncs: Option<u64>,
}

/// Readings before the load.
struct Before {
    process: Option<bunko_host::ProcessReading>,
    status: Option<crate::server::StatusReading>,
    quota: Option<CpuQuota>,
    machine: Option<MachineCpu>,
    loop_use: Option<LoopUse>,
}

impl Before {
    fn read(probe: &mut Probe) -> Self {
        Self {
            status: probe.status(),
            process: probe.process(),
            quota: CpuQuota::read(),
            machine: MachineCpu::read(),
            loop_use: probe.loop_device().cloned().map(LoopUse::begin),
        }
    }

    /// Reads everything again.
    fn since(&self, probe: &mut Probe) -> Since {
        let process = probe.process();
        let server_cpu = process.as_ref().zip(self.process.as_ref()).map(|(now, before)| now.since(before).cpu);
        let throttled =
            CpuQuota::read().zip(self.quota).map(|(now, before)| now.throttled.saturating_sub(before.throttled));
        let machine = MachineCpu::read().zip(self.machine).map(|(now, before)| now.since(before));
        let journal_syncs = match (probe.status(), &self.status) {
            (Some(now), Some(before)) => now.journal_syncs_since(before),
            _ => None,
        };
        Since { process, server_cpu, throttled: throttled.unwrap_or_default(), machine, journal_syncs }
    }

    fn finish(
        self,
        task: &Task<'_>,
        figures: &LoadFigures,
        (collector, first_error): (Collector, Option<String>),
        parts: &[Vec<LatencyHistogram>],
        ServerSide { samples: server, probe }: ServerSide<'_>,
        sleepers: PauseWatch,
    ) -> Measured {
        let Since { process, server_cpu, throttled, machine, journal_syncs } = self.since(probe);
        // Last of all readings, because the sleepers may take 20 ms to stop.
        let pauses = sleepers.end();
        let sums = collector.sums();
        let latency = sums.latency.summary();
        let elapsed_seconds = figures.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let achieved_rate = sums.requests as f64 / elapsed_seconds;
        let intervals = collector.intervals(elapsed_seconds);
        let p999_trend = bunko_report::p999_trend(&intervals);
        let mut findings = judge::judge(&Evidence {
            errors: sums.errors,
            first_error,
            elapsed: figures.elapsed,
            threads: figures.threads,
            generator_cpu: figures.generator_cpu,
            generator_waited: figures.generator_waited,
            generator_queued: figures.generator_queued,
            throttled,
            server_cpu,
            machine,
            offered_rate: task.offered_rate,
            achieved_rate,
            intervals: &intervals,
            latency: &latency,
            pauses: pauses.as_ref(),
            has_natural_end: task.requests.is_some(),
        });
        findings.extend(self.loop_use.map(|loop_use| Finding::LoopDevice(loop_use.end())));
        let moves_documents = task.operation.operation().moves() == Moves::WholeDocuments;
        let document_bytes = sums.documents * task.assignment.dataset.document_bytes() as u64;
        let measurement = Measurement {
            requests: sums.requests,
            documents: sums.documents,
            document_bytes: moves_documents.then_some(document_bytes),
            errors: sums.errors,
            begun_anew: sums.begun_anew,
            elapsed_seconds,
            documents_per_second: sums.documents as f64 / elapsed_seconds,
            offered_rate: task.offered_rate,
            achieved_rate,
            latency,
            histogram: sums.latency.encode(),
            pauses,
            parts: named_parts(task.operation, parts),
            intervals,
            server,
            server_cpu_seconds: server_cpu.map(|cpu| cpu.as_secs_f64()),
            server_resident_bytes: process.map(|process| process.resident_bytes),
            journal_syncs,
            settling: None,
            p999_trend,
            generator_cpu_seconds: figures.generator_cpu.as_secs_f64(),
            generator_threads: figures.threads,
            transfer: None,
            set: None,
            cache: String::new(),
            verified_documents: 0,
            findings,
        };
        Measured { measurement, acknowledges: task.acknowledges() }
    }
}

/// Results of each part of a mix, over all threads.
fn named_parts(operation: &OperationSettings, threads: &[Vec<LatencyHistogram>]) -> Vec<OperationPart> {
    let OperationSettings::Mixed(mix) = operation else { return Vec::new() };
    let part = |(place, part): (usize, &crate::operation::MixedPart)| {
        let mut latency = LatencyHistogram::default();
        threads.iter().filter_map(|parts| parts.get(place)).for_each(|of_thread| latency.merge(of_thread));
        OperationPart {
            operation: part.operation.name().to_owned(),
            requests: latency.len(),
            latency: latency.summary(),
            histogram: latency.encode(),
        }
    };
    mix.parts.iter().enumerate().map(part).collect()
}
