//! `bunko restore --tune` tries a dump on a server and leaves both as they were.

mod peer;
mod tool;

use bunko_bson::DocumentBuf;
use peer::Running;
use tool::{archive, collections, connect, documents, fail, insert, run, succeed};

#[test]
fn tuning_tells_flags_and_leaves_nothing_behind() {
    let running = Running::start();
    let mut connection = connect(running.address());
    let loaded: Vec<_> = (0..2_000).map(|number| DocumentBuf::new().with("_id", number)).collect();
    insert(&mut connection, "shop", "orders", &loaded);
    insert(&mut connection, "shop", "customers", &loaded);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = archive(&directory.path().join("dump"));
    succeed("dump", running.address(), &["--db", "shop", &file]);

    let output = run("restore", running.address(), &["--tune", "--drop", &file]);
    let told = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.starts_with("best") && told.contains("--numParallelCollections="), "{told}");
    let trials = String::from_utf8(output.stderr).expect("UTF-8");
    // The defaults twice, then at least one for each other number.
    assert!(trials.lines().count() >= 11, "{trials}");
    assert!(
        trials.lines().all(|line| line.contains("docs/s") && line.contains("--numParallelCollections=")),
        "{trials}"
    );
    assert_eq!(collections(&mut connection, "bunko_tune"), Vec::<String>::new());
    assert!(documents(&mut connection, "shop", "orders") == loaded, "--drop is not for trials");
    assert_eq!(std::fs::read_dir(directory.path()).expect("still there").count(), 1, "no state is left");
}

#[test]
fn what_cannot_be_tried_is_refused() {
    let running = Running::start();
    let mut connection = connect(running.address());
    assert!(fail("restore", running.address(), &["--tune", "--archive"]).contains("standard input"));
    insert(&mut connection, "bunko_tune", "precious", &[DocumentBuf::new().with("_id", 1)]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = archive(&directory.path().join("dump"));
    succeed("dump", running.address(), &["--db", "bunko_tune", &file]);
    assert!(fail("restore", running.address(), &["--tune", &file]).contains("'bunko_tune', which is there"));
    assert_eq!(collections(&mut connection, "bunko_tune"), ["precious"]);
}
