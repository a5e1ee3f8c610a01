//! Power cuts, simulated by images of the disk: an ext4 image file on XFS is cloned while the server writes, moves
//! documents into extents, rewrites extents, and deletes segments.
//!
//! Needs root, loop devices and mkfs.xfs, so it runs only from `tests/power_cut/run`. `tests/planted/run` plants bugs
//! and shows that this test finds them.

use crate::disk_image::{Mounted, sh, text};
use crate::oracle::{
    Documents, Evidence, Ledger, Level, Load, check, compact, durable_engines, exactly, prepare, start,
};
use bunko_testkit::process::Server;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::Duration;

const CUTS: usize = 20;
const WRITERS: usize = 6;
/// Time before the first cut: the load needs that long to fill segments.
const RUN_UP: Duration = Duration::from_secs(3);

#[test]
#[ignore = "needs root and loop devices; tests/power_cut/run runs it"]
fn no_journaled_write_is_lost_by_a_power_cut() {
    let mut evidence = Evidence::default();
    for engine in durable_engines() {
        evidence.add(&survive_power_cuts(engine));
    }
    evidence.assert_complete();
}

fn survive_power_cuts(engine: &str) -> Evidence {
    let work = tempfile::tempdir().expect("temporary directory");
    let platter = work.path().join("platter.xfs");
    sh("truncate", &["-s", "8G", text(&platter)]);
    sh("mkfs.xfs", &["-q", "-m", "reflink=1", text(&platter)]);
    let platter = Mounted::new(&platter, work.path().join("platter"));
    let disk = platter.0.join("disk.ext4");
    sh("truncate", &["-s", "2G", text(&disk)]);
    sh("mkfs.ext4", &["-q", "-F", text(&disk)]);
    let mounted = Mounted::new(&disk, work.path().join("disk"));

    let mut server = start(engine, &mounted.0.join("data")).expect("the server starts");
    prepare(server.address());
    let ledger = Ledger::default();
    let load = Load::start(server.address(), WRITERS, Level::Journaled, &ledger);
    std::thread::sleep(RUN_UP);
    for cut in 0..CUTS {
        // Not a round number, so that cuts fall into all phases of syncs and checkpoints.
        std::thread::sleep(Duration::from_millis(400 + 53 * (cut as u64 % 5)));
        // Writes acknowledged before the image was taken must be in it; writes requested until it was complete may be.
        let promised = ledger.snapshot();
        let image = platter.0.join("cut.ext4");
        sh("cp", &["--reflink=always", text(&disk), text(&image)]);
        let asked = ledger.snapshot();
        let after = Mounted::new(&image, work.path().join("after"));
        while_stopped(&server, || recover(engine, &after.0.join("data"), &promised, &asked))
            .unwrap_or_else(|error| panic!("{engine}, cut {cut}: {error}"));
        drop(after);
        std::fs::remove_file(&image).expect("removed");
    }
    let evidence = load.join();
    println!("{engine}: {} writes, {evidence:?}", ledger.writes());
    assert!(ledger.writes() > CUTS as u64, "only {} writes", ledger.writes());
    server.kill();
    evidence
}

/// Stops the server under load during a call, which the load would slow down.
fn while_stopped<R>(server: &Server, call: impl FnOnce() -> R) -> R {
    let signal = |signal| {
        let pid = Pid::from_raw(server.pid() as i32).expect("a process");
        kill_process(pid, signal).expect("a child may be signalled");
    };
    signal(Signal::STOP);
    let outcome = call();
    signal(Signal::CONT);
    outcome
}

/// Starts twice from the state after a power cut: the second start is from what recovery and `compact` have written.
fn recover(engine: &str, dbpath: &Path, promised: &Documents, asked: &Documents) -> Result<(), String> {
    let mut server = start(engine, dbpath)?;
    let found = exactly(&check(server.address(), promised, asked)?);
    compact(server.address())?;
    server.kill();
    let mut server = start(engine, dbpath)?;
    check(server.address(), &found, &found).map_err(|error| format!("after compact: {error}"))?;
    server.kill();
    Ok(())
}
