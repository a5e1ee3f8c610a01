//! Disturbances that a run must detect: frozen servers, generators that are held back, interruptions, other documents
//! for other seeds, commands that a server lacks.

use crate::alone;
use crate::lab::{self, Done, Lab, Measured, REPORT, only_measurement, only_run, proxy};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_host::{MachineCpu, Sleeper};
use bunko_report::Report;
use bunko_report::result::{Completion, Finding, Measurement, Outcome};
use bunko_testkit::process::exit_of;
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

const FREEZE: Duration = Duration::from_millis(200);

/// Inserts for two seconds with this load into a server that is stopped once, for [`FREEZE`].
fn frozen(load: &str) -> Measurement {
    let server = Measured::start();
    let lab = Lab::with_phases(&format!(
        "[[phase]]\nname = 'insert'\noperation.insert = {{}}\nload = {{ duration = '2s', {load} }}\n"
    ));
    let run = lab.start(&server.uri(), &[]);
    server.wait_for_documents(100);
    server.signal(Signal::STOP);
    sleep(FREEZE);
    server.signal(Signal::CONT);
    Done::of(run).assert_ended();
    only_measurement(&lab.report(REPORT), "insert").clone()
}

#[test]
fn an_open_loop_sees_a_frozen_server() {
    let _alone = alone();
    let measurement = frozen("rate = 500, connections = 4");
    let max_ms = measurement.latency.max_us.expect("samples") / 1e3;
    assert!(max_ms >= 190.0, "the first request of the freeze waited {max_ms} ms");
    // The freeze is a tenth of the run, so it delays a tenth of the requests.
    let p90_ms = measurement.latency.p90_us.expect("enough samples") / 1e3;
    let p99_ms = measurement.latency.p99_us.expect("enough samples") / 1e3;
    assert!(p99_ms >= 150.0, "p99 {p99_ms} ms, p90 {p90_ms} ms");
    // Only the server stood still, not the machine: fewer than one in a hundred wake-ups are late.
    if let Some(pause_us) = measurement.pauses.and_then(|pauses| pauses.lateness.p99_us) {
        assert!(pause_us < 100e3, "the machine woke threads {pause_us} us late");
    }
}

fn has_pauses(measurement: &Measurement) -> bool {
    measurement.findings.iter().any(|finding| matches!(finding, Finding::MachinePauses { .. }))
}

#[test]
fn a_machine_that_stands_still_is_not_taken_for_a_slow_server() {
    let _alone = alone();
    let server = Measured::start();
    let lab = Lab::with_phases(
        "[[phase]]\nname = 'insert'\noperation.insert = {}\nload = { rate = 2500, connections = 4, duration = '11s' }\n",
    );
    let run = lab.start(&server.uri(), &[]);
    server.wait_for_documents(100);
    // For a thread that sleeps in it, a stopped process looks like a stopped machine.
    lab::signal(&run, Signal::STOP);
    sleep(FREEZE);
    lab::signal(&run, Signal::CONT);
    let done = Done::of(run);
    done.assert_ended();
    let report = lab.report(REPORT);
    let measurement = only_measurement(&report, "insert");
    if !std::thread::spawn(|| Sleeper::on(0).is_some()).join().expect("asked") {
        eprintln!("SKIPPED: neither real-time priority nor scheduler statistics");
        return;
    }
    let pauses = measurement.pauses.as_ref().expect("somebody watched");
    let pause_ms = pauses.lateness.max_us.expect("milliseconds") / 1e3;
    assert!(pause_ms >= 150.0, "{pauses:?}");
    // The pause covers more than one in a hundred milliseconds, and that share of the requests.
    let pause_p99_ms = pauses.lateness.p99_us.expect("enough wake-ups") / 1e3;
    assert!(pause_p99_ms >= 50.0, "{pauses:?}");
    // A single processor with the rarest wake-ups has too few for p99.9.
    if pauses.wake_ups >= 1_000 {
        assert!(has_pauses(measurement), "{:?}, {:?}, {pauses:?}", measurement.findings, measurement.latency);
        assert!(
            done.stdout.contains("machine pauses: ") && done.stdout.contains("machine p99.9 us"),
            "{}",
            done.stdout
        );
    }
    let csv = fs::read_to_string(lab.path(REPORT).join("runs.csv")).expect("written");
    assert!(csv.contains("machine_pause_p99_us"), "{csv}");
}

#[test]
fn a_closed_loop_is_blind_to_it() {
    let _alone = alone();
    let measurement = frozen("connections = 1");
    let latency = &measurement.latency;
    let (max_ms, p99_ms) = (latency.max_us.expect("samples") / 1e3, latency.p99_us.expect("enough samples") / 1e3);
    assert!(max_ms >= 190.0, "the one request of the freeze waited {max_ms} ms");
    assert!(p99_ms < 100.0, "one request of {} waited, p99 {p99_ms} ms", latency.samples);
}

/// A closed loop that keeps its generator busy.
const BUSY: &str = "\
[[phase]]
name = 'insert'
operation.insert = {}
load = { duration = '2s', connections = 16, in-flight = 4 }
";

fn is_generator_bound(report: &Report) -> bool {
    let findings = &only_measurement(report, "insert").findings;
    findings.iter().any(|finding| matches!(finding, Finding::GeneratorBound { .. }))
}

/// Attempts at a measurement that other load on the machine may spoil.
const ATTEMPTS: usize = 3;

#[test]
fn a_generator_that_is_stopped_again_and_again_is_found_out() {
    let _alone = alone();
    let mut machine_busy = 0.0;
    let mut unexplained = Vec::new();
    for _ in 0..ATTEMPTS {
        let server = Measured::start();
        let lab = Lab::with_phases(BUSY);
        let run = lab.start(&server.uri(), &[]);
        server.wait_for_documents(1);
        let before = MachineCpu::read();
        stop_most_of_the_time(&run, Duration::from_millis(2_500));
        let machine = MachineCpu::read().zip(before).map(|(now, before)| now.since(before));
        let done = Done::of(run);
        if is_generator_bound(&lab.report(REPORT)) {
            assert_eq!(done.code, Some(2), "{}", done.stdout);
            assert!(done.stdout.starts_with("verdict: not valid: ") && done.stdout.contains("generator-bound"));
            return;
        }
        let machine = machine.expect("/proc/stat");
        machine_busy = machine.busy.as_secs_f64() / (machine.busy + machine.idle).as_secs_f64();
        // On a busy machine a stopped generator cannot be told from one that waits for a processor.
        if machine_busy <= 0.7 {
            unexplained.push(format!("machine {machine_busy:.2} busy, findings: {}", done.stdout));
        }
    }
    // In one attempt the machine may have stood still together with the generator.
    assert!(unexplained.len() < ATTEMPTS, "{}", unexplained.join("\n"));
    eprintln!("SKIPPED: {:.0} % of this machine's processors are taken by others", machine_busy * 100.0);
}

/// Lets a process run for a tenth of that time.
fn stop_most_of_the_time(run: &Child, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        lab::signal(run, Signal::STOP);
        sleep(Duration::from_millis(90));
        lab::signal(run, Signal::CONT);
        sleep(Duration::from_millis(10));
    }
}

/// A control group whose processes get 4 % of one processor, less than a server on a busy machine has; removed when
/// dropped.
struct SmallQuota(PathBuf);

impl SmallQuota {
    /// # Errors
    /// Why the group cannot be made.
    fn new() -> Result<Self, String> {
        let v1 = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"].map(Path::new);
        let v2 = Path::new("/sys/fs/cgroup");
        if let Some(root) = v1.into_iter().find(|root| root.join("tasks").exists()) {
            return Self::make(root, &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "4000")]);
        }
        let delegated = fs::read_to_string(v2.join("cgroup.subtree_control")).unwrap_or_default();
        if delegated.split_whitespace().any(|controller| controller == "cpu") {
            return Self::make(v2, &[("cpu.max", "4000 100000")]);
        }
        Err("no control group with a cpu controller".to_owned())
    }

    fn make(root: &Path, settings: &[(&str, &str)]) -> Result<Self, String> {
        let group = Self(root.join(format!("bunko-test-{}", std::process::id())));
        fs::create_dir(&group.0).map_err(|error| format!("{}: {error}", group.0.display()))?;
        for (name, value) in settings {
            fs::write(group.0.join(name), value).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(group)
    }

    /// Starts a command in the group.
    fn start(&self, command: &Command) -> Child {
        let mut member = Command::new("sh");
        member.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        member.arg(command.get_program()).args(command.get_args());
        member.current_dir(command.get_current_dir().expect("the lab's directory"));
        lab::start(member)
    }
}

impl Drop for SmallQuota {
    fn drop(&mut self) {
        // A group can be removed by rmdir once its last process has ended.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_quota_on_the_generator_is_found_out() {
    let _alone = alone();
    let group = match SmallQuota::new() {
        Ok(group) => group,
        Err(reason) => return eprintln!("SKIPPED: no CPU quota can be set here: {reason}"),
    };
    let server = Measured::start();
    let lab = Lab::with_phases(BUSY);
    let uri = server.uri();
    let done = Done::of(group.start(&lab.command(&Lab::arguments(&uri, &[]))));
    assert_eq!(done.code, Some(2), "{}{}", done.stderr, done.stdout);
    assert!(is_generator_bound(&lab.report(REPORT)), "{}", done.stdout);
    assert!(done.stdout.contains("a CPU quota stopped it for"), "{}", done.stdout);
}

#[test]
fn an_interrupted_run_leaves_a_report_and_nothing_else() {
    let _alone = alone();
    for signal in [Signal::INT, Signal::TERM] {
        let server = Measured::start();
        server.insert_one("precious");
        let lab = Lab::with_phases(
            "[load]\nduration = '600s'\n[[phase]]\nname = 'insert'\noperation.insert = {}\n\
             [[phase]]\nname = 'find'\noperation.find = {}\n",
        );
        let mut run = lab.start(&server.uri(), &[]);
        server.wait_for_documents(50);
        lab::signal(&run, signal);
        // A run that is not interrupted takes longer than this waits.
        exit_of(&mut run);
        let done = Done::of(run);
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        assert!(done.stderr.contains("bunko: stopping; once more stops at once"), "{}", done.stderr);
        assert!(done.stdout.starts_with("verdict: interrupted: "), "{}", done.stdout);
        let report = lab.report(REPORT);
        assert_eq!(report.completion, Completion::Interrupted);
        let measurement = only_measurement(&report, "insert");
        assert!(measurement.requests >= 50 && measurement.errors == 0, "{measurement:?}");
        assert!(report.steps.iter().all(|step| step.phase != "find"), "what was not run is not in the report");
        assert_eq!(server.databases(), ["precious"]);
        assert!(server.has_one("precious"));
    }
}

/// The documents that a run with this seed loads.
fn documents_of(seed: &str, order: &str) -> Vec<Vec<u8>> {
    let server = Measured::start();
    // The second phase leaves time to read the documents that the first has loaded.
    let lab = Lab::with_phases(
        "[[phase]]\nname = 'load'\noperation.load = { batch = 7 }\nload = { connections = 2, in-flight = 2 }\n\
         [[phase]]\nname = 'find'\noperation.find = {}\nload = { duration = '60s' }\n",
    );
    let set = [format!("seed={seed}"), format!("dataset.key-order={order}"), "dataset.shape=ycsb".to_owned()];
    let run = lab.start(&server.uri(), &["--set", &set[0], "--set", &set[1], "--set", &set[2]]);
    server.wait_for_documents(500);
    let documents = server.read_documents();
    lab::signal(&run, Signal::INT);
    assert_eq!(Done::of(run).code, Some(2));
    assert_eq!(documents.len(), 500);
    documents
}

#[test]
fn a_seed_makes_the_documents_byte_for_byte() {
    let _alone = alone();
    let first = documents_of("1", "ascending");
    assert!(first == documents_of("1", "ascending"), "the same seed, other documents");
    assert!(first == documents_of("1", "shuffled"), "another order, other documents");
    let other = documents_of("2", "ascending");
    let same = first.iter().filter(|document| other.contains(document)).count();
    assert_eq!(same, 0, "another seed, the same documents");
}

fn without_indexes_and_aggregate(command: DocumentRef<'_>) -> Option<DocumentBuf> {
    let name = command.first()?.name;
    ["createIndexes", "aggregate"].contains(&name).then(|| {
        let text = format!("no such command: '{name}'");
        let reply = DocumentBuf::new().with("ok", 0.0).with("errmsg", &text);
        reply.with("code", 59_i32).with("codeName", "CommandNotFound")
    })
}

#[test]
fn features_that_a_server_lacks_are_skipped_by_name() {
    let _alone = alone();
    let server = Measured::start();
    let port = proxy::start(server.server.address(), without_indexes_and_aggregate);
    let lab = Lab::with_phases(
        "[[phase]]\nname = 'load'\noperation.load = {}\n[[phase]]\nname = 'index'\noperation.index = { keys = 'd' }\n\
         [[phase]]\nname = 'sum'\noperation.aggregate = { pipeline = '[{\"$count\": \"n\"}]' }\nload = { requests = 3 }\n\
         [[phase]]\nname = 'find'\noperation.find = {}\nload = { requests = 100 }\n",
    );
    let done = lab.run(&format!("mongodb://127.0.0.1:{port}/"), &[]);
    done.assert_ended();
    let report = lab.report(REPORT);
    for (phase, command) in [("index", "createIndexes"), ("sum", "aggregate")] {
        let expected = format!("the server refused it: no such command: '{command}' (code 59, CommandNotFound)");
        match only_run(&report, phase) {
            Outcome::Skipped { reason } => assert_eq!(*reason, expected),
            Outcome::Measured(measurement) => panic!("{phase} was measured: {measurement:?}"),
        }
        assert!(done.stdout.contains(&expected) && done.stderr.contains(&expected), "{}{}", done.stdout, done.stderr);
    }
    assert_eq!(only_measurement(&report, "find").requests, 100);
}

#[test]
fn a_server_that_dies_ends_the_run_with_what_was_measured() {
    let _alone = alone();
    let mut server = Measured::start();
    let lab = Lab::with_phases(
        "[[phase]]\nname = 'load'\noperation.load = {}\n\
         [[phase]]\nname = 'insert'\noperation.insert = {}\nload = { duration = '600s' }\n",
    );
    let mut run = lab.start(&server.uri(), &[]);
    server.wait_for_documents(600);
    server.server.kill();
    exit_of(&mut run);
    let done = Done::of(run);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    let report = lab.report(REPORT);
    assert!(
        matches!(&report.completion, Completion::Failed { reason } if reason.contains("connection")),
        "{:?}",
        report.completion
    );
    assert!(done.stdout.starts_with("verdict: not valid: the run failed: "), "{}", done.stdout);
    assert_eq!(only_measurement(&report, "load").documents, 500);
}

const DUMP_AND_RESTORE: &str = "\
[[phase]]
name = 'load'
operation.load = {}
[[phase]]
name = 'dump'
operation.dump = { compression = 'lz4' }
[[phase]]
name = 'restore'
operation.restore = {}
";

/// Acknowledges the documents of a restore, and discards them.
fn forgets_bulk_inserts(command: DocumentRef<'_>) -> Option<DocumentBuf> {
    command.get("bunkoBulkInsert").map(|_| DocumentBuf::new().with("n", 500).with("ok", 1.0))
}

#[test]
fn a_restore_that_loses_documents_is_not_valid() {
    let _alone = alone();
    let server = Measured::start();
    let port = proxy::start(server.server.address(), forgets_bulk_inserts);
    let lab = Lab::with_phases(DUMP_AND_RESTORE);
    let done = lab.run(&format!("mongodb://127.0.0.1:{port}/"), &[]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(done.stdout.starts_with("verdict: not valid: restore, 1 x 1: "), "{}", done.stdout);
    let report = lab.report(REPORT);
    assert_eq!(only_measurement(&report, "dump").documents, 500);
    let differs = only_measurement(&report, "restore").findings.iter().find_map(|finding| match finding {
        Finding::CountsDiffer { expected, found, .. } => Some((*expected, *found)),
        _ => None,
    });
    assert_eq!(differs, Some((500, 0)));
    assert!(!done.stdout.contains("fastest restore"), "{}", done.stdout);
}

#[test]
fn dumps_lie_where_they_are_wanted_and_are_removed() {
    let _alone = alone();
    let server = Measured::start();
    let lab = Lab::with_phases(&DUMP_AND_RESTORE.replace("'lz4'", "'lz4', form = 'directory'"));
    let archives = lab.path("archives");
    let directory = archives.to_str().expect("UTF-8");
    let refused = lab.run(&server.uri(), &["--archive-directory", directory]);
    assert!(refused.stdout.contains("cannot write") && refused.stdout.contains(directory), "{}", refused.stdout);
    fs::create_dir(&archives).expect("made");
    let done = lab.run(&server.uri(), &["--archive-directory", directory]);
    done.assert_ended();
    let report = lab.report(REPORT);
    let transfer = only_measurement(&report, "restore").transfer.clone().expect("the tool's account");
    assert!(transfer.archive_bytes > 0 && !transfer.spent.is_empty(), "{transfer:?}");
    assert_eq!(fs::read_dir(&archives).expect("still there").count(), 0);
}
