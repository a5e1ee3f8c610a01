//! A user who may only read and write one database: a proxy in front of a server answers as a server with users would.

use crate::lab::proxy;
use crate::peer::Running;
use crate::tool::{
    Dumped, archive, collections, connect, documents, drop_database, fail, insert, succeed, text, write_archive,
};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use std::net::SocketAddr;

const DATABASE: &str = "shop";

/// Refuses commands as a server would to a user with `readWrite` on [`DATABASE`] alone. `hello` is allowed for every
/// client.
fn only_one_database(command: DocumentRef<'_>) -> Option<DocumentBuf> {
    let name = command.first().expect("a command").name;
    let database = command.get("$db").and_then(ValueRef::as_str).unwrap_or_default();
    if database == DATABASE || matches!(name, "hello" | "isMaster" | "ismaster") {
        return None;
    }
    let message = format!("not authorized on {database} to execute command {{ {name}: 1 }}");
    let refusal = DocumentBuf::new().with("ok", 0.0).with("errmsg", message.as_str());
    Some(refusal.with("code", 13_i32).with("codeName", "Unauthorized"))
}

/// A server, and the address of the proxy through which this user reaches it.
fn restricted() -> (Running, SocketAddr) {
    let running = Running::start();
    let port = proxy::start(running.address(), only_one_database);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let indexes = "{createIndexes: 'orders', indexes: [{key: {n: 1}, name: 'n_1'}]}";
    assert!(running.peer().text(DATABASE, indexes).contains("ok: 1.0"));
    // More than a megabyte: the ends of smaller collections are not queried.
    let order = |id: i32| DocumentBuf::new().with("_id", id).with("n", id).with("pad", "x".repeat(1000).as_str());
    insert(&mut connect(running.address()), DATABASE, "orders", &(0..3000).map(order).collect::<Vec<_>>());
    insert(&mut connect(running.address()), "secret", "kept", &[DocumentBuf::new().with("_id", 1)]);
    (running, address)
}

#[test]
fn one_database_is_dumped_and_restored_with_rights_on_that_alone() {
    let (running, address) = restricted();
    let mut connection = connect(running.address());
    let before = documents(&mut connection, DATABASE, "orders");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (file, files) = (archive(&directory.path().join("a")), directory.path().join("files"));
    succeed("dump", address, &["--db", DATABASE, &file]);
    succeed("dump", address, &["--db", DATABASE, "--collection=orders", "--out", text(&files)]);
    let of_database = files.join(DATABASE);
    for form in [&[file.as_str(), "--db", DATABASE][..], &[&file], &[text(&of_database), "--db", DATABASE]] {
        for flags in [&["--verify"][..], &["--verify", "--drop"], &["--verify", "--noBulk", "--resume"]] {
            if !flags.contains(&"--drop") {
                drop_database(&mut connection, DATABASE);
            }
            let said = succeed("restore", address, &[form, flags].concat());
            assert!(said.contains("verified"), "{form:?} {flags:?}: {said}");
            assert!(documents(&mut connection, DATABASE, "orders") == before, "{form:?} {flags:?}");
        }
    }
}

/// A dump of a whole server also contains databases that this user may not write.
#[test]
fn collections_that_are_not_chosen_from_a_dump_are_not_touched() {
    let (running, address) = restricted();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("whole.archive");
    let dumped = |database, name, id: &str| Dumped {
        database,
        name,
        kind: "collection",
        block: name,
        documents: DocumentBuf::new().with("_id", id).into_bytes(),
        ..Dumped::default()
    };
    let whole = [
        dumped("admin", "system.users", "shop.anna"),
        dumped("admin", "system.roles", "shop.clerk"),
        dumped("secret", "more", "x"),
        dumped(DATABASE, "customers", "y"),
    ];
    write_archive(&path, &whole);
    for choice in [&["--db", DATABASE][..], &["--nsInclude=shop.*"], &["--nsExclude=secret.*", "--nsExclude=admin.*"]] {
        succeed("restore", address, &[&[archive(&path).as_str(), "--drop"], choice].concat());
        assert_eq!(documents(&mut connect(running.address()), DATABASE, "customers").len(), 1, "{choice:?}");
        assert_eq!(collections(&mut connect(running.address()), "admin"), ["system.version"], "{choice:?}");
    }
    let said = fail("restore", address, &[&archive(&path), "--drop"]);
    assert!(said.contains("secret.more: failed") && said.contains("(code 13, Unauthorized)"), "{said}");
}

#[test]
fn a_dump_of_everything_says_what_is_missing() {
    let (_running, address) = restricted();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let out = directory.path().join("out");
    let said = fail("dump", address, &["--out", text(&out)]);
    let expected = "bunko: the databases cannot be listed: not authorized on admin to execute command { listDatabases: 1 } \
                    (code 13, Unauthorized). With --db, a database that the user may read is dumped";
    assert!(said.contains(expected), "{said}");
    assert!(!out.exists(), "an empty directory would pass for a whole dump");
    let said = fail("dump", address, &["--db=secret", "--out", text(&out)]);
    assert!(said.contains("secret: not authorized on secret") && said.contains("code 13"), "{said}");
}
