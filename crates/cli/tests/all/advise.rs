//! `bunko advise` as a process, against a server that lacks indexes and has useless ones.

use crate::peer::{Running, binary};
use crate::tool::{connect, insert};
use bunko_bson::DocumentBuf;
use std::process::Command;

/// Runs the tool; returns its status and its report.
fn advise(running: &Running, arguments: &[&str]) -> (Option<i32>, serde_json::Value) {
    let uri = format!("mongodb://{}/?directConnection=true", running.address());
    let output = Command::new(binary()).arg("advise").arg(uri).arg("--json").args(arguments).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{output:?}"));
    (output.status.code(), report)
}

fn advice_of(report: &serde_json::Value, kind: &str) -> Vec<String> {
    let advice = report["advice"].as_array().expect("a list");
    let of_kind = advice.iter().filter(|advice| advice["kind"] == kind);
    of_kind.map(|advice| advice["command"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn missing_and_useless_indexes_are_named_and_their_advice_pays() {
    let running = Running::start();
    let mut peer = running.peer();
    let documents: Vec<_> = (0..5_000)
        .map(|number| {
            DocumentBuf::new()
                .with("_id", number)
                .with("mail", format!("m{number}").as_str())
                .with("group", number % 500)
                .with("at", number)
                .with("flag", number % 2 == 0)
        })
        .collect();
    insert(&mut connect(running.address()), "shop", "users", &documents);
    for command in [
        "{createIndexes: 'users', indexes: [{key: {flag: 1}, name: 'flag'}, {key: {at: 1}, name: 'at'}, {key: {at: 1, mail: 1}, name: 'at_mail'}]}",
        "{profile: 2}",
        "{find: 'users', filter: {mail: 'm7'}}",
        "{find: 'users', filter: {mail: 'm8'}}",
        "{find: 'users', filter: {group: 3}, sort: {at: -1}, limit: 2}",
        "{aggregate: 'users', pipeline: [{$match: {group: 9, mail: {$gt: 'm4'}}}], cursor: {}}",
        // No index pays: half of the documents match.
        "{find: 'users', filter: {missing: null}, limit: 3}",
        // An index is there.
        "{find: 'users', filter: {at: 5}}",
        "{profile: 0}",
    ] {
        let reply = peer.text("shop", command);
        assert!(reply.ends_with("ok: 1.0}"), "{command}: {reply}");
    }
    let (status, report) = advise(&running, &["--unused-days", "0"]);
    assert_eq!(status, Some(3), "{report:#}");
    let users = r#"db.getSiblingDB("shop").getCollection("users")"#;
    let missing = advice_of(&report, "missingIndex");
    for key in [r#"{"mail": 1}"#, r#"{"group": 1, "at": -1}"#, r#"{"group": 1, "mail": 1}"#] {
        assert!(missing.contains(&format!("{users}.createIndex({key})")), "{key}: {report:#}");
    }
    assert_eq!(missing.len(), 3, "{report:#}");
    assert_eq!(advice_of(&report, "redundantIndex"), [format!("{users}.dropIndex(\"at\")")]);
    assert_eq!(advice_of(&report, "unselectiveIndex").len(), 1, "{report:#}");
    assert!(advice_of(&report, "unusedIndex").contains(&format!("{users}.hideIndex(\"flag\")")), "{report:#}");

    // After the advice was followed, there is none of its kind, and the queries read what was promised.
    for command in [
        "{createIndexes: 'users', indexes: [{key: {mail: 1}, name: 'm'}, {key: {group: 1, at: -1}, name: 'g'}, {key: {group: 1, mail: 1}, name: 'gm'}]}",
        "{dropIndexes: 'users', index: 'at'}",
        "{dropIndexes: 'users', index: 'flag'}",
    ] {
        assert!(peer.text("shop", command).ends_with("ok: 1.0}"));
    }
    let (_, report) = advise(&running, &[]);
    assert_eq!(report["advice"], serde_json::json!([]), "{report:#}");
    let explained = peer.text("shop", "{explain: {find: 'users', filter: {mail: 'm7'}}, verbosity: 'executionStats'}");
    assert!(explained.contains("totalDocsExamined: 1,"), "{explained}");
}

#[test]
fn a_report_reads_as_text() {
    let running = Running::start();
    let uri = format!("mongodb://{}/?directConnection=true", running.address());
    let output = Command::new(binary()).args(["advise", &uri]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 collections, 0 operations read"), "{said}");
    assert!(said.ends_with("No advice.\n"), "{said}");
}

#[test]
fn statistics_of_queries_are_evidence_without_a_profile() {
    let running = Running::start();
    let mut peer = running.peer();
    let documents: Vec<_> = (0..5_000)
        .map(|number| {
            DocumentBuf::new().with("_id", number).with("mail", format!("m{number}").as_str()).with("at", number)
        })
        .collect();
    insert(&mut connect(running.address()), "shop", "users", &documents);
    peer.run("admin", "{setParameter: 1, internalQueryStatsRateLimit: -1}");
    for number in 0..20 {
        peer.run("shop", &format!("{{find: 'users', filter: {{mail: 'm{number}', at: {{$gte: 0}}}}}}"));
        peer.run("shop", &format!("{{find: 'users', filter: {{at: {{$gte: {number}}}}}, limit: 5}}"));
    }
    peer.run("admin", "{setParameter: 1, internalQueryStatsRateLimit: 0}");
    let (status, report) = advise(&running, &[]);
    assert_eq!(status, Some(3), "{report:#}");
    let command = r#"db.getSiblingDB("shop").getCollection("users").createIndex({"mail": 1, "at": 1})"#;
    assert_eq!(advice_of(&report, "missingIndex"), [command], "{report:#}");
    let evidence = report["advice"][0]["evidence"].as_str().expect("text");
    assert!(evidence.starts_with("20 operations by mail, at") && evidence.contains("each reads 5000"), "{evidence}");
}
