//! Time series and views in dumps of other servers: ours has neither, says so by name, and writes nothing of them.

mod peer;
mod tool;

use bunko_bson::{DocumentBuf, Timestamp};
use peer::{Running, binary};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tool::{Dumped, archive, collections, connect, documents, fail, succeed, text, write_archive};

const SERIES: &str = "shop.weather: failed, 0 document(s), 0 bytes
  create refused: the option 'timeseries' of 'create' is not supported (code 115, CommandNotSupported)";
const VIEW: &str = "shop.recent: failed, 0 document(s), 0 bytes
  create refused: the option 'viewOn' of 'create' is not supported (code 115, CommandNotSupported)";
const BARE: &str = "shop.weather: the dump has the buckets of this time series, and not the metadata";

/// A copy of the dump in `hand_made`: a restore leaves files beside what it reads.
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

    /// The same as an archive, with an oplog: a measurement came while the dump was made.
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

#[test]
fn each_form_names_what_the_server_has_not_and_restores_the_rest() {
    let running = Running::start();
    let mut connection = connect(running.address());
    let dump = HandMade::copy();
    let (root, of_database, as_archive) = (dump.root(), dump.root().join("shop"), dump.archive());
    let forms: [(&[&str], usize); 5] = [
        (&[text(&root)], 2),
        (&[text(&of_database), "--db=shop"], 2),
        (&[&as_archive], 2),
        (&[&as_archive, "--oplogReplay"], 3),
        (&[text(&root), "--noOptionsRestore"], 2),
    ];
    for (form, orders) in forms {
        let said = fail("restore", running.address(), &[form, &["--drop"]].concat());
        assert!(said.contains(SERIES) && said.contains(VIEW), "{form:?}: {said}");
        assert_eq!(collections(&mut connection, "shop"), ["orders"], "{form:?}");
        assert_eq!(documents(&mut connection, "shop", "orders").len(), orders, "{form:?}");
    }
    let said = fail("restore", running.address(), &[text(&root), "--stopOnError", "--nsInclude=shop.weather"]);
    let first =
        "bunko: shop.weather: the option 'timeseries' of 'create' is not supported (code 115, CommandNotSupported)";
    assert!(said.contains(first), "{said}");
    let dbpath = dump.0.path().join("data");
    let output = Command::new(binary()).args(["restore", "--dbpath"]).args([&dbpath, &root]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains(SERIES) && said.contains(VIEW), "{said}");
}

#[test]
fn one_file_of_a_time_series_is_no_collection() {
    let running = Running::start();
    let mut connection = connect(running.address());
    let dump = HandMade::copy();
    let buckets = dump.file("system.buckets.weather.bson");
    let of = |collection| [text(&buckets), "--db=shop", "--collection", collection];
    for collection in ["weather", "system.buckets.weather"] {
        let said = fail("restore", running.address(), &of(collection));
        assert!(said.contains(SERIES), "{collection}: {said}");
    }
    fs::remove_file(dump.file("weather.metadata.json")).expect("removed");
    let said = fail("restore", running.address(), &of("weather"));
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
