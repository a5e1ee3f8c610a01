//! The whole scenario against a server that counts: `insert`, `count`, `create`, `drop`, and errors on demand.

use bunko_bench::{EmbeddedServer, Finding, InsertMatrixOptions, Report, Running, Target, insert_matrix};
use bunko_bson::DocumentBuf;
use bunko_wire::{Message, MessageFlags, needed_bytes, write_message};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Collections with their counts, and what the server does wrong.
#[derive(Default)]
struct State {
    counts: Mutex<HashMap<String, i64>>,
    commands: Mutex<Vec<String>>,
    loses_inserts: AtomicBool,
    refuses_inserts: AtomicBool,
    stopped: AtomicBool,
}

impl State {
    fn answer(&self, message: &Message<'_>) -> DocumentBuf {
        let first = message.body.first().expect("a command");
        let (name, collection) = (first.name, first.value.as_str().unwrap_or_default().to_owned());
        self.commands.lock().expect("not poisoned").push(name.to_owned());
        let mut counts = self.counts.lock().expect("not poisoned");
        let ok = DocumentBuf::new();
        let answer = match name {
            "create" => {
                assert_eq!(counts.insert(collection, 0), None, "created twice");
                ok
            }
            "drop" => {
                assert!(counts.remove(&collection).is_some(), "dropped what was not there");
                ok
            }
            "count" => ok.with("n", counts[&collection] as i32),
            "insert" if self.refuses_inserts.load(Ordering::Relaxed) => {
                return ok.with("ok", 0.0).with("errmsg", "disk full").with("code", 14_031_i32);
            }
            "insert" => {
                let documents: usize = message.sequences().map(|sequence| sequence.documents.clone().count()).sum();
                let kept = if self.loses_inserts.load(Ordering::Relaxed) { 0 } else { documents as i64 };
                *counts.entry(collection).or_default() += kept;
                ok.with("n", documents as i32)
            }
            "serverStatus" => {
                let engine = DocumentBuf::new().with("name", "counting");
                ok.with("pid", i64::from(std::process::id())).with("storageEngine", &engine)
            }
            _ => ok,
        };
        answer.with("ok", 1.0)
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        loop {
            let mut frame = vec![0; 4];
            stream.read_exact(&mut frame)?;
            frame.resize(needed_bytes(&frame).expect("a sound length"), 0);
            stream.read_exact(&mut frame[4..])?;
            let message = Message::parse(&frame).expect("well formed");
            let answer = self.answer(&message);
            if !message.flags.contains(MessageFlags::MORE_TO_COME) {
                let mut out = Vec::new();
                let body = |out: &mut Vec<u8>| out.extend_from_slice(answer.as_ref().as_bytes());
                write_message(&mut out, 1, message.header.request_id, MessageFlags::NONE, body).expect("short");
                stream.write_all(&out)?;
            }
        }
    }
}

struct CountingServer(Arc<State>);

impl EmbeddedServer for CountingServer {
    fn start(&mut self) -> Result<Running, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let state = Arc::clone(&self.0);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&state);
                // A client that goes away ends its thread by an error.
                std::thread::spawn(move || state.serve(stream));
            }
        });
        Ok(Running { uri: format!("mongodb://127.0.0.1:{port}"), pid: std::process::id() })
    }

    fn stop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }
}

fn run(state: &Arc<State>, options: InsertMatrixOptions) -> Report {
    let target = Target::Embedded(Box::new(CountingServer(Arc::clone(state))));
    let report = insert_matrix(options, target).expect("a whole run");
    assert!(state.stopped.load(Ordering::Relaxed), "the embedded server is stopped");
    assert!(state.counts.lock().expect("not poisoned").is_empty(), "every collection is dropped");
    report
}

fn small() -> InsertMatrixOptions {
    InsertMatrixOptions {
        connections: vec![1, 4],
        in_flight: vec![1, 10],
        documents: 1_005,
        ..InsertMatrixOptions::default()
    }
}

/// The generator shares this process with the server, so only counts and errors are judged here.
fn counting_flaws(report: &Report) -> Vec<&Finding> {
    let is_counting = |finding: &&Finding| matches!(finding, Finding::Errors { .. } | Finding::CountsDiffer { .. });
    report.runs.iter().flat_map(|run| &run.findings).filter(is_counting).collect()
}

#[test]
fn every_document_is_sent_once_and_counted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let json = directory.path().join("report.json");
    let state = Arc::new(State::default());
    let report = run(&state, InsertMatrixOptions { batch: 10, threads: 2, json: Some(json.clone()), ..small() });
    assert_eq!(counting_flaws(&report), Vec::<&Finding>::new());
    assert_eq!(
        report.runs.iter().map(|run| (run.documents, run.latency.samples)).collect::<Vec<_>>(),
        [(1_005, 101), (1_005, 101)]
    );
    assert!(report.durability.contains("storage engine counting"), "{}", report.durability);
    assert!(report.runs.iter().all(|run| run.server_cpu_us_per_document.is_some()));
    let table = report.to_string();
    assert!(table.contains("docs/s") && table.contains("verdict: "), "{table}");
    let written: serde_json::Value =
        serde_json::from_slice(&std::fs::read(json).expect("written")).expect("well-formed JSON");
    assert_eq!(written["runs"][1]["connections"], 4);
    assert_eq!(written["scenario"]["options"]["document-bytes"], 1_000);
    assert!(!state.commands.lock().expect("not poisoned").iter().any(|command| command == "dropDatabase"));
}

#[test]
fn unacknowledged_inserts_are_counted_by_the_server_alone() {
    let report = run(&Arc::default(), InsertMatrixOptions { write_concern: Some("0".into()), ..small() });
    assert_eq!(counting_flaws(&report), Vec::<&Finding>::new());
    assert!(report.runs.iter().all(|run| run.latency.samples == 0));
}

#[test]
fn a_server_that_loses_documents_is_found_out() {
    let state = State { loses_inserts: true.into(), ..State::default() };
    let report = run(&Arc::new(state), InsertMatrixOptions { repetitions: 1, ..small() });
    assert!(!report.is_valid());
    assert_eq!(counting_flaws(&report).len(), 2);
    assert!(report.verdict().contains("1005 acknowledged, 1005 expected and 0 found"), "{}", report.verdict());
}

#[test]
fn refusals_are_errors_not_throughput() {
    let state = State { refuses_inserts: true.into(), ..State::default() };
    let report = run(&Arc::new(state), small());
    assert!(report.verdict().contains("1005 errors, the first: disk full (code 14031)"), "{}", report.verdict());
}

#[test]
fn a_server_that_does_not_start_is_stopped_and_named() {
    struct Broken(Arc<State>);
    impl EmbeddedServer for Broken {
        fn start(&mut self) -> Result<Running, String> {
            Err("no such binary".into())
        }
        fn stop(&mut self) {
            self.0.stopped.store(true, Ordering::Relaxed);
        }
    }
    let state = Arc::new(State::default());
    let error = insert_matrix(small(), Target::Embedded(Box::new(Broken(Arc::clone(&state))))).expect_err("refused");
    assert_eq!(error.to_string(), "the embedded server did not start: no such binary");
    assert!(state.stopped.load(Ordering::Relaxed));
    assert_eq!(state.counts.lock().expect("not poisoned").len(), 0);
}
