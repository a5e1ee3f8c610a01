//! Directories of backups that were made once and are kept in the repository, one for each format: this version restores them.
//! `BUNKO_BACKUP_MAKE=1` makes that of the newest format, which a change of a format needs.

use super::{World, fail, said, succeed};
use crate::peer::Peer;
use crate::tool::text;
use bunko_testkit::directory::files_below;
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::temporary_dbpath;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Formats of directories of backups that this version reads.
const FORMATS: [u32; 2] = [1, 2];
/// File of a kept directory, with a name and a length in bytes on each line: files are kept without the zeros at their ends.
const LENGTHS: &str = "lengths.txt";
/// Documents in the image, and in all.
const DOCUMENTS: [i32; 2] = [20, 30];

fn kept(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../backup/directories").join(format.to_string())
}

/// A world whose backups have that format. Backups of format 2 are encrypted.
fn world_of(format: u32) -> World {
    if format == 1 { World::new("lsm") } else { World::encrypted("lsm") }
}

fn make(format: u32) {
    let (world, to) = (world_of(format), &kept(format));
    let insert = |range: std::ops::Range<i32>| {
        let documents: Vec<_> = range.map(|id| format!("{{_id: {id}, text: 'document {id}'}}")).collect();
        let insert = format!("{{insert: 'kept', documents: [{}]}}", documents.join(", "));
        assert!(world.peer().text("test", &insert).contains("ok: 1.0"));
    };
    insert(0..DOCUMENTS[0]);
    world.back_up(&[]);
    let follower = world.follow();
    let (_, image) = world.span().expect("a backup");
    wait_until("the image is over", || super::now_ms() > image + 10);
    insert(DOCUMENTS[0]..DOCUMENTS[1]);
    world.wait_until_archived(super::now_ms());
    drop(follower);
    drop(fs::remove_dir_all(to));
    let mut lengths = String::new();
    for path in files_below(&world.to()) {
        let name = path.strip_prefix(world.to()).expect("below");
        let mut bytes = fs::read(&path).expect("readable");
        writeln!(lengths, "{} {}", name.display(), bytes.len()).expect("a string takes all");
        bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        let to = to.join(name);
        fs::create_dir_all(to.parent().expect("a directory")).expect("made");
        fs::write(to, bytes).expect("written");
    }
    fs::write(to.join(LENGTHS), lengths).expect("written");
}

/// Puts a copy of the kept directory where a world has its backups.
fn take(from: &Path, to: &Path) {
    for line in fs::read_to_string(from.join(LENGTHS)).expect("readable").lines() {
        let (name, length) = line.rsplit_once(' ').expect("a name and a length");
        let path = to.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::copy(from.join(name), &path).expect("copied");
        let file = fs::OpenOptions::new().write(true).open(&path).expect("opens");
        file.set_len(length.parse().expect("a length")).expect("extended");
    }
}

#[test]
fn backups_of_each_format_are_restored() {
    if std::env::var_os("BUNKO_BACKUP_MAKE").is_some() {
        make(*FORMATS.last().expect("a format"));
    }
    for format in FORMATS {
        let world = world_of(format);
        take(&kept(format), &world.to());
        succeed(&mut world.backup(&["--verify"]));
        let (first, _) = world.span().expect("a backup");
        for (to_ms, count) in [(Some(first), DOCUMENTS[0]), (None, DOCUMENTS[1])] {
            let (_directory, server) = world.restored(to_ms);
            let mut peer = Peer::connect(server.address());
            assert_eq!(peer.text("test", "{count: 'kept'}"), format!("{{n: {count}, ok: 1.0}}"), "format {format}");
            let last = format!("{{count: 'kept', query: {{text: 'document {}'}}}}", count - 1);
            assert_eq!(peer.text("test", &last), "{n: 1, ok: 1.0}");
        }
    }
}

#[test]
fn backups_of_a_later_version_are_refused_with_what_to_do() {
    let world = World::new("lsm");
    world.peer().run("test", "{insert: 'c', documents: [{_id: 1}]}");
    world.back_up(&[]);
    let manifest = files_below(&world.to().join("backups")).remove(0);
    let whole = fs::read_to_string(&manifest).expect("readable");
    let (json, _) = whole.split_once('\n').expect("two lines");
    for (field, advice) in [("\"format\":1", "use that version"), ("\"dataFormat\":6", "restore it with the version")] {
        assert!(json.contains(field), "{json}");
        let (name, number) = field.split_once(':').expect("a number");
        let later = json.replacen(field, &format!("{name}:{number}9"), 1);
        let checksum = crc32c::crc32c(later.as_bytes());
        fs::write(&manifest, format!("{later}\n{checksum:08x}\n")).expect("written");
        let refused = world.restore(&world.scratch.path().join("restored"), None);
        assert!(!refused.status.success() && said(&refused).contains(advice), "{field}: {}", said(&refused));
        assert!(!world.scratch.path().join("restored").exists());
    }
    fs::write(&manifest, whole).expect("written");
    fs::write(world.to().join("bunko-backup.json"), "{\"format\":9}\n").expect("written");
    for mut command in [world.backup(&["--list"]), world.backup(&["--uri", &world.uri()])] {
        let refused = fail(&mut command);
        assert!(refused.contains("format 9") && refused.contains("use that version"), "{refused}");
    }
    let dbpath = temporary_dbpath();
    assert!(
        said(&world.restore(&dbpath.path().join("new"), None)).contains("use that version"),
        "{}",
        text(dbpath.path())
    );
}
