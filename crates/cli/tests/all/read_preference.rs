//! A dump sends each member of a replica set the read preference that this member needs before it serves reads.

#[path = "../../../client/tests/all/fake/mod.rs"]
#[allow(dead_code, reason = "the tests of `client` use the rest")]
mod fake;

use crate::peer;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use std::process::Command;
use std::sync::mpsc;

/// A secondary without databases, and a channel with the read preference of each `listDatabases`.
fn secondary() -> (String, mpsc::Receiver<String>) {
    let (listener, address) = fake::listener();
    let (sender, receiver) = mpsc::channel();
    let hosts: ArrayBuf = [address.as_str()].into_iter().collect();
    let role = DocumentBuf::new().with("setName", "rs0").with("secondary", true).with("hosts", &hosts);
    fake::serve(listener, move || {
        let (role, sender) = (role.clone(), sender.clone());
        move |name: &str, command: &DocumentBuf| match name {
            "isMaster" => role.clone().with("maxWireVersion", 25_i32).with("ok", 1.0),
            "listDatabases" => {
                let said = command.as_ref().get("$readPreference").and_then(ValueRef::as_document);
                let mode = said.and_then(|said| said.get("mode")?.as_str().map(str::to_owned));
                sender.send(mode.unwrap_or_default()).expect("the test listens");
                fake::ok().with("databases", &ArrayBuf::new())
            }
            _ => fake::ok(),
        }
    });
    (address, receiver)
}

#[test]
fn the_flag_goes_before_the_connection_string_and_both_before_what_the_role_needs() {
    let (address, said) = secondary();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cases = [
        ("directConnection=true", None, "primaryPreferred"),
        ("directConnection=true&readPreference=nearest", None, "nearest"),
        ("readPreference=secondaryPreferred", None, "secondaryPreferred"),
        ("readPreference=nearest", Some("--readPreference=secondary"), "secondary"),
    ];
    for (options, flag, expected) in cases {
        let uri = format!("mongodb://{address}/?{options}");
        let mut dump = Command::new(peer::binary());
        dump.args(["dump", "--quiet", "--uri", &uri, "--out"]).arg(directory.path()).args(flag);
        let output = dump.output().expect("the tool runs");
        assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(said.try_recv().as_deref(), Ok(expected), "{options} {flag:?}");
    }
}

/// A restore writes to the primary, whatever read preference the connection string has.
#[test]
fn a_restore_looks_for_the_primary() {
    let (address, _said) = secondary();
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("c.bson"), DocumentBuf::new().with("_id", 1).into_bytes()).expect("written");
    let uri = format!("mongodb://{address}/?replicaSet=rs0&readPreference=secondary&serverSelectionTimeoutMS=200");
    let mut restore = Command::new(peer::binary());
    restore
        .args(["restore", "--quiet", "--uri", &uri, "--db=a", "--collection=c"])
        .arg(directory.path().join("c.bson"));
    let output = restore.output().expect("the tool runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("no primary found"), "{said}");
}
