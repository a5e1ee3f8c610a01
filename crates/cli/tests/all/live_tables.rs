//! `bunko stat` and `bunko top` as processes, beside servers that work, go away and come back.

use crate::peer::{Running, binary};
use crate::tool::{command, connect, fail, insert, run};
use bunko_bson::{DocumentBuf, ValueRef, extended_json};
use bunko_testkit::patience::wait_for;
use bunko_testkit::process::{Server, exit_of, fixed_port, temporary_dbpath};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The lines that a table shows, and what it says beside them.
struct Table {
    process: Child,
    lines: Arc<Mutex<Vec<String>>>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Table {
    fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let lines = collect(process.stdout.take().expect("piped"));
        let said = collect(process.stderr.take().expect("piped"));
        Self { process, lines, said }
    }

    /// Waits for a line beside the table with these words.
    fn said(&self, words: &str) {
        wait_for(|| {
            let said = self.said.lock().expect("held").join("\n");
            if said.contains(words) { Ok(()) } else { Err(format!("'{words}' was not said: {said}")) }
        });
    }

    /// Waits for one more row than there are now.
    fn next_row(&self) -> String {
        let shown = self.lines.lock().expect("held").len();
        wait_for(|| self.lines.lock().expect("held").get(shown).cloned().ok_or_else(|| "no further row".to_owned()))
    }

    /// Sends Ctrl-C, which must end the table with success.
    fn interrupt(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::INT).expect("it runs");
        assert_eq!(exit_of(&mut self.process).code(), Some(0));
    }
}

fn collect(output: impl Read + Send + 'static) -> Arc<Mutex<Vec<String>>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let collected = Arc::clone(&lines);
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            collected.lock().expect("held").push(line);
        }
    });
    lines
}

/// Runs a table while documents are inserted into `work.c`; returns its standard output.
fn beside_inserts(address: SocketAddr, tool: &str, arguments: &[&str]) -> String {
    let is_done = AtomicBool::new(false);
    let mut connection = connect(address);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                insert(&mut connection, "work", "c", &[DocumentBuf::new(), DocumentBuf::new()]);
            }
        });
        let output = run(tool, address, arguments);
        is_done.store(true, Ordering::Relaxed);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    })
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("'{text}' is not a number"))
}

#[test]
fn stat_shows_the_work_of_each_second() {
    let running = Running::start();
    let shown = beside_inserts(running.address(), "stat", &["--rowcount", "2"]);
    let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    let names =
        "insert query update delete getmore command dirty used held flushes vsize res qrw arw net_in net_out conn time";
    assert_eq!(rows[0], names.split(' ').collect::<Vec<_>>());
    assert_eq!(rows.len(), 3, "{shown}");
    for row in &rows[1..] {
        // The time is three words.
        assert_eq!(row.len(), rows[0].len() + 2, "{shown}");
        assert!(number(row[0]) > 0.0 && row[1] == "0" && row[11].ends_with('M') && number(row[16]) >= 2.0, "{shown}");
    }
    let fields = "metrics.document.inserted.rate()=new,opcounters.insert.diff(),process,nowhere,host=server";
    let shown = beside_inserts(running.address(), "stat", &["-n", "1", "-o", fields]);
    let (headers, row) = shown.trim_end().split_once('\n').expect("two lines");
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(
        headers.split_whitespace().collect::<Vec<_>>(),
        ["new", "opcounters.insert.diff()", "process", "nowhere", "server"]
    );
    assert!(number(cells[0]) > 0.0 && number(cells[1]) > 0.0, "{shown}");
    assert_eq!(cells[2..], ["mongod", "-", &running.address().to_string()]);
    let shown = beside_inserts(running.address(), "stat", &["-n", "1", "--noheaders", "--humanReadable=false"]);
    assert!(shown.lines().count() == 1 && number(shown.split_whitespace().nth(11).expect("res")) > 1e6, "{shown}");
}

#[test]
fn stat_shows_objects_of_several_servers() {
    let (first, second) = (Running::start(), Running::start());
    let hosts = [first.address().to_string(), second.address().to_string()];
    let mut stat = Command::new(binary());
    stat.args(["stat", "--json", "-n1", "-O", "version", "--host", &hosts[0], "--host", &hosts[1]]);
    let output = stat.output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let shown = extended_json::parse_document(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    for host in &hosts {
        let facts = shown.as_ref().get(host).and_then(ValueRef::as_document).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(facts.get("insert").and_then(ValueRef::as_str), Some("0"), "{text}");
        assert!(facts.get("version").and_then(ValueRef::as_str).is_some_and(|version| version.starts_with("8.")));
        assert!(facts.get("repl").is_none(), "{text}");
    }
}

#[test]
fn top_shows_the_time_of_each_collection() {
    let running = Running::start();
    let shown = beside_inserts(running.address(), "top", &["--rowcount", "1", "2"]);
    let mut lines = shown.lines();
    assert!(
        lines.next().is_some_and(|headers| headers.split_whitespace().take(4).eq(["ns", "total", "read", "write"]))
    );
    let first: Vec<_> = lines.next().expect("a row").split_whitespace().collect();
    assert!(first[0] == "work.c" && first[1] == first[3] && first[1] != "0ms" && first[2] == "0ms", "{shown}");
    let text = beside_inserts(running.address(), "top", &["-n=1", "--json"]);
    let shown = extended_json::parse_document(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let of = |names: &[&str]| {
        names.iter().try_fold(ValueRef::Document(shown.as_ref()), |value, name| value.as_document()?.get(name))
    };
    let count = of(&["totals", "work.c", "write", "count"]).and_then(bunko_bson::number::as_f64);
    assert!(count.is_some_and(|count| count > 0.0) && of(&["time"]).is_some(), "{text}");
    assert!(of(&["totals", "peer.kept", "total", "time"]).is_some(), "{text}");
}

#[test]
fn tables_wait_for_a_server_that_goes_away() {
    let dbpath = temporary_dbpath();
    // Nothing else takes the port while the server is down.
    let port = fixed_port().to_string();
    let directory = dbpath.path().to_str().expect("UTF-8");
    let start = || Server::run(&binary(), &["--dbpath", directory, "--port", &port, "--no-unix-socket"]);
    let mut server = start().expect("it starts");
    let address = server.address();
    let table = |tool: &str, arguments: &[&str]| Table::start(command(tool, address, arguments));
    let (stat, json, top) = (table("stat", &["--noheaders"]), table("stat", &["--json"]), table("top", &["--json"]));
    for shown in [&stat, &json, &top] {
        shown.next_row();
    }
    server.kill();
    for shown in [&stat, &json, &top] {
        shown.said("; waiting for it");
    }
    wait_for(|| if json.next_row().contains("\"error\"") { Ok(()) } else { Err("no error in JSON".to_owned()) });
    let _again = start().expect("it starts");
    for shown in [&stat, &json, &top] {
        shown.said("answers again");
        shown.next_row();
    }
    assert!(!stat.next_row().contains(" - "), "the counters of the new process");
    for shown in [&stat, &json, &top] {
        let said = shown.said.lock().expect("held");
        assert_eq!(said.len(), 2, "{said:?}");
    }
    [stat, json, top].into_iter().for_each(Table::interrupt);
}

#[test]
fn a_table_ends_with_its_reader() {
    let running = Running::start();
    for tool in ["stat", "top"] {
        let mut process = command(tool, running.address(), &[])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut reader = BufReader::new(process.stdout.take().expect("piped"));
        reader.read_line(&mut String::new()).expect("a line");
        drop(reader);
        assert_eq!(exit_of(&mut process).code(), Some(0), "{tool}");
        let mut said = String::new();
        process.stderr.take().expect("piped").read_to_string(&mut said).expect("UTF-8");
        assert_eq!(said, "", "{tool}");
    }
}

#[test]
fn links_with_the_classic_names_are_the_tables() {
    let running = Running::start();
    let directory = tempfile::tempdir().expect("a directory");
    for (name, header) in [("mongostat", "insert"), ("mongotop", "ns")] {
        let link = directory.path().join(name);
        symlink(binary(), &link).expect("linked");
        let uri = format!("mongodb://{}/", running.address());
        let output = Command::new(&link).args(["-n", "1", &uri, "1"]).output().expect("it runs");
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown.split_whitespace().next() == Some(header), "{name}: {shown}");
    }
}

#[test]
fn flags_that_tables_lack_are_refused_by_name() {
    let refused = |arguments: &[&str], words: &str| {
        let output = Command::new(binary()).args(arguments).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    };
    refused(&["top", "--locks"], "--locks is not supported");
    refused(&["stat", "--interactive"], "--interactive is not supported yet");
    refused(&["stat", "-o", "host,a.max()"], "-o: field 'a.max()'");
    refused(&["stat", "-o", "host", "-O", "host"], "cannot be used with");
    refused(&["stat", "0"], "'0' is neither");
    let nobody = SocketAddr::from(([127, 0, 0, 1], fixed_port()));
    for tool in ["stat", "top"] {
        let said = fail(tool, nobody, &[]);
        assert!(said.contains(&nobody.to_string()) && said.lines().count() == 1, "{said}");
    }
}
