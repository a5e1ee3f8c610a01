use super::*;
use crate::reading::{Interval, Reading};
use bunko_host::Clock;
use bunko_testkit::shell::parse_document;
use std::time::Duration;

/// Two readings, two seconds apart.
fn cells(before: &str, now: &str, set: Option<&str>, names: &[&str]) -> Vec<String> {
    let clock = Clock::standing(1_769_903_999_123);
    let reading = |text: &str| Reading {
        at: clock.now(),
        date_ms: clock.now_ms(),
        status: parse_document(text).expect(text),
        set: set.map(|text| parse_document(text).expect(text)),
    };
    let before = reading(before);
    let mut now = reading(now);
    now.at += Duration::from_secs(2);
    let interval = Interval { host: "h:1", before: &before, now: &now };
    let cell = |name: &&str| (named(name).expect(name).cell)(&interval, Units::Readable);
    names.iter().map(|name| cell(name).unwrap_or_else(|| "-".to_owned())).collect()
}

#[test]
fn bunko_tells_most_facts() {
    let status = |inserts: i64, checkpoints: i64, sent: i64| {
        format!(
            "{{opcounters: {{insert: {inserts}, query: 4, update: 0, delete: 0, getmore: 0, command: {inserts}}},
              backgroundFlushing: {{flushes: {checkpoints}}}, mem: {{virtual: 2012, resident: 43}},
              globalLock: {{currentQueue: {{readers: 0, writers: 0}}, activeClients: {{readers: 3, writers: 1}}}},
              network: {{bytesIn: {sent}, bytesOut: {sent}}}, connections: {{current: 7}},
              lsm: {{cache: {{maximumBytes: 1000, documentsBytes: 100, logBytes: 50, treesBytes: 100}}}},
              bunko: {{unflushedBytes: 20, memory: {{limitBytes: 100, heldBytes: 5}}}},
              storageEngine: {{name: 'lsm'}}, extra_info: {{page_faults: 0}}}}"
        )
    };
    let names = [
        "host", "engine", "insert", "query", "command", "dirty", "used", "held", "flushes", "vsize", "res", "qrw",
        "arw", "net_in", "conn", "set", "repl", "lag", "time",
    ];
    assert_eq!(
        cells(&status(10, 1, 100), &status(30, 3, 80_100), None, &names),
        [
            "h:1",
            "lsm",
            "10",
            "0",
            "10",
            "2.0%",
            "25.0%",
            "5.0%",
            "2",
            "1.96G",
            "43.0M",
            "0|0",
            "3|1",
            "40.0k",
            "7",
            "-",
            "-",
            "-",
            "Jan 31 23:59:59.123",
        ]
    );
    // After a new start the counters begin at zero.
    assert_eq!(cells(&status(10, 1, 9), &status(0, 0, 0), None, &["insert", "flushes", "net_in"]), ["-", "-", "-"]);
}

#[test]
fn mongod_counts_operations_of_its_set_apart() {
    let status = |own: i64, applied: i64| {
        format!(
            "{{process: 'mongod', opcounters: {{insert: {own}, delete: 0, command: {own}}},
              opcountersRepl: {{insert: {applied}, delete: {applied}, command: 0}},
              wiredTiger: {{cache: {{'maximum bytes configured': 200, 'bytes currently in the cache': 100,
                'tracked dirty bytes in the cache': 1}}, transaction: {{'transaction checkpoints': {own}}}}},
              repl: {{setName: 'rs', secondary: true}}}}"
        )
    };
    let names = ["insert", "delete", "command", "update", "dirty", "used", "held", "flushes", "set", "repl"];
    assert_eq!(
        cells(&status(0, 0), &status(4, 14), None, &names),
        ["2|7", "*7", "2|0", "-", "0.5%", "50.0%", "-", "4", "rs", "SEC"]
    );
    assert_eq!(cells(&status(0, 0), &status(4, 0), None, &["insert", "delete"]), ["2", "*0"]);
}

#[test]
fn members_have_a_state_and_a_lag() {
    let member = |state: i32, seconds: i32, own: &str| {
        format!("{{state: {state}, optimeDate: ISODate('2026-01-31T00:00:{seconds:02}Z'){own}}}")
    };
    let set = |state: i32, members: &[String]| format!("{{myState: {state}, members: [{}]}}", members.join(", "));
    let shown = |repl: &str, set: &str| {
        let status = format!("{{repl: {repl}}}");
        cells(&status, &status, Some(set), &["repl", "lag"])
    };
    let behind = set(2, &[member(1, 9, ""), member(2, 5, ", self: true")]);
    assert_eq!(shown("{setName: 'rs', secondary: true}", &behind), ["SEC", "4s"]);
    let without_primary = set(2, &[member(2, 9, ""), member(2, 7, ", self: true")]);
    assert_eq!(shown("{setName: 'rs', secondary: true}", &without_primary), ["SEC", "2s"]);
    // The primary's own view of a secondary may be newer than the primary.
    let primary = set(1, &[member(1, 9, ", self: true"), member(2, 10, "")]);
    assert_eq!(shown("{setName: 'rs', isWritablePrimary: true}", &primary), ["PRI", "0s"]);
    let arbiter = "{myState: 7, members: [{state: 7, self: true}, {state: 1}]}";
    assert_eq!(shown("{setName: 'rs', arbiterOnly: true}", arbiter), ["ARB", "-"]);
    assert_eq!(shown("{setName: 'rs'}", "{myState: 3, members: []}"), ["REC", "-"]);
    assert_eq!(cells("{process: 'mongos'}", "{process: 'mongos'}", None, &["repl"]), ["RTR"]);
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}
