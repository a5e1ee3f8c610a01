//! Backups of a server's files and log: restores to moments, kills of server and backup, damaged targets.

mod bucket;
mod damages;
mod encrypted;
mod kept;
pub mod writer;

use crate::peer::{Peer, binary};
use crate::tool::{connect, text};
use bunko_backup::{Place, Surroundings, format_ms};
use bunko_host::Clock;
use bunko_testkit::patience::{wait_for, wait_until};
use bunko_testkit::process::{Server, fixed_port, temporary_dbpath};
use bunko_testkit::random::Random;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use writer::{Writer, now_ms};

/// A server at a port that stays the same after kills, and a directory of backups.
struct World {
    port: u16,
    data: TempDir,
    scratch: TempDir,
    engine: &'static str,
    server: Option<Server>,
    /// The file of the keys of encrypted backups.
    key_file: Option<PathBuf>,
    /// The address of the backups; `None` for a directory.
    place: Option<String>,
    /// Environment variables of the processes that make and read backups.
    variables: Vec<(String, String)>,
}

impl World {
    fn new(engine: &'static str) -> Self {
        let (data, scratch) = (temporary_dbpath(), temporary_dbpath());
        let mut world = Self {
            port: fixed_port(),
            data,
            scratch,
            engine,
            server: None,
            key_file: None,
            place: None,
            variables: Vec::new(),
        };
        world.start(&[]);
        world
    }

    /// Starts the server. A killed one may hold its port for a moment.
    fn start(&mut self, more: &[&str]) {
        let port = self.port.to_string();
        let settings = ["--dbpath", text(self.data.path()), "--port", &port, "--no-unix-socket"];
        let settings = [&settings[..], &["--storage-engine", self.engine, "--sync-delay", "1"], more].concat();
        self.server = Some(wait_for(|| Server::run(&binary(), &settings)));
    }

    fn kill(&mut self) {
        self.server.take().expect("it runs").kill();
    }

    fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true&connectTimeoutMS=10000", self.port)
    }

    fn peer(&self) -> Peer {
        Peer::connect(self.server.as_ref().expect("it runs").address())
    }

    fn to(&self) -> PathBuf {
        self.place.as_ref().map_or_else(|| self.scratch.path().join("backups"), PathBuf::from)
    }

    fn backup(&self, more: &[&str]) -> Command {
        let mut command = self.command("backup");
        command.args(["--to", text(&self.to())]).args(self.keys()).args(more);
        command
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(binary());
        command.arg(name).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The flag that names the file of keys.
    fn keys(&self) -> Vec<&str> {
        self.key_file.iter().flat_map(|path| ["--key-file", text(path)]).collect()
    }

    fn listed(&self) -> Option<Vec<bunko_backup::Listed>> {
        let variable = |name: &str| {
            let found = self.variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let surroundings = Surroundings { variable: &variable, clock: Clock::machine() };
        let place = Place::named(&self.to(), self.key_file.as_deref(), &surroundings).expect("a place");
        bunko_backup::list(&place).ok()
    }

    /// Makes a backup; returns what it says.
    fn back_up(&self, more: &[&str]) -> String {
        succeed(self.backup(more).args(["--uri", &self.uri()]))
    }

    /// Begins to follow the server; what is said goes into a file.
    fn follow(&self) -> Follower {
        let log = self.scratch.path().join("follow.log");
        let file = fs::OpenOptions::new().create(true).append(true).open(&log).expect("opens");
        let mut command = self.backup(&["--follow", "--interval", "1", "--uri", &self.uri()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn().expect("runs");
        Follower { child, log }
    }

    /// The last moment that the backups have, in milliseconds since 1970, and the first one.
    fn span(&self) -> Option<(u64, u64)> {
        let listed = self.listed()?;
        let ms = |text: &str| bunko_backup::parse_ms(text).expect("a moment");
        Some((ms(&listed.first()?.from), ms(&listed.last()?.to)))
    }

    fn wait_until_archived(&self, ms: u64) {
        wait_until("the log is archived up to now", || self.span().is_some_and(|(_, to)| to >= ms));
    }

    fn restore(&self, dbpath: &Path, to_ms: Option<u64>) -> Output {
        let mut command = self.command("restore");
        command.args(["--backup", text(&self.to()), "--dbpath", text(dbpath)]).args(self.keys());
        if let Some(to_ms) = to_ms {
            command.args(["--to-time", &format_ms(to_ms)]);
        }
        command.output().expect("runs")
    }

    /// A server on a directory that was restored to that moment.
    fn restored(&self, to_ms: Option<u64>) -> (TempDir, Server) {
        let dbpath = temporary_dbpath();
        let output = self.restore(dbpath.path(), to_ms);
        assert!(output.status.success(), "{}", said(&output));
        let server = Server::start(&binary(), dbpath.path(), &["--storage-engine", self.engine]).expect("it starts");
        (dbpath, server)
    }
}

struct Follower {
    child: Child,
    log: PathBuf,
}

impl Follower {
    fn said(&self) -> String {
        fs::read_to_string(&self.log).expect("readable")
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    said(&output)
}

fn fail(command: &mut Command) -> String {
    let output = command.output().expect("runs");
    assert!(!output.status.success(), "{command:?}: {}", said(&output));
    said(&output)
}

#[test]
fn each_restored_moment_equals_the_oracle_through_kills_of_server_and_backup() {
    check_moments(World::new("lsm"));
}

/// Compares restored moments with the writers' notes, through kills of server and backup.
fn check_moments(mut world: World) {
    let mut writers =
        [("large", 20_000), ("small", 10)].map(|(name, padding)| Writer::start(&world.uri(), name, padding));
    let mut follower = world.follow();
    // A slow target would not have one backup between two kills.
    wait_until("a backup", || world.span().is_some());
    let mut random = Random(7);
    for round in 0..5 {
        let before = writers.each_ref().map(Writer::acknowledged);
        let enough = |writer: &Writer, before| writer.acknowledged() >= before + 150;
        wait_until("writes", || writers.iter().zip(before).all(|(writer, before)| enough(writer, before)));
        std::thread::sleep(Duration::from_millis(random.below(1500)));
        match round {
            0 | 3 => {
                drop(follower);
                follower = world.follow();
            }
            1 | 4 => {
                world.kill();
                world.start(&[]);
            }
            _ => {
                world.kill();
                drop(follower);
                world.start(&[]);
                follower = world.follow();
            }
        }
    }
    writers.iter_mut().for_each(Writer::stop);
    world.wait_until_archived(now_ms());
    let told = follower.said();
    drop(follower);
    let (first, last) = world.span().expect("a backup");
    let mut moments: Vec<u64> = (0..8).map(|_| first + random.below(last - first)).collect();
    moments.extend([first, last]);
    let mut counts = Vec::new();
    for to_ms in moments {
        let output = world.restore(&world.scratch.path().join(format!("at-{to_ms}")), Some(to_ms));
        // Where a kill has left a gap, the times in it are refused.
        if !output.status.success() && said(&output).contains("cannot be restored") {
            assert!(told.contains("a gap:"), "{}", said(&output));
            continue;
        }
        let (_directory, server) = world.restored(Some(to_ms));
        let mut connection = connect(server.address());
        counts.push(writers.each_ref().map(|writer| writer.check(&mut connection, to_ms)));
    }
    assert!(counts.len() >= 5, "too few of the moments could be restored: {told}");
    println!("restored {counts:?}");
    succeed(&mut world.backup(&["--verify"]));
}

#[test]
fn a_backup_copies_what_earlier_ones_have_not_and_old_ones_are_removed() {
    for engine in ["lsm", "mmap"] {
        let world = World::new(engine);
        let mut writer = Writer::start(&world.uri(), "all", 100);
        wait_until("writes", || writer.acknowledged() > 50);
        let first = world.back_up(&[]);
        let in_first = writer.acknowledged();
        assert!(in_first > 50 && first.contains("can be restored as of"), "{first}");
        wait_until("writes", || writer.acknowledged() > in_first + 50);
        writer.stop();
        let second = world.back_up(&[]);
        let third = world.back_up(&[]);
        assert!(second.contains("of which"), "{second}");
        let listed = world.listed().expect("listed");
        assert_eq!(listed.len(), 3, "{listed:?}");
        assert!(listed[2].shared_bytes > 0, "{third}: {listed:?}");
        let (_directory, server) = world.restored(None);
        assert_eq!(writer.check(&mut connect(server.address()), now_ms()), writer.acknowledged());
        // The first backup is as of its own moment.
        let at = bunko_backup::parse_ms(&listed[0].to).expect("a moment");
        let (_directory, server) = world.restored(Some(at));
        assert!(writer.check(&mut connect(server.address()), at) < writer.acknowledged());
        let verified = succeed(&mut world.backup(&["--verify"]));
        assert!(verified.contains("dbHash"), "{verified}");
        assert!(world.back_up(&["--keep-last", "1"]).contains("removed backup"));
        assert_eq!(world.listed().expect("listed").len(), 1);
        succeed(&mut world.backup(&["--verify"]));
        let (_directory, server) = world.restored(None);
        assert_eq!(writer.check(&mut connect(server.address()), now_ms()), writer.acknowledged());
    }
}

#[test]
fn times_outside_of_the_backups_are_refused_with_the_times_that_can_be_restored() {
    let world = World::new("lsm");
    world.peer().run("test", "{insert: 'c', documents: [{_id: 1}]}");
    world.back_up(&[]);
    let (first, last) = world.span().expect("a backup");
    for ms in [first - 1, last + 1] {
        let dbpath = world.scratch.path().join("restored");
        let refused = said(&world.restore(&dbpath, Some(ms)));
        for word in [format_ms(ms), format_ms(first), format_ms(last)] {
            assert!(refused.contains(&word), "'{word}' is not in: {refused}");
        }
        assert!(!dbpath.exists());
    }
    let refused = said(&world.restore(world.data.path(), None));
    assert!(refused.contains("missing or empty"), "{refused}");
}

#[test]
fn a_start_refuses_a_directory_in_which_a_restore_has_not_ended() {
    let world = World::new("lsm");
    world.peer().run("test", "{insert: 'c', documents: [{_id: 1}]}");
    world.back_up(&[]);
    let dbpath = world.scratch.path().join("restored");
    assert!(world.restore(&dbpath, None).status.success());
    fs::rename(dbpath.join("log"), dbpath.join("log.restoring")).expect("renamed");
    let refused = Server::start(&binary(), &dbpath, &[]).expect_err("refused");
    assert!(refused.contains("segment"), "{refused}");
}

#[test]
fn a_log_that_does_not_go_on_is_noticed_and_a_new_image_is_made() {
    let mut world = World::new("lsm");
    world.peer().run("test", "{insert: 'c', documents: [{_id: 1}]}");
    let follower = world.follow();
    world.peer().run("test", "{insert: 'c', documents: [{_id: 2}]}");
    world.wait_until_archived(now_ms());
    // Another server takes the place of this one.
    world.kill();
    world.data = temporary_dbpath();
    world.start(&[]);
    for id in 10..30 {
        world.peer().run("test", &format!("{{insert: 'c', documents: [{{_id: {id}}}]}}"));
    }
    wait_until("a gap is told", || follower.said().contains("a gap:"));
    world.wait_until_archived(now_ms());
    let (_directory, server) = world.restored(None);
    let count = Peer::connect(server.address()).text("test", "{count: 'c'}");
    assert_eq!(count, "{n: 20, ok: 1.0}");
}

#[test]
fn a_backup_that_was_made_alone_is_followed() {
    let world = World::new("lsm");
    world.peer().run("test", "{insert: 'c', documents: [{_id: 1}]}");
    world.back_up(&[]);
    world.peer().run("test", "{insert: 'c', documents: [{_id: 2}]}");
    let follower = world.follow();
    world.wait_until_archived(now_ms());
    assert!(!follower.said().contains("a gap:"), "{}", follower.said());
    assert_eq!(world.listed().expect("listed").len(), 1);
    let (_directory, server) = world.restored(None);
    assert_eq!(Peer::connect(server.address()).text("test", "{count: 'c'}"), "{n: 2, ok: 1.0}");
}

#[test]
fn documents_that_are_loaded_while_the_log_is_archived_go_through_it() {
    let world = World::new("lsm");
    world.peer().run("test", "{insert: 'c', documents: [{_id: 'first'}]}");
    let follower = world.follow();
    world.wait_until_archived(now_ms());
    let documents: Vec<_> = (0..40).map(|id| format!("{{_id: {id}, text: '{}'}}", "x".repeat(50_000))).collect();
    let load = format!("{{bunkoBulkInsert: 'c', documents: [{}]}}", documents.join(", "));
    assert_eq!(world.peer().text("test", &load), "{n: 40, ok: 1.0}");
    world.wait_until_archived(now_ms());
    assert!(!follower.said().contains("a gap:"), "{}", follower.said());
    let (_directory, server) = world.restored(None);
    assert_eq!(Peer::connect(server.address()).text("test", "{count: 'c'}"), "{n: 41, ok: 1.0}");
}

/// A small disk in memory; `None` without the right to mount one.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount(megabytes: u32) -> Option<Self> {
        let at = temporary_dbpath();
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs", text(at.path())]).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays mounted", self.0.path().display());
    }
}

#[test]
fn a_full_disk_of_backups_is_named_and_leaves_the_earlier_ones() {
    let Some(disk) = SmallDisk::mount(24) else {
        eprintln!("SKIPPED: a small disk cannot be mounted here: backups to a full disk are not tried");
        return;
    };
    let world = World::new("lsm");
    let to = disk.0.path().join("backups");
    let back_up = || {
        let mut command = Command::new(binary());
        command.args(["backup", "--to", text(&to), "--uri", &world.uri()]);
        command
    };
    world.peer().run("test", "{insert: 'c', documents: [{_id: 1}]}");
    succeed(&mut back_up());
    let ballast = disk.0.path().join("ballast");
    let filled = fs::File::create(&ballast).and_then(|file| std::io::copy(&mut std::io::repeat(7), &mut { file }));
    assert!(filled.is_err(), "the disk is full");
    world.peer().run("test", "{insert: 'c', documents: [{_id: 2}]}");
    let refused = fail(&mut back_up());
    assert!(refused.contains("space") && refused.contains(text(&to)), "{refused}");
    assert_eq!(bunko_backup::list(&Place::directory(&to)).expect("listed").len(), 1);
    fs::remove_file(ballast).expect("removed");
    succeed(&mut back_up());
    let dbpath = world.scratch.path().join("restored");
    succeed(Command::new(binary()).args(["restore", "--backup", text(&to), "--dbpath", text(&dbpath)]));
    let server = Server::start(&binary(), &dbpath, &[]).expect("starts");
    assert_eq!(Peer::connect(server.address()).text("test", "{count: 'c'}"), "{n: 2, ok: 1.0}");
}

#[test]
fn a_backup_needs_its_role() {
    let mut world = World::new("lsm");
    let users = [("b", "backup"), ("w", "readWriteAnyDatabase"), ("c", "clusterAdmin")];
    for (user, role) in users {
        world.peer().run("admin", &format!("{{createUser: '{user}', pwd: 'p', roles: ['{role}']}}"));
    }
    world.kill();
    world.start(&["--auth"]);
    for (user, role) in users {
        let uri = format!("mongodb://{user}:p@127.0.0.1:{}/?authSource=admin", world.port);
        let output = world.backup(&["--uri", &uri]).output().expect("runs");
        assert_eq!(output.status.success(), role == "backup", "{role}: {}", said(&output));
    }
    let refused = fail(world.backup(&[]).args(["--uri", &world.uri()]));
    assert!(refused.contains("requires authentication"), "{refused}");
}

#[test]
fn unsupported_flags_are_refused_by_name() {
    let refused = |arguments: &[&str]| fail(Command::new(binary()).args(["backup"]).args(arguments));
    assert!(refused(&["--to", "gs://bucket/backups"]).contains("not supported"));
    assert!(refused(&["--to", "s3://B/backups"]).contains("no name of a bucket"));
    let scratch = temporary_dbpath();
    fs::write(scratch.path().join("letter.txt"), "dear").expect("written");
    let refused = refused(&["--list", "--to", text(scratch.path())]);
    assert!(refused.contains("not a directory of backups"), "{refused}");
}

/// The section `backup` of `serverStatus`: a field of it, if it is there.
fn told_of_backups(world: &World, field: &str) -> Option<i64> {
    let status = world.peer().run("admin", "{serverStatus: 1}");
    let bunko = status.as_ref().get("bunko")?.as_document()?;
    bunko.get("backup")?.as_document()?.get(field).and_then(bunko_bson::number::as_i64_exact)
}

#[test]
fn the_server_tells_of_its_backups_and_the_lag_of_its_archive() {
    let world = World::new("lsm");
    assert_eq!((told_of_backups(&world, "archives"), told_of_backups(&world, "lastSuccessMillis")), (Some(0), None));
    let before = now_ms() as i64;
    world.back_up(&[]);
    assert!(told_of_backups(&world, "lastSuccessMillis").is_some_and(|made| made >= before));
    assert_eq!(told_of_backups(&world, "lastFailureMillis"), None);
    let mut follower = world.follow();
    wait_until("the archive tells its lag", || told_of_backups(&world, "archiveLagMillis").is_some());
    // An archive that was killed falls behind.
    follower.child.kill().expect("it runs");
    let lag = told_of_backups(&world, "archiveLagMillis").expect("a lag");
    wait_until("the lag grows", || told_of_backups(&world, "archiveLagMillis").is_some_and(|now| now > lag + 1500));
    drop(follower);
    // An archive that goes on catches up, and a stopped archive is over.
    let follower = world.follow();
    wait_until("the lag is small", || told_of_backups(&world, "archiveLagMillis").is_some_and(|now| now < lag + 1500));
    let pid = rustix::process::Pid::from_child(&follower.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    wait_until("the end is told", || told_of_backups(&world, "archives") == Some(0));
    drop(follower);
    // A backup that fails while the server can be told.
    let files = world.to().join("files");
    fs::remove_dir_all(&files).expect("removed");
    fs::write(&files, "in the way").expect("written");
    fail(world.backup(&["--uri", &world.uri()]).stdin(Stdio::null()));
    assert!(told_of_backups(&world, "lastFailureMillis").is_some_and(|failed| failed >= before));
}
