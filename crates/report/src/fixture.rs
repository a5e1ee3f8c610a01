//! Reports made by hand, for tests and for looking at: the same figures every time, none of them measured.

use bunko_report::result::{
    ActivityTime, AllocationRecord, Completion, FORMAT, Finding, Interval, Machine, Measurement, OperationPart,
    Outcome, ReferenceFigure, Report, Run, ScenarioRecord, ServerSample, Settling, Step, StorageRecord,
    StorageReference, TargetRecord, TransferRecord,
};
use bunko_statistics::{LatencyHistogram, Trend};
use std::path::PathBuf;
use std::time::Duration;

/// Makes a report.
pub type Make = fn() -> Report;

/// Every report here, by name.
pub const ALL: &[(&str, Make)] = &[
    ("plain", plain),
    ("engines", engines),
    ("sizes", sizes),
    ("mixed", mixed),
    ("mixed-later", mixed_later),
    ("allocation", allocation),
    ("restores", restores),
    ("hostile", hostile),
    ("nothing", nothing),
];

/// One target, one step, one run, nothing wrong.
pub fn plain() -> Report {
    let mut report = empty("insert", "inserts of 1 kB, one at a time");
    report.targets.push(target("bunko"));
    report.steps.push(step(&Load { rate: 11_800.0, ..Load::new("insert", 1, 1) }, 1));
    report
}

/// Two engines, a matrix of concurrency, five repetitions, references, storage.
pub fn engines() -> Report {
    let mut report = empty("engine-compare", "100 connections, 1 kB documents, one engine after the other");
    report.scenario.experiment = Some("E3".into());
    for (index, (engine, factor)) in [("lsm", 1.0), ("memory", 1.31)].into_iter().enumerate() {
        let mut record = target(engine);
        record.storage_engine = Some(engine.into());
        report.targets.push(record);
        let cells = [(1, 1, 9_800.0, 2_716.0), (1, 100, 61_000.0, 23_114.0), (100, 1, 58_400.0, 21_986.0)];
        for (connections, in_flight, rate, published) in cells.into_iter().chain([(100, 100, 88_700.0, 18_665.0)]) {
            // Where the network's round trip rules, the engine makes no difference.
            let rate = if connections * in_flight == 1 { rate } else { rate * factor };
            let load = Load { target: index, rate, ..Load::new("insert", connections, in_flight) };
            let source = "E1: MongoDB 3.2 on t2.medium, client on a second machine".into();
            let reference = Some(ReferenceFigure { documents_per_second: published, bytes_per_second: None, source });
            let mut step = Step { reference, ..step(&load, 5) };
            if connections * in_flight > 100 {
                "load".clone_into(&mut step.operation);
                settle(&mut step);
            }
            report.steps.push(step);
        }
        report.storage.push(StorageRecord {
            target: index,
            variant: Vec::new(),
            repetition: 1,
            objects: Some(5e6),
            data_size: Some(5e9),
            storage_size: Some(if index == 0 { 736_706_560.0 } else { 5e9 }),
            index_size: Some(if index == 0 { 50_180_096.0 } else { 90_579_120.0 }),
            file_size: (index == 0).then_some(823_132_160.0),
            live_size: Some(5e9 / 2.6),
            reference: (index == 0).then(|| StorageReference {
                source: "MongoDB 3.4.6 wiredTiger".into(),
                documents_per_second: 45_397.0,
                objects: 5e6,
                data_size: 5e9,
                storage_size: 736_706_560.0,
                index_size: 50_180_096.0,
                file_size: None,
            }),
        });
    }
    report
}

/// Lets the runs of a step be followed by two seconds of background work, and their tail rise a little.
fn settle(step: &mut Step) {
    for run in &mut step.runs {
        let Outcome::Measured(measurement) = &mut run.outcome else { unreachable!("just made") };
        measurement.settling = Some(Settling { seconds: 2.25, server_cpu_seconds: Some(1.5) });
        let trend = Trend { from: 400_000.0, to: 412_000.0, change_low: -8_000.0, change_high: 31_000.0 };
        measurement.p999_trend = Some(trend);
    }
}

/// Document sizes against phases: ten minutes of one-second intervals, twenty-four steps, cautions.
pub fn sizes() -> Report {
    let mut report = empty("docsize-sweep", "documents of 400 B to 4 MB: insert, update, fetch");
    report.scenario.experiment = Some("E4".into());
    report.targets.push(target("bunko"));
    for (size_index, bytes) in
        [400_u64, 1_000, 4_000, 10_000, 40_000, 100_000, 1_000_000, 4_000_000].into_iter().enumerate()
    {
        for (phase, factor) in [("insert", 1.0), ("update", 1.9), ("fetch", 3.2)] {
            let rate = factor / (8e-6 + bytes as f64 / 2.2e8);
            let load = Load { bytes, rate, seconds: 25, ..Load::new(phase, 10, 1) };
            let mut step = step(&load, 1);
            step.variant = vec![("document_bytes".into(), bytes.to_string())];
            if size_index == 6 && phase == "update" {
                let detail = "throughput fell from 410 to 322 documents/s".into();
                measurement(&mut step).findings.push(Finding::NotSteady { detail });
            }
            report.steps.push(step);
        }
        report.storage.push(StorageRecord {
            target: 0,
            variant: vec![("document_bytes".into(), bytes.to_string())],
            repetition: 1,
            objects: Some(1e6),
            data_size: Some(1e6 * bytes as f64),
            storage_size: Some(4e5 * bytes as f64 + 2e7),
            index_size: Some(2.1e7),
            file_size: Some(4.4e5 * bytes as f64 + 6e7),
            live_size: None,
            reference: None,
        });
    }
    report
}

/// A phase of reads and updates, three times.
pub fn mixed() -> Report {
    reads_and_updates(31_000.0)
}

/// [`mixed`] after something was made slower, with a step more.
pub fn mixed_later() -> Report {
    let mut report = reads_and_updates(24_000.0);
    report.started_at_ms += 86_400_000;
    report.steps.push(step(&Load { rate: 52_000.0, ..Load::new("scan", 16, 1) }, 3));
    report
}

fn reads_and_updates(rate: f64) -> Report {
    let mut report = empty("ycsb-a", "half reads, half updates, zipfian keys");
    report.targets.push(target("bunko"));
    let load = Load { rate, ..Load::new("run", 16, 1) };
    let mut step = step(&load, 3);
    for run in &mut step.runs {
        let Outcome::Measured(measurement) = &mut run.outcome else { unreachable!("just made") };
        measurement.parts = [("find-one", 0.8), ("update-one", 1.9)]
            .into_iter()
            .map(|(operation, slowness)| {
                let rate = load.rate / slowness;
                let histogram = latencies(&Load { rate, ..load.clone() }, 1_000, &mut Noise(rate.to_bits()));
                OperationPart {
                    operation: operation.into(),
                    requests: measurement.requests / 2,
                    latency: histogram.summary(),
                    histogram: histogram.encode(),
                }
            })
            .collect();
    }
    report.steps.push(step);
    report
}

/// Fourteen nights of one scenario; from the tenth on the server does 12 % less, and one of the second night's runs is
/// worth nothing.
pub fn nightly() -> Vec<(PathBuf, Report)> {
    let of_night = |(night, factor): (u64, f64)| {
        let mut report = empty("insert", "inserts of 1 kB, one at a time");
        report.started_at_ms += night * 86_400_000;
        report.ended_at_ms += night * 86_400_000;
        report.targets.push(target("bunko"));
        let rate = 11_800.0 * factor * if night < 9 { 1.0 } else { 0.88 };
        report.steps.push(step(&Load { rate, seconds: 3, ..Load::new("insert", 1, 1) }, 3));
        if night == 1 {
            let first = "E11000 duplicate key".into();
            measurement(&mut report.steps[0]).findings.push(Finding::Errors { count: 1, first });
        }
        (PathBuf::from(format!("night-{night:02}/report.json")), report)
    };
    let factors = [1.0, 1.011, 0.992, 1.004, 0.989].into_iter().cycle();
    (0..14).zip(factors).map(of_night).collect()
}

/// File allocation on two filesystems under an open loop.
pub fn allocation() -> Report {
    let mut report = empty("allocation-stall", "inserts at half the maximum rate while files are allocated");
    report.scenario.experiment = Some("E5".into());
    report.targets.push(target("bunko"));
    for (filesystem, stall_us) in [("ext3", 7_900_000.0), ("ext4", 21_000.0)] {
        let load = Load { offered: Some(6_000.0), rate: 6_000.0, stall_us, ..Load::new("insert", 4, 1) };
        let mut step = step(&load, 1);
        step.variant = vec![("filesystem".into(), filesystem.into())];
        report.steps.push(step);
    }
    let trial = |filesystem: &str, method: &str, seconds: &[f64], refused: Option<&str>| AllocationRecord {
        directory: format!("/mnt/{filesystem}"),
        filesystem: filesystem.to_owned(),
        method: method.to_owned(),
        bytes: 2_146_435_072,
        seconds: seconds.to_vec(),
        sync_seconds: seconds.iter().map(|seconds| seconds * 0.3 + 0.002).collect(),
        refused: refused.map(str::to_owned),
    };
    report.allocations = vec![
        trial("ext3", "fallocate", &[], Some("fallocate: Operation not supported")),
        trial("ext3", "zero-fill", &[15.1, 14.6, 17.9], None),
        trial("ext4", "fallocate", &[0.009, 0.012, 0.010], None),
        trial("ext4", "zero-fill", &[13.2, 13.0, 14.1], None),
        trial("ext4", "recycle", &[0.000_4, 0.000_4, 0.000_5], None),
    ];
    report
}

/// Restores by compression and workers, three times each, of which two cannot be told apart.
pub fn restores() -> Report {
    let mut report = empty("restore-matrix", "100 MB in four collections, restored in four ways");
    report.targets.push(target("bunko"));
    let ways = [("gzip", "8", 110_000.0), ("zstd", "1", 90_000.0), ("zstd", "4", 198_000.0), ("zstd", "8", 200_000.0)];
    for (compression, workers, rate) in ways {
        let load = Load { rate, seconds: 2, ..Load::new("restore", 1, 1) };
        let mut step = step(&load, 3);
        "restore".clone_into(&mut step.operation);
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        step.variant = vec![setting("dump.compression", compression), setting("restore.workers", workers)];
        step.reference = (compression == "gzip").then(|| ReferenceFigure {
            documents_per_second: 91_973.0,
            bytes_per_second: Some(91_973_000.0),
            source: "MongoDB 3.4.10, 8 cores".into(),
        });
        for (run, noise) in step.runs.iter_mut().zip([0.98, 1.0, 1.03]) {
            let Outcome::Measured(measurement) = &mut run.outcome else { unreachable!("just made") };
            measurement.documents_per_second = rate * noise;
            let spent = [("server", 3.0), ("decompression", 1.0)];
            let spent = spent.map(|(activity, seconds)| ActivityTime { activity: activity.into(), seconds });
            measurement.transfer = Some(TransferRecord { archive_bytes: 38_000_000, spent: spent.into() });
        }
        report.steps.push(step);
    }
    report
}

/// Names that would break out of HTML, JSON or a terminal; every finding; a skipped step; stopped by the user.
pub fn hostile() -> Report {
    const NAME: &str = r#"</script><script>alert("1")</script>'&<!--"#;
    let mut report = empty(NAME, "\"quotes\", <b>tags</b> & \u{1b}[31mcolours");
    report.completion = Completion::Interrupted;
    report.scenario.prose = format!("{NAME}\n\nSecond paragraph.");
    report.scenario.resolved = format!("name = '''{NAME}'''\n");
    report.command = vec!["bunko".into(), "bench".into(), "run".into(), NAME.into(), "it's".into()];
    report.targets.push(TargetRecord { address: NAME.into(), durability: NAME.into(), ..target(NAME) });
    report.steps.push(step(&Load { rate: 900.0, ..Load::new(NAME, 2, 3) }, 1));
    report.steps[0].variant = vec![(NAME.into(), NAME.into())];
    report.steps[0].reference =
        Some(ReferenceFigure { documents_per_second: 800.0, bytes_per_second: None, source: NAME.into() });
    let first = measurement(&mut report.steps[0]);
    first.cache = NAME.into();
    first.findings = vec![
        Finding::Short { seconds: 2.4 },
        Finding::Errors { count: 3, first: NAME.into() },
        Finding::CountsDiffer { what: "documents in the collection".into(), expected: 200_000, found: 199_997 },
        Finding::ContentsDiffer { detail: "document 7: d is missing".into() },
        Finding::GeneratorBound { detail: "its threads were busy 99 % of the time".into() },
        Finding::RateNotKept { offered: 5_000.0, achieved: 900.0 },
        Finding::NotSteady { detail: "p99 rose from 2 ms to 9 ms".into() },
        Finding::CacheNotAsDeclared { detail: "pages cannot be dropped without root".into() },
        Finding::NotSettled { seconds: 60.0 },
        Finding::LimitExceeded { detail: "resident memory 260 MB, at most 250 MB".into() },
        Finding::LimitUnchecked { detail: "disk-over-live: the data directory is on another machine".into() },
    ];
    first.server[0].status.insert(NAME.into(), 1.0);
    let mut skipped = step(&Load::new("drop", 1, 1), 1);
    skipped.runs[0].outcome = Outcome::Skipped { reason: NAME.into() };
    report.steps.push(skipped);
    report.steps.push(Step { runs: Vec::new(), ..step(&Load::new("never begun", 1, 1), 1) });
    report
}

/// Failed before anything was measured.
pub fn nothing() -> Report {
    let mut report = empty("insert", "inserts of 1 kB, one at a time");
    report.completion = Completion::Failed { reason: "127.0.0.1:27017: connection refused".into() };
    report
}

/// The figures of a step's first run.
pub fn measurement(step: &mut Step) -> &mut Measurement {
    match &mut step.runs[0].outcome {
        Outcome::Measured(measurement) => measurement,
        Outcome::Skipped { reason } => panic!("skipped: {reason}"),
    }
}

/// What a step's figures are made from.
#[derive(Clone)]
struct Load {
    target: usize,
    phase: String,
    connections: usize,
    in_flight: usize,
    /// Documents per second.
    rate: f64,
    offered: Option<f64>,
    seconds: u32,
    bytes: u64,
    /// One request of the tenth second takes so long; 0 for none.
    stall_us: f64,
}

impl Load {
    fn new(phase: &str, connections: usize, in_flight: usize) -> Self {
        Self {
            target: 0,
            phase: phase.to_owned(),
            connections,
            in_flight,
            rate: 1_000.0,
            offered: None,
            seconds: 20,
            bytes: 1_000,
            stall_us: 0.0,
        }
    }
}

fn empty(name: &str, about: &str) -> Report {
    Report {
        format: FORMAT,
        lab_version: "0.1.0".into(),
        command: ["bunko", "bench", "run", name, "--set", "seed=7"].map(str::to_owned).to_vec(),
        scenario: ScenarioRecord {
            name: name.into(),
            about: about.into(),
            prose: "Acknowledged single-document inserts into an empty collection, default index only.\n\n\
                    Each document has random text of the declared compressibility, so that no engine gains by a \
                    constant payload."
                .into(),
            experiment: None,
            seed: 7,
            hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
            resolved: format!("name = {name:?}\nseed = 7\n\n[dataset]\nshape = \"plain\"\ndocuments = 200000\n"),
        },
        started_at_ms: 1_763_737_200_000,
        ended_at_ms: 1_763_737_800_000,
        completion: Completion::Complete,
        worker: None,
        machine: Machine {
            processor: "Example CPU 2.4 GHz".into(),
            cores: 2,
            memory_bytes: 8_000_000_000,
            kernel: "Linux 6.1.0".into(),
        },
        targets: Vec::new(),
        steps: Vec::new(),
        storage: Vec::new(),
        allocations: Vec::new(),
    }
}

fn target(label: &str) -> TargetRecord {
    TargetRecord {
        label: label.into(),
        address: "127.0.0.1:27017".into(),
        embedded: false,
        local: true,
        version: Some("8.0.0".into()),
        storage_engine: Some("lsm".into()),
        durability: "w: 1, j: false; journal synced every 100 ms".into(),
        settings: Vec::new(),
        data_directory: Some("/var/lib/bunko".into()),
        filesystem: Some("ext4".into()),
    }
}

fn step(load: &Load, repetitions: u32) -> Step {
    let runs = (1..=repetitions).map(|repetition| Run {
        repetition,
        started_at_ms: 1_763_737_200_000 + u64::from(repetition) * 60_000,
        outcome: Outcome::Measured(Box::new(measure(load, repetition))),
    });
    Step {
        target: load.target,
        variant: Vec::new(),
        phase: load.phase.clone(),
        operation: "insert".into(),
        connections: load.connections,
        in_flight: load.in_flight,
        reference: None,
        runs: runs.collect(),
    }
}

fn measure(load: &Load, repetition: u32) -> Measurement {
    let mut noise = Noise(load.rate.to_bits() ^ u64::from(repetition) << 20 ^ (load.target as u64) << 40);
    let of_run = load.offered.map_or(0.97 + 0.06 * noise.next(), |_| 1.0);
    let mut whole = LatencyHistogram::default();
    let mut intervals = Vec::new();
    let mut server = Vec::new();
    for second in 0..load.seconds {
        let of_second = load.offered.map_or(0.94 + 0.12 * noise.next(), |_| 1.0);
        let mut documents = (load.rate * of_run * of_second) as u64;
        let mut histogram = latencies(load, documents, &mut noise);
        if load.stall_us > 0.0 && second == 10 {
            documents /= 2;
            histogram.record(Duration::from_micros(load.stall_us as u64));
        }
        whole.merge(&histogram);
        intervals.push(Interval {
            at_seconds: f64::from(second),
            seconds: 1.0,
            requests: documents,
            documents,
            errors: 0,
            latency: histogram.summary(),
            histogram: Some(histogram.encode()),
        });
        server.push(sample(load, second, documents as f64, &mut noise));
    }
    let documents: u64 = intervals.iter().map(|interval| interval.documents).sum();
    let rate = documents as f64 / f64::from(load.seconds);
    Measurement {
        requests: documents,
        documents,
        document_bytes: Some(documents * load.bytes),
        errors: 0,
        elapsed_seconds: f64::from(load.seconds),
        documents_per_second: rate,
        offered_rate: load.offered,
        achieved_rate: rate,
        latency: whole.summary(),
        histogram: whole.encode(),
        parts: Vec::new(),
        intervals,
        server,
        server_cpu_seconds: Some(documents as f64 * 8.4e-6),
        server_resident_bytes: Some(412_000_000 + u64::from(repetition) * 1_000_000),
        journal_syncs: Some(u64::from(load.seconds) * 10),
        settling: None,
        p999_trend: None,
        generator_cpu_seconds: documents as f64 * 2.6e-6,
        generator_threads: 1,
        transfer: None,
        cache: "as the phase before left it".into(),
        verified_documents: 1_000,
        findings: Vec::new(),
    }
}

/// At most a thousand latencies around what the rate and the concurrency imply, with a long tail.
fn latencies(load: &Load, documents: u64, noise: &mut Noise) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::default();
    let mean_us =
        1e6 * (load.connections * load.in_flight) as f64 / load.rate / if load.offered.is_some() { 5.0 } else { 1.0 };
    for _ in 0..documents.min(1_000) {
        let tail = (1.0 - noise.next()).powf(-0.28);
        histogram.record(Duration::from_nanos((mean_us * 0.55 * tail * (0.8 + 0.4 * noise.next()) * 1e3) as u64));
    }
    histogram
}

fn sample(load: &Load, second: u32, documents: f64, noise: &mut Noise) -> ServerSample {
    let bytes = documents * load.bytes as f64;
    let elapsed = f64::from(second) + 1.0;
    ServerSample {
        at_seconds: elapsed,
        cpu_percent: Some((documents * 8.4e-4).min(160.0) + 4.0 * noise.next()),
        resident_bytes: Some(300_000_000 + (elapsed * 5.6e6) as u64),
        major_faults_per_second: Some(0.0),
        device_read_bytes_per_second: Some(0.0),
        device_written_bytes_per_second: Some(bytes * (0.9 + 0.3 * noise.next())),
        disk_bytes: Some((elapsed * bytes * 0.4) as u64 + 64_000_000),
        status: [
            ("connections.current", load.connections as f64 + 1.0),
            ("metrics.document.inserted", documents),
            ("opcounters.insert", documents),
            ("network.bytesIn", bytes * 1.05),
            ("network.bytesOut", documents * 45.0),
            ("mem.resident", 300.0 + elapsed * 5.6),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect(),
    }
}

/// Numbers in 0..1 that only look random. xorshift64*.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        // The state must not be 0, and similar seeds must part ways.
        self.0 = (self.0 | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 ^= self.0 >> 29;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
