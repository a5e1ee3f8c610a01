//! `bunko sample` as a process.

use crate::peer::{Running, binary};
use crate::tool::{collections, connect, fail, run, succeed};
use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_client::Connection;
use std::process::Command;

fn count(connection: &mut Connection, database: &str, collection: &str) -> f64 {
    let count = DocumentBuf::new().with("count", collection);
    let reply = connection.run_command(database, count.as_ref()).expect("counted");
    reply.as_ref().get("n").and_then(number::as_f64).expect("a number")
}

fn index_names(connection: &mut Connection, database: &str, collection: &str) -> Vec<String> {
    let list = DocumentBuf::new().with("listIndexes", collection);
    let listed = connection.find_all(database, list.as_ref()).expect("listed");
    let name = |index: DocumentBuf| index.as_ref().get("name").and_then(ValueRef::as_str).map(str::to_owned);
    listed.filter_map(|index| name(index.expect("listed"))).collect()
}

#[test]
fn data_sets_are_loaded_once_and_replaced_on_request() {
    let running = Running::start();
    let (address, mut connection) = (running.address(), connect(running.address()));
    let output = run("sample", address, &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("library.loans: 2500 documents, 2 index(es) made\n"), "{said}");
    assert_eq!(collections(&mut connection, "library"), ["books", "loans", "members"]);
    assert_eq!(count(&mut connection, "library", "books"), 400.0);
    assert_eq!(index_names(&mut connection, "library", "books"), ["_id_", "author_year", "genres"]);
    let refused = fail("sample", address, &["library"]);
    let words = "these collections exist: library.books, library.members, library.loans; --drop replaces them";
    assert!(refused.contains(words), "{refused}");
    assert_eq!(count(&mut connection, "library", "books"), 400.0);
    succeed("sample", address, &["--drop"]);
    assert_eq!(count(&mut connection, "library", "loans"), 2500.0);
    succeed("sample", address, &["weather", "--db", "island"]);
    assert_eq!(count(&mut connection, "island", "readings"), 12_096.0);
    assert!(collections(&mut connection, "island").contains(&"system.buckets.readings".to_owned()));
    assert_eq!(index_names(&mut connection, "island", "stations"), ["_id_", "location"]);
}

#[test]
fn data_sets_are_listed_without_a_server() {
    let sample = |arguments: &[&str]| Command::new(binary()).arg("sample").args(arguments).output().expect("it runs");
    let listed = sample(&["--list"]);
    let text = String::from_utf8_lossy(&listed.stdout);
    assert!(
        listed.status.success() && text.contains("library") && text.contains("readings   12096 documents"),
        "{text}"
    );
    for (arguments, words) in [
        (&["shop"][..], "there is no data set 'shop'; there are: library, weather"),
        (&["--list", "--drop"], "cannot be used with"),
        (&["--uri", "mongodb://h/a", "--db", "b"], "--db b: the database in --uri is 'a'"),
    ] {
        let refused = sample(arguments);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
}
