//! Data directories that were made once and are checked in, in `data_directories`: for each format of ours that is read, one for each
//! durable engine.
//!
//! Engines read files whose formats belong to other crates: tables and versions of `lsm-tree` (whose archives are
//! `sfa`'s), pages of LMDB (by `heed`). `Cargo.toml` pins these crates; a change of a pin must still read the old files.
//! `BUNKO_CONFORMANCE_MAKE=1` makes the directories of the newest format, which a change of a format of our own needs.

use crate::damage::{contents, delete_last, insert};
use bunko_conformance::comparison::{self, Outcome};
use bunko_conformance::directory::Directory;
use bunko_conformance::document::KEYS;
use bunko_conformance::model::Model;
use bunko_conformance::roster;
use bunko_conformance::subject::{self, Subject};
use bunko_engines::Entry;
use bunko_store::{DescribedDirectory, Survival, describe};
use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::path::Path;

/// File of a directory that is kept, with a name and a length in bytes on each line.
const LENGTHS: &str = "lengths.txt";

/// A closed data directory, and its contents: two checkpoints, and deletions in the second.
fn make(own: &'static Entry) -> (Directory, Model) {
    let mut subject = Subject::new(own);
    let mut model = Model::default();
    let number = model.create(own.name, Survival::Durable);
    insert(subject.store(), &mut model, number, 0..KEYS - 10, 40);
    subject.store().checkpoint().expect("checkpoint");
    for _ in 0..5 {
        delete_last(subject.store(), &mut model, number);
    }
    insert(subject.store(), &mut model, number, KEYS - 10..KEYS, 30);
    let end = subject.store().statistics().log.next_lsn;
    subject.close();
    let directory = Directory::copy_of(subject.path());
    subject::remove_preallocated(&directory.path().join("log"), end);
    (directory, model)
}

/// Keeps the files of a data directory without the zeros at their ends, and their lengths.
fn keep(from: &Path, to: &Path) {
    let mut lengths = String::new();
    for (path, mut bytes) in contents(from) {
        let name = path.strip_prefix(from).expect("below");
        let _ = writeln!(lengths, "{} {}", name.display(), bytes.len());
        bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        fs::create_dir_all(to.join(name).parent().expect("a directory")).expect("made");
        fs::write(to.join(name), bytes).expect("written");
    }
    fs::write(to.join(LENGTHS), lengths).expect("written");
}

/// A copy of the data directory that was kept.
fn restored(kept: &Path) -> Directory {
    let directory = Directory::default();
    assert!(directory.fill(kept), "{} cannot be copied", kept.display());
    for line in fs::read_to_string(kept.join(LENGTHS)).expect("readable").lines() {
        let (name, length) = line.rsplit_once(' ').expect("a name and a length");
        let file = OpenOptions::new().write(true).open(directory.path().join(name)).expect("opens");
        file.set_len(length.parse().expect("a length")).expect("extended");
    }
    fs::remove_file(directory.path().join(LENGTHS)).expect("removed");
    directory
}

#[test]
fn files_that_are_checked_in_are_read() {
    roster::each_durable_engine(|own| {
        let (made, model) = make(own);
        let kept = |format: u32| {
            let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("data_directories");
            all.join(format.to_string()).join(own.name)
        };
        if std::env::var_os("BUNKO_CONFORMANCE_MAKE").is_some() {
            let newest = kept(*DescribedDirectory::READ.end());
            drop(fs::remove_dir_all(&newest));
            keep(made.path(), &newest);
        }
        for format in DescribedDirectory::READ {
            let copy = restored(&kept(format));
            check(copy.path(), (own, format), &model);
        }
    });
}

/// Starts on a directory of that format, and compares its documents; the directory then has the newest format.
fn check(directory: &Path, (own, format): (&'static Entry, u32), model: &Model) {
    let described = || describe(directory).expect("readable").expect("a manifest");
    assert_eq!((described().format, described().engine.as_deref()), (format, Some(own.name)));
    let outcome = || -> Outcome {
        let store = subject::open(directory, own)?;
        comparison::all(store.latest(), model)?;
        comparison::statistics(&store, model)?;
        // New files then lie beside the old ones.
        store.compact()?;
        comparison::all(&store.snapshot(), model)
    };
    outcome().unwrap_or_else(|found| panic!("{} of format {format}: {found:?}", own.name));
    assert!(described().is_current());
}
