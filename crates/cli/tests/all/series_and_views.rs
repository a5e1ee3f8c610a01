//! Time series and views in dumps of other servers: they are restored completely.

use crate::peer::{Running, binary};
use crate::tool::{
    Dumped, archive, collections, connect, documents, drop_database, fail, succeed, text, write_archive,
};
use bunko_bson::{DocumentBuf, Timestamp};
use bunko_client::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const BARE: &str = "shop.weather: the dump has the buckets of this time series, and not the metadata";

/// A copy of the dump in `hand_made`, because a restore writes its state file beside the dump.
struct HandMade(tempfile::TempDir);

impl HandMade {
    fn copy() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir_all(directory.path().join("dump/shop")).expect("made");
        let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hand_made/shop");
        for entry in fs::read_dir(made).expect("the fixture") {
            let from = entry.expect("the fixture").path();
            let to = directory.path().join("dump/shop").join(from.file_name().expect("a file"));
            fs::copy(&from, to).expect("copied");
        }
        Self(directory)
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("dump")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root().join("shop").join(name)
    }

    /// An archive of the dump with an oplog: a measurement was inserted while the dump was made.
    fn archive(&self) -> String {
        let metadata =
            |name: &str| fs::read_to_string(self.file(&format!("{name}.metadata.json"))).expect("the fixture");
        let data = |name: &str| fs::read(self.file(&format!("{name}.bson"))).expect("the fixture");
        let entry = |increment: u32, namespace: &str, id: i32| {
            let entry = DocumentBuf::new().with("ts", Timestamp { seconds: 1, increment }).with("op", "i");
            entry.with("ns", namespace).with("o", &DocumentBuf::new().with("_id", id)).into_bytes()
        };
        let oplog = [entry(1, "shop.system.buckets.weather", 9), entry(2, "shop.orders", 3)].concat();
        let path = self.0.path().join("shop.archive");
        let of_shop = |name, kind, block, documents| Dumped {
            database: "shop",
            name,
            kind,
            block,
            metadata: metadata(name),
            documents,
        };
        write_archive(
            &path,
            &[
                of_shop("weather", "timeseries", "system.buckets.weather", data("system.buckets.weather")),
                of_shop("orders", "collection", "orders", data("orders")),
                of_shop("recent", "view", "recent", Vec::new()),
                Dumped { name: "oplog", block: "oplog", documents: oplog, ..Dumped::default() },
            ],
        );
        archive(&path)
    }
}

/// Number of documents that a view or a collection shows.
fn count(connection: &mut Connection, collection: &str) -> usize {
    documents(connection, "shop", collection).len()
}

#[test]
fn each_form_restores_series_and_views() {
    let running = Running::start();
    let mut connection = connect(running.address());
    let dump = HandMade::copy();
    let (root, of_database, as_archive) = (dump.root(), dump.root().join("shop"), dump.archive());
    let forms: [&[&str]; 3] = [&[text(&root)], &[text(&of_database), "--db=shop"], &[&as_archive]];
    for form in forms {
        succeed("restore", running.address(), &[form, &["--drop"]].concat());
        let names = ["orders", "recent", "system.buckets.weather", "system.views", "weather"];
        assert_eq!(collections(&mut connection, "shop"), names, "{form:?}");
        let counts = ["orders", "recent", "weather"].map(|name| count(&mut connection, name));
        assert_eq!(counts, [2, 1, 5], "{form:?}");
        drop_database(&mut connection, "shop");
    }
    let dbpath = dump.0.path().join("data");
    let output = Command::new(binary()).args(["restore", "--dbpath"]).args([&dbpath, &root]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn one_file_of_a_time_series_is_restored_as_one() {
    let running = Running::start();
    let mut connection = connect(running.address());
    let dump = HandMade::copy();
    let buckets = dump.file("system.buckets.weather.bson");
    succeed("restore", running.address(), &[text(&buckets), "--db=shop", "--collection", "weather"]);
    assert_eq!(count(&mut connection, "weather"), 5);
    drop_database(&mut connection, "shop");
    fs::remove_file(dump.file("weather.metadata.json")).expect("removed");
    let said = fail("restore", running.address(), &[text(&buckets), "--db=shop", "--collection", "weather"]);
    assert!(said.contains(BARE), "{said}");
    assert_eq!(collections(&mut connection, "shop"), Vec::<String>::new());
}

#[test]
fn buckets_without_their_series_stop_the_restore_before_it_begins() {
    let running = Running::start();
    let mut connection = connect(running.address());
    let dump = HandMade::copy();
    fs::remove_file(dump.file("weather.metadata.json")).expect("removed");
    let root = dump.root();
    let said = fail("restore", running.address(), &[text(&root)]);
    assert!(said.contains(BARE) && said.contains("--nsExclude 'shop.weather'"), "{said}");
    assert_eq!(collections(&mut connection, "shop"), Vec::<String>::new());
    succeed("restore", running.address(), &[text(&root), "--nsExclude=shop.weather", "--nsExclude=shop.recent"]);
    assert_eq!(documents(&mut connection, "shop", "orders").len(), 2);
}
