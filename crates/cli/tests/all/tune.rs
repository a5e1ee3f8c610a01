//! `bunko restore --tune` tries a dump on a server and leaves both unchanged.

use crate::peer::Running;
use crate::tool::{archive, collections, connect, documents, fail, insert, run, succeed, text};
use bunko_bson::DocumentBuf;

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

    let output = run("restore", running.address(), &["--tune", &file]);
    let told = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.starts_with("best") && told.contains("--numParallelCollections="), "{told}");
    let trials = String::from_utf8(output.stderr).expect("UTF-8");
    // Two trials of the defaults, then at least one for each other number.
    assert!(trials.lines().count() >= 11, "{trials}");
    assert!(
        trials.lines().all(|line| line.contains("docs/s") && line.contains("--numParallelCollections=")),
        "{trials}"
    );
    assert_eq!(collections(&mut connection, "bunko_tune"), Vec::<String>::new());
    assert!(documents(&mut connection, "shop", "orders") == loaded, "trials are made elsewhere");
    assert_eq!(std::fs::read_dir(directory.path()).expect("still there").count(), 1, "no state is left");
}

/// A dump of a whole server contains users and roles; trials must not touch the server's own.
#[test]
fn users_and_roles_are_left_out_of_trials() {
    let running = Running::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, documents: &[DocumentBuf]| {
        let path = directory.path().join("dump").join(name);
        std::fs::create_dir_all(path.parent().expect("has one")).expect("made");
        let bytes: Vec<u8> = documents.iter().flat_map(|document| document.as_ref().as_bytes().to_vec()).collect();
        std::fs::write(path, bytes).expect("written");
    };
    write("admin/system.users.bson", &[DocumentBuf::new().with("_id", "shop.anna").with("db", "shop")]);
    write("admin/system.roles.bson", &[DocumentBuf::new().with("_id", "shop.clerk").with("db", "shop")]);
    write("admin/system.version.bson", &[DocumentBuf::new().with("_id", "authSchema")]);
    write("shop/orders.bson", &(0..500).map(|number| DocumentBuf::new().with("_id", number)).collect::<Vec<_>>());
    // Users that an earlier restore left for the server to merge must stay.
    let mut connection = connect(running.address());
    let waiting = [DocumentBuf::new().with("_id", "waits")];
    insert(&mut connection, "admin", "tempusers", &waiting);

    let output = run("restore", running.address(), &["--tune", text(&directory.path().join("dump"))]);
    let told = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.starts_with("best"), "{told}");
    assert_eq!(collections(&mut connection, "bunko_tune"), Vec::<String>::new());
    assert_eq!(collections(&mut connection, "admin"), ["system.version", "tempusers"]);
    assert!(documents(&mut connection, "admin", "tempusers") == waiting);
}

#[test]
fn settings_that_cannot_be_tried_are_refused() {
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
