//! Servers that the lab reaches through a Unix domain socket: running servers, and servers that it starts.

use crate::lab::{self, Done, Lab, REPORT, only_measurement};
use crate::peer::binary;
use bunko_client::percent_encoded;
use bunko_report::Report;
use bunko_report::result::{Transport, WorkerShare};
use bunko_testkit::process::Server;
use std::fs;
use std::path::Path;

const PHASES: &str = "\
[[phase]]
name = 'load'
operation.load = {}
[[phase]]
name = 'find'
operation.find = {}
load = { requests = 300, connections = 3 }
";

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_server_behind_a_socket_is_found_on_this_machine() {
    let lab = Lab::with_phases(PHASES);
    let (data, sockets) = (lab.path("data"), lab.path("sockets"));
    for directory in [&data, &sockets] {
        fs::create_dir(directory).expect("made");
    }
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let (data, prefix) = (path(&data), path(&sockets));
    let arguments = ["--dbpath", &data, "--port", "0", "--unix-socket-prefix", &prefix];
    let server = Server::run(&binary(), &arguments).expect("the server starts");
    let socket = sockets.join(format!("mongodb-{}.sock", server.address().port()));
    let uri = format!("mongodb://{}/", percent_encoded(socket.as_os_str().as_encoded_bytes()));
    let done = lab.run(&uri, &[]);
    done.assert_ended();
    let report = lab.report(REPORT);
    let target = &report.targets[0];
    assert_eq!((target.address.as_str(), target.embedded, target.local), (path(&socket).as_str(), false, true));
    assert_eq!((&target.transports[..], target.data_directory.as_deref()), (&[Transport::Unix][..], Some(&*data)));
    let found = only_measurement(&report, "find");
    assert!(found.server_cpu_seconds.is_some() && found.server_resident_bytes.is_some(), "{found:?}");
    let expected = format!("server: {} over a Unix socket, ", path(&socket));
    assert!(done.stdout.contains(&expected), "{}", done.stdout);

    // A comparison with TCP reports the difference, and workers may use either.
    lab.bench(&["run", "mine.toml", "--uri", &format!("mongodb://{}/", server.address()), "--output", "tcp"])
        .assert_ended();
    let compared = lab.bench(&["compare", "report/report.json", "tcp/report.json"]);
    let caution = "caution: the servers are reached differently: A: over a Unix socket; B: over TCP";
    assert!(compared.code == Some(0) && compared.stdout.contains(caution), "{}{}", compared.stderr, compared.stdout);
    let shares = [(report, 0, "a.json"), (lab.report("tcp"), 1, "b.json")];
    for (mut report, index, file) in shares {
        report.worker = Some(WorkerShare::Share { index, count: 2, clock_offset_ms: report.started_at_ms as f64 });
        // All runs get one beginning, so that the shares can be merged.
        let runs = report.steps.iter_mut().flat_map(|step| &mut step.runs);
        runs.for_each(|run| run.started_at_ms = report.started_at_ms);
        report.write_json(&lab.path(file)).expect("written");
    }
    lab.bench(&["merge", "a.json", "b.json", "--output", "sum"]).assert_ended();
    assert_eq!(lab.report("sum").targets[0].transports, [Transport::Tcp, Transport::Unix]);
}

/// Runs `mine.toml` on servers that the lab starts, with temporary files in a directory of the test.
fn run(lab: &Lab, more: &[&str]) -> (Report, Done) {
    let temporary = lab.path("temporary");
    fs::create_dir(&temporary).expect("made");
    let arguments = ["run", "mine.toml", "--output", REPORT];
    let mut command = lab.command(&[&arguments[..], more].concat());
    command.env("TMPDIR", &temporary);
    let done = Done::of(lab::start(command));
    done.assert_ended();
    assert_eq!(names_in(&temporary), [""; 0], "the data and the socket are gone");
    (lab.report(REPORT), done)
}

#[test]
fn a_server_of_the_labs_own_is_reached_by_a_socket_that_goes_away() {
    let lab = Lab::with_phases(&format!(
        "{PHASES}[[phase]]\nname = 'cold'\noperation.find = {{}}\ncache = 'cold'\nload = {{ requests = 100 }}\n"
    ));
    let (report, done) = run(&lab, &["--set", "server.transport=unix"]);
    let target = &report.targets[0];
    let socket = Path::new(&target.address);
    assert!(socket.starts_with(lab.path("temporary")) && socket.extension().is_some(), "{}", target.address);
    assert_eq!((target.transports.as_slice(), target.embedded), (&[Transport::Unix][..], true));
    assert!(done.stdout.contains("over a Unix socket, ") && report.scenario.resolved.contains("transport = \"unix\""));
    // The phase restarted the server.
    let cold = only_measurement(&report, "cold");
    assert!(cold.requests == 100 && cold.cache.starts_with("cold"), "{}", cold.cache);
    assert!(cold.server_cpu_seconds.is_some());
}

#[test]
fn both_ways_can_be_measured_in_one_run() {
    let lab = Lab::with_phases(&format!("[[sweep]]\n'server.transport' = ['tcp', 'unix']\n{PHASES}"));
    let (report, done) = run(&lab, &[]);
    assert_eq!(report.targets[0].transports, [Transport::Tcp, Transport::Unix]);
    assert!(done.stdout.contains("over TCP and a Unix socket, "), "{}", done.stdout);
    let variants: Vec<_> = report.steps.iter().map(|step| (step.phase.as_str(), step.variant[0].1.as_str())).collect();
    assert_eq!(variants, [("load", "tcp"), ("find", "tcp"), ("load", "unix"), ("find", "unix")]);
}

#[test]
fn without_the_setting_it_is_tcp() {
    let (report, _) = run(&Lab::with_phases(PHASES), &[]);
    assert_eq!(report.targets[0].transports, [Transport::Tcp]);
}

#[test]
fn a_server_that_runs_already_is_reached_as_its_uri_says() {
    const NOBODY: &str = "mongodb://127.0.0.1:1/?connectTimeoutMS=300";
    let lab = Lab::with_phases(PHASES);
    let set = ["--set", "server.transport=unix"];
    let refusal = "bunko: mine.toml: server.transport is for servers that the lab starts; a URI (--uri, --a, --b) names \
                   one that runs";
    assert_eq!(lab.run(NOBODY, &set).refusal(), refusal);
    assert_eq!(lab.run(NOBODY, &["--set", "server.transport=tcp"]).refusal(), refusal);
    let ab = ["ab", "--a", NOBODY, "--b", NOBODY, "mine.toml"];
    assert_eq!(lab.bench(&[&ab[..], &set].concat()).refusal(), refusal);
    let find_max = ["find-max", "mine.toml", "--uri", NOBODY, "--p99", "1s", "--quiet"];
    assert_eq!(lab.bench(&[&find_max[..], &set].concat()).refusal(), refusal);
    assert!(!lab.path(REPORT).exists());
}

#[test]
fn a_path_that_no_socket_can_have_is_refused() {
    let lab = Lab::with_phases(PHASES);
    let deep = lab.path(&"d".repeat(80));
    fs::create_dir(&deep).expect("made");
    let mut command = lab.command(&["run", "mine.toml", "--set", "server.transport=unix"]);
    command.env("TMPDIR", &deep);
    let refused = Done::of(lab::start(command));
    let expected = "bunko: the embedded server did not start: server.transport: a socket in ";
    assert!(refused.refusal().starts_with(expected), "{}", refused.stderr);
    assert!(refused.stderr.contains("more than 107; TMPDIR may name another directory"), "{}", refused.stderr);
    assert_eq!(names_in(&deep), [""; 0]);
}
