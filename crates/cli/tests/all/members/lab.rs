//! The lab on sets: those that it starts itself, and one that runs already.

use super::{Set, WITH_ARBITER, assert_ok};
use crate::lab::{Lab, REPORT};
use bunko_report::Report;
use bunko_report::result::{Finding, Measurement, SetRecord, Step};

/// A small restore for each write concern.
const RESTORE: [&str; 14] = [
    "restore-matrix",
    "--scale=1MB",
    "--repetitions=1",
    "--set",
    "phase.dump.operation.dump.compression=zstd",
    "--set",
    "phase.restore.operation.restore.parallel-collections=4",
    "--set",
    "phase.restore.operation.restore.workers=2",
    "--set",
    "order=written",
    "--output",
    REPORT,
    "--quiet",
];

/// The figures of the restores, by write concern.
fn restores(report: &Report) -> Vec<(&str, &Measurement)> {
    let steps = report.steps.iter().filter(|step| step.phase == "restore");
    steps.map(of_concern).collect()
}

fn of_concern(step: &Step) -> (&str, &Measurement) {
    let concern = step.variant.iter().find(|(setting, _)| setting.ends_with("write-concern"));
    let runs: Vec<_> = step.measurements().collect();
    assert_eq!(runs.len(), 1, "{:?}: {:?}", step.variant, step.runs);
    (concern.expect("a write concern").1.as_str(), runs[0])
}

fn check_restores(report: &Report) {
    let restores = restores(report);
    let concerns: Vec<_> = restores.iter().map(|(concern, _)| *concern).collect();
    assert_eq!(concerns, ["0", "1", "majority"]);
    for (concern, run) in restores {
        let wrong = |finding: &&Finding| {
            matches!(
                finding,
                Finding::Errors { .. }
                    | Finding::CountsDiffer { .. }
                    | Finding::ContentsDiffer { .. }
                    | Finding::MembersBehind { .. }
            )
        };
        assert_eq!(run.findings.iter().find(wrong), None, "w: {concern}");
        assert_eq!((run.documents, run.verified_documents > 0), (1_000, true), "w: {concern}");
        check_set(run.set.as_ref().expect("the members"));
    }
}

fn check_set(set: &SetRecord) {
    let states: Vec<_> = set.members.iter().map(|member| member.state.as_str()).collect();
    assert_eq!(states, ["PRIMARY", "SECONDARY", "ARBITER"]);
    assert!(set.catch_up_seconds.is_some_and(|seconds| seconds >= 0.0), "{set:?}");
    let has_lag: Vec<_> = set.members.iter().map(|member| member.lag_seconds.is_some()).collect();
    assert_eq!(has_lag, [false, true, false], "{set:?}");
    assert!(set.members[1].longest_lag_seconds >= set.members[1].lag_seconds, "{set:?}");
    let used: Vec<_> = set.members.iter().map(|member| member.cpu_seconds).collect();
    assert!(used.iter().all(|seconds| seconds.is_some_and(|seconds| seconds > 0.0)), "{set:?}");
}

#[test]
fn restores_into_a_set_that_the_lab_starts_tell_lag_and_each_members_time() {
    let lab = Lab::new();
    let scratch = lab.path("scratch");
    std::fs::create_dir(&scratch).expect("made");
    let directory = format!("--directory={}", scratch.display());
    let done = lab.bench(&[&RESTORE[..], &[&directory, "--server-option=cacheSizeGB=0.25"]].concat());
    done.assert_ended();
    let report = lab.report(REPORT);
    check_restores(&report);
    let members = ("members".to_owned(), "PRIMARY, SECONDARY, ARBITER".to_owned());
    assert!(report.targets[0].settings.contains(&members), "{:?}", report.targets[0].settings);
    for shown in ["lag ms", "longest lag ms", "caught up after ms", "members us/doc", "PRI "] {
        assert!(done.stdout.contains(shown), "{shown}: {}", done.stdout);
    }
    let left: Vec<_> = std::fs::read_dir(&scratch).expect("readable").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn restores_into_a_set_that_runs_already_tell_the_same() {
    let set = Set::start(3, &[]);
    assert_ok(&set.initiate(&WITH_ARBITER));
    set.primary(&[0]);
    set.wait_for_state(1, "SECONDARY");
    set.wait_for_state(2, "ARBITER");
    let uri = format!("mongodb://{},{}/?replicaSet=rs", set.address(0), set.address(1));
    let lab = Lab::new();
    lab.bench(&[&RESTORE[..], &["--uri", &uri]].concat()).assert_ended();
    check_restores(&lab.report(REPORT));

    let named = lab.bench(&[&RESTORE[..], &["--uri", &uri, "--set", "server.members=data"]].concat());
    assert!(named.refusal().contains("--set server.members=data: "), "{}", named.stderr);
    let named = lab.bench(&[&RESTORE[..], &["--uri", &uri, "--set", "server.members=[\"data\"]"]].concat());
    assert!(named.refusal().contains("server.members is for servers that the lab starts"), "{}", named.stderr);
}

#[test]
fn members_that_no_set_can_have_are_refused() {
    let lab = Lab::new();
    for more in [["--engine", "memory"], ["--set", "servers=each-engine"]] {
        let refused = lab.bench(&[&RESTORE[..], &more].concat());
        let expected = "server.members: the storage engine 'memory' cannot be in a set of several members";
        assert!(refused.refusal().ends_with(expected), "{}", refused.stderr);
    }
}
