//! Measures a dump or restore: the tools' own counts, second by second, and the server's side.

use super::{Before, PauseWatch, Since, TICK, sampler};
use crate::clock;
use crate::observer::{Observer, Pace, Tick};
use crate::server::Probe;
use bunko_report::result::{ActivityTime, Ended, Finding, Interval, Measurement, TransferRecord};
use bunko_statistics::LatencyHistogram;
use bunko_tools::progress::{Activity, Progress, Snapshot};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// A transfer's figures and its result. The caller adds documents, bytes and errors.
pub(crate) struct MeasuredTransfer<T> {
    pub measurement: Measurement,
    pub returned: T,
    /// The tool's counts at the end.
    pub counted: Snapshot,
}

/// Runs `work` and measures it. It counts as one request, whose latency is the whole time.
pub(crate) fn measure_transfer<T: Send>(
    work: impl FnOnce(&Arc<Progress>) -> T + Send,
    probe: &mut Probe,
    observer: &mut dyn Observer,
) -> MeasuredTransfer<T> {
    let over = sampler::Over::default();
    let before = Before::read(probe);
    let tool_before = own_cpu();
    let sleepers = PauseWatch::begin();
    let progress = Arc::new(Progress::new(clock::MACHINE));
    let (done, is_done) = mpsc::channel::<()>();
    let (returned, elapsed, mut intervals, server) = std::thread::scope(|scope| {
        let sampled = scope.spawn(|| sampler::sample(probe, &over));
        let progress = &progress;
        let worked = scope.spawn(move || {
            let begun = clock::now();
            let returned = work(progress);
            let elapsed = clock::since(begun);
            // Dropping the sender ends `watch`.
            drop(done);
            (returned, elapsed)
        });
        let intervals = watch(progress, &is_done, observer);
        let (returned, elapsed) = worked.join().expect("a transfer does not panic");
        over.announce();
        (returned, elapsed, intervals, sampled.join().expect("the sampler does not panic"))
    });
    let own = own_cpu().saturating_sub(tool_before);
    sleepers.stop();
    let Since { process, server_cpu, journal_syncs, .. } = before.since(probe);
    let pauses = sleepers.end();
    // Sleepers are threads of this process, but not of the tool.
    let tool_seconds = own.as_secs_f64() - pauses.as_ref().map_or(0.0, |pauses| pauses.cpu_seconds);
    let counted = progress.snapshot();
    close(&mut intervals, &counted, elapsed);
    let elapsed_seconds = elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    let latency = one_request(elapsed);
    let on_loop = before.loop_use.map(|loop_use| Finding::LoopDevice(loop_use.end()));
    let findings = Finding::of_length(elapsed_seconds, Ended::ByItself).into_iter().chain(on_loop).collect();
    let measurement = Measurement {
        requests: 1,
        documents: 0,
        document_bytes: None,
        errors: 0,
        begun_anew: 0,
        elapsed_seconds,
        documents_per_second: 0.0,
        offered_rate: None,
        achieved_rate: elapsed_seconds.recip(),
        latency: latency.summary(),
        histogram: latency.encode(),
        pauses,
        parts: Vec::new(),
        intervals,
        server,
        server_cpu_seconds: server_cpu.map(|cpu| cpu.as_secs_f64()),
        server_resident_bytes: process.map(|process| process.resident_bytes),
        journal_syncs,
        settling: None,
        p999_trend: None,
        generator_cpu_seconds: tool_seconds.max(0.0),
        generator_threads: 1,
        transfer: Some(TransferRecord { archive_bytes: 0, spent: spent(&counted) }),
        set: None,
        cache: String::new(),
        verified_documents: 0,
        findings,
    };
    MeasuredTransfer { measurement, returned, counted }
}

/// User and system time of all threads of this process, including those that have ended. The tool's threads have ended
/// when it returns, and `/proc` gives their time only in ticks of 10 ms.
fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// One interval for each full second until the work is done.
fn watch(progress: &Progress, is_done: &mpsc::Receiver<()>, observer: &mut dyn Observer) -> Vec<Interval> {
    let (begun, mut earlier) = (clock::now(), progress.snapshot());
    let mut intervals: Vec<Interval> = Vec::new();
    let mut next_tick = begun + TICK;
    loop {
        match is_done.recv_timeout(next_tick.saturating_duration_since(clock::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return intervals,
        }
        next_tick += TICK;
        let now = progress.snapshot();
        let documents = now.documents().saturating_sub(earlier.documents());
        observer.tick(&Tick {
            elapsed: clock::since(begun),
            pace: Pace::Documents(documents),
            p99_us: None,
            remaining: now.remaining_time(&earlier),
        });
        intervals.push(interval(intervals.len(), 1.0, documents, &LatencyHistogram::default()));
        earlier = now;
    }
}

/// Adds the interval after the last full second, with the end of the only request.
fn close(intervals: &mut Vec<Interval>, counted: &Snapshot, elapsed: Duration) {
    let booked: u64 = intervals.iter().map(|interval| interval.documents).sum();
    let documents = counted.documents().saturating_sub(booked);
    let seconds = (elapsed.as_secs_f64() - intervals.len() as f64).clamp(f64::MIN_POSITIVE, 1.0);
    intervals.push(interval(intervals.len(), seconds, documents, &one_request(elapsed)));
}

fn interval(number: usize, seconds: f64, documents: u64, latency: &LatencyHistogram) -> Interval {
    Interval {
        at_seconds: number as f64,
        seconds,
        requests: latency.len(),
        documents,
        errors: 0,
        latency: latency.summary(),
        histogram: Some(latency.encode()),
    }
}

fn one_request(elapsed: Duration) -> LatencyHistogram {
    let mut latency = LatencyHistogram::default();
    latency.record(elapsed);
    latency
}

/// The time of all the tool's threads by activity, without activities that took none.
fn spent(counted: &Snapshot) -> Vec<ActivityTime> {
    let all = Activity::ALL.into_iter().zip(counted.spent);
    let some = all.filter(|(_, time)| !time.is_zero());
    some.map(|(activity, time)| ActivityTime { activity: activity.label().to_owned(), seconds: time.as_secs_f64() })
        .collect()
}
