//! Backups in a bucket of a real S3 server, which `tests/backup_s3/run` starts and `BUNKO_S3_ENDPOINT` names.

use super::writer::{Writer, now_ms};
use super::{World, check_moments, fail, said, succeed};
use crate::tool::{connect, text};
use bunko_host::Clock;
use bunko_s3::{Address, Bucket, Condition, Depth, Settings};
use bunko_testkit::patience::{wait_for, wait_until};
use bunko_testkit::process::temporary_dbpath;
use std::env;
use std::fs;

/// The bucket of all tests; each has a prefix of its own.
const BUCKET: &str = "backups";

/// The address of the server.
fn endpoint() -> String {
    env::var("BUNKO_S3_ENDPOINT").expect("tests/backup_s3/run names the server")
}

/// The variables of a process that may write, or only read.
fn variables(endpoint: &str, access_key: &str) -> Vec<(String, String)> {
    let secret_key = format!("{}-secret", access_key.to_lowercase());
    let pairs =
        [("AWS_ENDPOINT_URL", endpoint), ("AWS_ACCESS_KEY_ID", access_key), ("AWS_SECRET_ACCESS_KEY", &secret_key)];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

fn settings(address: &str, variables: &[(String, String)]) -> Settings {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let address = Address::parse(address).expect("an address");
    Settings::of_environment(address, &variable).expect("settings")
}

impl World {
    /// A world whose backups go to a bucket.
    fn in_bucket(prefix: &str) -> Self {
        let variables = variables(&endpoint(), "WRITER");
        let probed = settings(&format!("s3://{BUCKET}"), &variables);
        let probed = Bucket::open(probed, Clock::machine()).expect("opens");
        // A server that has just started has no room for objects yet.
        wait_for(|| probed.put("probe", b"there is room", Condition::None).map_err(|error| error.to_string()));
        let mut world = Self::new("lsm");
        world.place = Some(format!("s3://{BUCKET}/{prefix}"));
        world.variables = variables;
        world
    }

    fn bucket(&self) -> Bucket {
        let address = self.place.as_ref().expect("in a bucket");
        Bucket::open(settings(address, &self.variables), Clock::machine()).expect("opens")
    }

    fn names(&self, below: &str) -> Vec<String> {
        let mut names = Vec::new();
        self.bucket()
            .list(below, Depth::All, &mut |name, _| {
                names.push(name);
                true
            })
            .expect("listed");
        names
    }
}

fn read(bucket: &Bucket, name: &str) -> Vec<u8> {
    bucket.get(name, (0, 100 << 20), None).expect("readable").expect("there").bytes
}

#[test]
#[ignore = "needs an S3 server; tests/backup_s3/run starts one"]
fn each_moment_of_backups_in_a_bucket_equals_the_oracle_through_kills() {
    let world = World::in_bucket("moments");
    check_moments(world);
}

#[test]
#[ignore = "needs an S3 server; tests/backup_s3/run starts one"]
fn a_bucket_has_incremental_backups_and_old_ones_are_removed() {
    let mut world = World::in_bucket("incremental");
    for keys in [None, Some("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")] {
        if let Some(keys) = keys {
            world.use_keys(keys);
            world.place = Some(format!("s3://{BUCKET}/incremental-encrypted"));
        }
        let mut writer = Writer::start(&world.uri(), if keys.is_some() { "two" } else { "one" }, 20_000);
        // More than one part of an upload: a segment of the log is longer than 8 MiB then.
        wait_until("writes", || writer.acknowledged() > 700);
        world.back_up(&[]);
        let enough = writer.acknowledged() + 50;
        wait_until("writes", || writer.acknowledged() > enough);
        writer.stop();
        world.back_up(&[]);
        world.back_up(&[]);
        let listed = world.listed().expect("listed");
        assert!(listed.len() == 3 && listed[2].shared_bytes > 0, "{listed:?}");
        succeed(&mut world.backup(&["--verify"]));
        assert!(world.back_up(&["--keep-last", "1"]).contains("removed backup"));
        assert_eq!(world.names("backups/").len(), 1);
        let (_directory, server) = world.restored(None);
        assert_eq!(writer.check(&mut connect(server.address()), now_ms()), writer.acknowledged());
        assert!(world.names("lock").is_empty(), "the right to write was given back");
    }
    // A copy of the bucket is a directory of backups.
    let copy = temporary_dbpath();
    for name in world.names("") {
        let path = copy.path().join(&name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, read(&world.bucket(), &name)).expect("written");
    }
    world.place = None;
    let restored = world.scratch.path().join("of-the-copy");
    let mut command = world.command("restore");
    command.args(["--backup", text(copy.path()), "--dbpath", text(&restored)]).args(world.keys());
    succeed(&mut command);
}

#[test]
#[ignore = "needs an S3 server; tests/backup_s3/run starts one"]
fn damaged_and_missing_objects_are_named() {
    let world = World::in_bucket("damaged");
    world.peer().run("test", "{insert: 'c', documents: [{_id: 1}]}");
    let follower = world.follow();
    wait_until("a backup", || world.span().is_some());
    world.peer().run("test", "{insert: 'c', documents: [{_id: 2}]}");
    world.wait_until_archived(now_ms());
    drop(follower);
    let bucket = world.bucket();
    for name in ["files/", "backups/", "archive/"].iter().flat_map(|below| world.names(below)) {
        let whole = read(&bucket, &name);
        let Some(used) = whole.iter().rposition(|byte| *byte != 0) else { continue };
        let mut damaged = whole.clone();
        damaged[used.saturating_sub(1)] ^= 0x55;
        let mut changes = vec![Some(damaged), Some(whole[..used].to_vec())];
        changes.extend((name.starts_with("files/") || name.contains(".part")).then_some(None));
        for change in changes {
            match change {
                Some(bytes) => drop(bucket.put(&name, &bytes, Condition::None).expect("written")),
                None => bucket.delete(&name).expect("removed"),
            }
            let verified = fail(&mut world.backup(&["--verify"]));
            assert!(verified.contains(&name), "{name} is not in: {verified}");
            let restored = world.restore(&world.restored_directory(), None);
            assert_eq!(restored.status.code(), Some(1), "{name}: {}", said(&restored));
            drop(fs::remove_dir_all(world.restored_directory()));
        }
        bucket.put(&name, &whole, Condition::None).expect("written");
    }
    succeed(&mut world.backup(&["--verify"]));
}

#[test]
#[ignore = "needs an S3 server; tests/backup_s3/run starts one"]
fn one_process_at_a_time_writes_to_a_bucket() {
    let world = World::in_bucket("lock");
    world.peer().run("test", "{insert: 'c', documents: [{_id: 1}]}");
    let follower = world.follow();
    wait_until("a backup", || world.span().is_some());
    let refused = fail(&mut world.backup(&["--uri", &world.uri()]));
    assert!(refused.contains("another process writes backups there"), "{refused}");
    // A process of this machine that was killed is not waited for, and one of another machine is.
    drop(follower);
    world.back_up(&[]);
    world.bucket().put("lock", b"17 4711 0 another-machine another-host\n", Condition::None).expect("written");
    let refused = fail(&mut world.backup(&["--uri", &world.uri()]));
    assert!(refused.contains("process 17 of another-host") && refused.contains("begin again in"), "{refused}");
}

#[test]
#[ignore = "needs an S3 server; tests/backup_s3/run starts one"]
fn refusals_of_the_server_name_bucket_key_and_code() {
    let mut world = World::in_bucket("refused");
    world.peer().run("test", "{insert: 'c', documents: [{_id: 1}]}");
    world.back_up(&[]);
    let endpoint = endpoint();
    // A process that may only read restores, and makes no backups.
    let writer = std::mem::replace(&mut world.variables, variables(&endpoint, "READER"));
    succeed(&mut world.backup(&["--verify"]));
    let refused = fail(&mut world.backup(&["--uri", &world.uri()]));
    assert!(refused.contains("AccessDenied") && refused.contains("s3://backups/refused/"), "{refused}");
    world.variables = variables(&endpoint, "STRANGER");
    let refused = fail(&mut world.backup(&["--list"]));
    assert!(refused.contains("InvalidAccessKeyId"), "{refused}");
    world.variables = writer;
    world.variables[2].1 = "another secret".to_owned();
    let refused = fail(&mut world.backup(&["--list"]));
    assert!(refused.contains("SignatureDoesNotMatch"), "{refused}");
    world.variables = variables(&endpoint, "WRITER");
    world.place = Some("s3://absent-bucket/db".to_owned());
    let refused = fail(&mut world.backup(&["--uri", &world.uri()]));
    assert!(refused.contains("NoSuchBucket") && refused.contains("absent-bucket"), "{refused}");
    world.variables.clear();
    world.variables.push(("HOME".to_owned(), text(world.scratch.path()).to_owned()));
    let refused = fail(&mut world.backup(&["--list"]));
    assert!(refused.contains("AWS_ACCESS_KEY_ID"), "{refused}");
}

#[test]
#[ignore = "needs an S3 server; tests/backup_s3/run starts one"]
fn uploads_of_a_process_that_was_killed_are_aborted_by_the_next_one() {
    let world = World::in_bucket("killed");
    let mut writer = Writer::start(&world.uri(), "all", 50_000);
    wait_until("writes", || writer.acknowledged() > 1500);
    writer.stop();
    for pause_ms in [30, 60, 100, 150, 200, 300, 400] {
        let mut command = world.backup(&["--uri", &world.uri()]);
        let mut child = command.spawn().expect("runs");
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
    }
    world.back_up(&[]);
    assert_eq!(world.bucket().abort_uploads().expect("listed"), 0);
    let (_directory, server) = world.restored(None);
    assert_eq!(writer.check(&mut connect(server.address()), now_ms()), writer.acknowledged());
}
