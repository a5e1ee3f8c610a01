//! Dumps to a disk that fills up, and restores into one: the error names file and cause, an incomplete dump is not
//! taken for a complete one, and `--resume` completes it once there is room.
//!
//! Needs root, loop devices and mkfs.ext4, so it runs only from `tests/full_disk/run`.

use crate::disk_image::{Mounted, sh};
use crate::peer::binary;
use crate::tool::{archive, connect, insert, text};
use bunko_bson::DocumentBuf;
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::random::Random;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Room for the documents, a log and its extents.
const DISK: &str = "600M";
/// Documents of a kilobyte each: too many for the space that the ballast leaves.
const DOCUMENTS: usize = 120_000;
const SMALL: usize = 10;
const MIB: u64 = 1024 * 1024;
/// Space that is left for a dump: more than the 64 MiB after which it records its progress.
const LEFT_FOR_DUMPS: u64 = 80 * MIB;
/// Space that is left for a data directory: enough for a part of the documents.
const LEFT_FOR_RESTORES: u64 = 80 * MIB;
/// Space in which not even a short first file of the log fits.
const LEFT_FOR_OPENING: u64 = 2 * MIB;

/// A small filesystem, and elsewhere a data directory with the documents to be dumped.
struct Disk {
    work: tempfile::TempDir,
    mounted: Mounted,
    source: tempfile::TempDir,
}

impl Disk {
    fn new() -> Self {
        let work = tempfile::tempdir().expect("temporary directory");
        let image = work.path().join("disk.ext4");
        sh("truncate", &["-s", DISK, text(&image)]);
        // No blocks are reserved for root, because the test runs as root.
        sh("mkfs.ext4", &["-q", "-F", "-m", "0", text(&image)]);
        let mounted = Mounted::new(&image, work.path().join("disk"));
        let source = temporary_dbpath();
        let server = Server::start(&binary(), source.path(), &[]).expect("the server starts");
        let mut connection = connect(server.address());
        insert(&mut connection, "shop", "large", &(0..DOCUMENTS).map(incompressible).collect::<Vec<_>>());
        for name in ["a", "b"] {
            insert(&mut connection, "shop", name, &(0..SMALL).map(incompressible).collect::<Vec<_>>());
        }
        Self { work, mounted, source }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.mounted.0.join(name)
    }

    /// Fills the disk up to that many free bytes.
    fn leave(&self, bytes: u64) {
        let room = rustix::fs::statvfs(&self.mounted.0).expect("a filesystem");
        let length = (room.f_bavail * room.f_frsize).saturating_sub(bytes).to_string();
        sh("fallocate", &["-l", &length, text(&self.path("ballast"))]);
    }

    /// Fills the disk completely.
    fn fill(&self) {
        let mut filling = fs::File::create(self.path("filling")).expect("an inode");
        // The last block is filled byte by byte.
        let bytes = vec![7; MIB as usize];
        for length in [bytes.len(), 4096, 1] {
            while filling.write(&bytes[..length]).is_ok() {}
        }
    }

    fn make_room(&self) {
        for name in ["ballast", "filling"] {
            let _ = fs::remove_file(self.path(name));
        }
    }

    /// Checks that the dump fails and its restore is refused, and that `--resume` completes the dump once there is
    /// room.
    fn check_dump(&self, to: &[&str], from: &str, path: &Path) {
        let dump = |flags: &[&str]| run(&[&["dump", "--dbpath", text(self.source.path())], to, flags].concat());
        let said = refused(&dump(&[]));
        let words = ["No space left on device", "make room, then give the same command with --resume"];
        assert!(said.contains(text(path)) && words.iter().all(|word| said.contains(word)), "{to:?}: {said}");
        for flags in [&["--dryRun"][..], &["--list"]] {
            let said = refused(&run(&[&["restore", from], flags].concat()));
            assert!(said.contains("this dump is not finished"), "{from} {flags:?}: {said}");
        }
        let said = refused(&dump(&["--resume"]));
        assert!(said.contains(words[1]), "still full: {said}");
        self.make_room();
        let said = succeeded(&dump(&["--resume"]));
        assert!(said.contains("of them by an earlier run"), "what was written is not written again: {said}");
        self.check_whole(from);
    }

    /// Checks that a restore of the dump brings back all documents.
    fn check_whole(&self, from: &str) {
        let copy = self.work.path().join("copy");
        let state = self.work.path().join("state");
        let restore = ["restore", "--dbpath", text(&copy), from, "--verify", "--resumeFile", text(&state)];
        check_restored(&succeeded(&run(&restore)));
        fs::remove_dir_all(&copy).expect("removed");
    }
}

/// A document of a kilobyte that hardly compresses.
fn incompressible(id: usize) -> DocumentBuf {
    let mut random = Random(id as u64);
    let pad: String = (0..1000).map(|_| char::from(b'0' + random.below(75) as u8)).collect();
    DocumentBuf::new().with("_id", id as i32).with("pad", pad.as_str())
}

struct Ended {
    code: Option<i32>,
    said: String,
}

fn run(arguments: &[&str]) -> Ended {
    let output = Command::new(binary()).args(arguments).output().expect("the tool runs");
    let said = format!("{arguments:?}\n{}", String::from_utf8_lossy(&output.stderr));
    Ended { code: output.status.code(), said }
}

fn refused(ended: &Ended) -> String {
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    ended.said.clone()
}

fn succeeded(ended: &Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    ended.said.clone()
}

fn check_restored(said: &str) {
    let all = DOCUMENTS + 2 * SMALL;
    assert!(said.contains(&format!("{all} document(s) restored, 0 failed")) && said.contains("verified"), "{said}");
}

#[test]
#[ignore = "needs root and loop devices; tests/full_disk/run runs it"]
fn a_dump_that_finds_no_room_goes_on_when_there_is() {
    let disk = Disk::new();
    let (file, files) = (disk.path("shop.archive"), disk.path("files"));
    let as_archive = archive(&file);
    for compression in [None, Some("--lz4")] {
        disk.leave(LEFT_FOR_DUMPS);
        let to: Vec<_> = [as_archive.as_str()].into_iter().chain(compression).collect();
        disk.check_dump(&to, &as_archive, &file);
        fs::remove_file(&file).expect("removed");
        disk.leave(LEFT_FOR_DUMPS);
        let to: Vec<_> = ["--out", text(&files)].into_iter().chain(compression).collect();
        disk.check_dump(&to, text(&files), &files);
        fs::remove_dir_all(&files).expect("removed");
    }
}

/// Not even the file with the dump's progress can be written.
#[test]
#[ignore = "needs root and loop devices; tests/full_disk/run runs it"]
fn a_dump_that_cannot_begin_leaves_nothing() {
    let disk = Disk::new();
    let (file, files) = (disk.path("shop.archive"), disk.path("files"));
    let as_archive = archive(&file);
    let existing = disk.path("existing");
    for (to, from, path) in [
        (&[as_archive.as_str()][..], as_archive.as_str(), &file),
        (&["--out", text(&files)], text(&files), &files),
        (&["--out", text(&existing)], text(&existing), &existing),
    ] {
        if path == &existing {
            fs::create_dir(&existing).expect("made");
        }
        disk.fill();
        let dump = |flags: &[&str]| run(&[&["dump", "--dbpath", text(disk.source.path())], to, flags].concat());
        let said = refused(&dump(&[]));
        let words = ["No space left on device", "nothing is written yet: make room, then give the same command again"];
        assert!(said.contains(text(path)) && words.iter().all(|word| said.contains(word)), "{to:?}: {said}");
        let left =
            if path == &existing { fs::read_dir(path).expect("there").count() } else { usize::from(path.exists()) };
        assert_eq!(left, 0, "{to:?}");
        disk.make_room();
        let said = succeeded(&dump(&["--resume"]));
        assert!(said.contains("nothing to continue, so the dump starts over"), "{said}");
        disk.check_whole(from);
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
    }
}

#[test]
#[ignore = "needs root and loop devices; tests/full_disk/run runs it"]
fn a_restore_into_a_directory_that_finds_no_room_goes_on_when_there_is() {
    let disk = Disk::new();
    let file = archive(&disk.work.path().join("shop.archive"));
    succeeded(&run(&["dump", "--dbpath", text(disk.source.path()), &file]));
    let data = disk.path("data");
    for flags in [&["--noBulk"][..], &[]] {
        let restore =
            |more: &[&str]| run(&[&["restore", "--dbpath", text(&data), &file, "--verify"], flags, more].concat());
        // There is no room for the first file of the log, however short.
        disk.leave(LEFT_FOR_OPENING);
        let said = refused(&restore(&[]));
        assert!(said.contains(text(&data)) && said.contains("no space left"), "{said}");
        // There is room for that file, but not for all documents.
        disk.make_room();
        disk.leave(LEFT_FOR_RESTORES);
        let said = refused(&restore(&["--resume"]));
        let words = ["starts over", "no space left", "OutOfDiskSpace", "shop.archive.restore-resume says how far"];
        assert!(said.contains(text(&data)) && words.iter().all(|word| said.contains(word)), "{flags:?}: {said}");
        disk.make_room();
        check_restored(&succeeded(&restore(&["--resume"])));
        fs::remove_dir_all(&data).expect("removed");
    }
}

#[test]
#[ignore = "needs root and loop devices; tests/full_disk/run runs it"]
fn a_restore_into_a_server_that_finds_no_room_goes_on_when_there_is() {
    let disk = Disk::new();
    let file = archive(&disk.work.path().join("shop.archive"));
    succeeded(&run(&["dump", "--dbpath", text(disk.source.path()), &file]));
    disk.leave(LEFT_FOR_RESTORES);
    let server = Server::start(&binary(), &disk.path("data"), &[]).expect("the server starts");
    let uri = format!("mongodb://{}/", server.address());
    // The second run fails while it drops the documents of the first.
    for flags in [&["--noBulk"][..], &["--drop"]] {
        let restore = |more: &[&str]| run(&[&["restore", "--uri", &uri, &file, "--verify"], flags, more].concat());
        let said = refused(&restore(&[]));
        let words =
            ["no space left", "(code 14031, OutOfDiskSpace)", "make room, then give the same command with --resume"];
        assert!(said.contains("shop.large: ") && words.iter().all(|word| said.contains(word)), "{flags:?}: {said}");
        disk.make_room();
        check_restored(&succeeded(&restore(&["--resume"])));
        // The server's log keeps its disk space.
        disk.fill();
    }
}

/// The restore's state file is by default beside the dump, on the full disk. A restore to another disk works without
/// it.
#[test]
#[ignore = "needs root and loop devices; tests/full_disk/run runs it"]
fn a_dump_on_a_full_disk_is_restored() {
    let disk = Disk::new();
    let file = archive(&disk.path("shop.archive"));
    succeeded(&run(&["dump", "--dbpath", text(disk.source.path()), &file]));
    disk.fill();
    let copy = disk.work.path().join("copy");
    let restore = ["restore", "--dbpath", text(&copy), &file, "--verify"];
    check_restored(&succeeded(&run(&restore)));
    // With `--resume` the state file is required.
    let said = refused(&run(&[&restore[..], &["--drop", "--resume"]].concat()));
    assert!(said.contains("shop.archive.restore-resume: No space left on device"), "{said}");
}
