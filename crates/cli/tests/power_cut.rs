//! Power cuts, as images of the disk at an instant: an ext4 image file on XFS is cloned while the server writes.
//!
//! Needs root, loop devices and mkfs.xfs, so it runs only from `tests/power_cut/run`. Shown to fail by
//! `tests/planted/run`, which plants `no fdatasync`.

mod disk_image;
mod oracle;

use bunko_testkit::process::Server;
use disk_image::{Mounted, sh, text};
use oracle::{Acknowledged, Level, Writers, binary, check, prepare};
use std::time::Duration;

const CUTS: usize = 20;

#[test]
#[ignore = "needs root and loop devices; tests/power_cut/run runs it"]
fn no_journaled_document_is_lost_by_a_power_cut() {
    let work = tempfile::tempdir().expect("temporary directory");
    let platter = work.path().join("platter.xfs");
    sh("truncate", &["-s", "3G", text(&platter)]);
    sh("mkfs.xfs", &["-q", "-m", "reflink=1", text(&platter)]);
    let platter = Mounted::new(&platter, work.path().join("platter"));
    let disk = platter.0.join("disk.ext4");
    sh("truncate", &["-s", "1G", text(&disk)]);
    sh("mkfs.ext4", &["-q", "-F", text(&disk)]);
    let mounted = Mounted::new(&disk, work.path().join("disk"));

    let dbpath = mounted.0.join("data");
    let mut server = Server::start(&binary(), &dbpath, &[]).expect("the server starts");
    prepare(server.address());
    let acknowledged = Acknowledged::default();
    let writers = Writers::start(server.address(), 8, 0, Level::Journaled, &acknowledged);
    for cut in 0..CUTS {
        std::thread::sleep(Duration::from_millis(150 + 53 * (cut as u64 % 5)));
        // What was acknowledged before the image was taken must be in it.
        let promised = acknowledged.snapshot();
        let image = platter.0.join("cut.ext4");
        sh("cp", &["--reflink=always", text(&disk), text(&image)]);
        let after = Mounted::new(&image, work.path().join("after"));
        let mut recovered = Server::start(&binary(), &after.0.join("data"), &[])
            .unwrap_or_else(|error| panic!("cut {cut}: the server does not start: {error}"));
        check(recovered.address(), &promised).unwrap_or_else(|error| panic!("cut {cut}: {error}"));
        recovered.kill();
        drop(after);
        std::fs::remove_file(&image).expect("removed");
    }
    writers.join();
    assert!(acknowledged.snapshot().len() > CUTS, "only {} writes", acknowledged.snapshot().len());
    server.kill();
}
