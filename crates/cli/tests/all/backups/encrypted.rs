//! Encrypted backups: kills, rotation of keys, wrong keys, and files that an attacker changes.

use super::damages::check_damages;
use super::writer::{Writer, now_ms};
use super::{World, check_moments, fail, said, succeed};
use crate::peer::Peer;
use crate::tool::{connect, text};
use bunko_testkit::directory::files_below;
use bunko_testkit::patience::wait_until;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const ONE: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const TWO: &str = "gIGCg4SFhoeIiYqLjI2Oj5CRkpOUlZaXmJmam5ydnp8=";

impl World {
    /// A world whose backups are encrypted.
    pub(super) fn encrypted(engine: &'static str) -> Self {
        let mut world = Self::new(engine);
        world.use_keys(ONE);
        world
    }

    /// Uses a file of keys with that text from now on.
    pub(super) fn use_keys(&mut self, keys: &str) {
        let path = self.scratch.path().join("keys");
        fs::write(&path, keys).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("changed");
        self.key_file = Some(path);
    }

    pub(super) fn restored_directory(&self) -> PathBuf {
        self.scratch.path().join("restored")
    }

    /// The refusal of a restore, which has made no directory.
    fn refusal(&self) -> String {
        let output = self.restore(&self.restored_directory(), None);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(!self.restored_directory().exists(), "{}", said(&output));
        said(&output)
    }
}

#[test]
fn each_moment_of_encrypted_backups_equals_the_oracle_through_kills() {
    check_moments(World::encrypted("lsm"));
}

#[test]
fn damaged_missing_and_cut_files_of_encrypted_backups_are_named() {
    check_damages(&World::encrypted("lsm"));
}

#[test]
fn no_file_of_encrypted_backups_has_plain_text() {
    let world = World::encrypted("lsm");
    let secret = "a secret that no other file has";
    world.peer().run("test", &format!("{{insert: 'secrets', documents: [{{_id: 1, text: '{secret}'}}]}}"));
    let follower = world.follow();
    wait_until("a backup", || world.span().is_some());
    world.peer().run("test", &format!("{{insert: 'secrets', documents: [{{_id: 2, text: '{secret}'}}]}}"));
    world.wait_until_archived(now_ms());
    drop(follower);
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let files = files_below(&world.to());
    assert!(files.iter().any(|path| path.extension().is_some_and(|end| end == "part")), "{files:?}");
    for path in files {
        let bytes = fs::read(&path).expect("readable");
        assert!(!has(&bytes, secret) && !has(&bytes, "secrets") && !has(&bytes, "ranges"), "{}", path.display());
    }
    let (_directory, server) = world.restored(None);
    let count = format!("{{count: 'secrets', query: {{text: '{secret}'}}}}");
    assert_eq!(Peer::connect(server.address()).text("test", &count), "{n: 2, ok: 1.0}");
}

#[test]
fn keys_are_rotated_and_the_data_stay() {
    for engine in ["lsm", "mmap"] {
        let mut world = World::encrypted(engine);
        let mut writer = Writer::start(&world.uri(), "all", 100);
        wait_until("writes", || writer.acknowledged() > 50);
        world.back_up(&[]);
        let data = |world: &World| {
            let files = files_below(&world.to()).into_iter().filter(|path| !path.starts_with(world.to().join("keys")));
            files.map(|path| (path.clone(), fs::read(path).expect("readable"))).collect::<Vec<_>>()
        };
        let before = data(&world);
        world.use_keys(TWO);
        assert!(world.refusal().contains("which the file of keys does not have"));
        assert!(fail(&mut world.backup(&["--rekey"])).contains("which the file of keys does not have"));
        world.use_keys(&format!("{TWO}\n{ONE}\n"));
        // All keys of the file decrypt, and the first encrypts.
        let enough = writer.acknowledged() + 50;
        wait_until("writes", || writer.acknowledged() > enough);
        writer.stop();
        world.back_up(&[]);
        let again = succeed(&mut world.backup(&["--rekey"]));
        assert!(again.contains("1 keys"), "{again}");
        assert!(before.iter().all(|file| data(&world).contains(file)), "the data are as before");
        world.use_keys(TWO);
        succeed(&mut world.backup(&["--verify"]));
        let (_directory, server) = world.restored(None);
        assert_eq!(writer.check(&mut connect(server.address()), now_ms()), writer.acknowledged());
        world.use_keys(ONE);
        assert!(world.refusal().contains("which the file of keys does not have"));
        // The keys of removed backups go with them.
        world.use_keys(TWO);
        world.back_up(&["--keep-last", "1"]);
        succeed(&mut world.backup(&["--verify"]));
    }
}

#[test]
fn wrong_and_missing_keys_are_refused_before_anything_is_restored() {
    let mut world = World::encrypted("lsm");
    world.peer().run("test", "{insert: 'c', documents: [{_id: 1}]}");
    world.back_up(&[]);
    let uri = world.uri();
    let mut refused_with = |keys: Option<&str>, why: &str| {
        match keys {
            Some(keys) => world.use_keys(keys),
            None => world.key_file = None,
        }
        let commands: [&[&str]; 3] = [&["--list"], &["--verify"], &["--uri", &uri]];
        for command in commands {
            let refused = fail(&mut world.backup(command));
            assert!(refused.contains(why), "{command:?}: '{why}' is not in: {refused}");
        }
        assert!(world.refusal().contains(why));
    };
    refused_with(None, "--key-file");
    refused_with(Some(TWO), "which the file of keys does not have");
    refused_with(Some("short"), "line 1 is not a key");
    refused_with(Some("# nothing"), "has no key");
    // Neither are unencrypted and encrypted backups mixed.
    let plain = World::new("lsm");
    plain.back_up(&[]);
    world.use_keys(ONE);
    let mut mixed = plain.backup(&["--uri", &plain.uri(), "--key-file", text(world.key_file.as_ref().expect("keys"))]);
    assert!(fail(&mut mixed).contains("the backups are not encrypted"));
    let wrapped = files_below(&world.to().join("keys")).remove(0);
    fs::remove_file(&wrapped).expect("removed");
    assert!(world.refusal().contains(text(&wrapped)));
}

#[test]
fn files_that_an_attacker_exchanges_are_noticed() {
    let world = World::encrypted("lsm");
    for round in 0..2 {
        world.peer().run("test", &format!("{{insert: 'c', documents: [{{_id: {round}}}]}}"));
        world.back_up(&[]);
    }
    let exchange = |a: &PathBuf, b: &PathBuf| {
        let [first, second] = [a, b].map(|path| fs::read(path).expect("readable"));
        fs::write(a, second).expect("written");
        fs::write(b, first).expect("written");
    };
    // The data keys and the manifests of two backups, and two files of one backup.
    for below in ["keys", "backups", "files"] {
        let files = files_below(&world.to().join(below));
        // The newest backup, which is restored, has the last ones.
        let [.., a, b] = &files[..] else { panic!("two files: {files:?}") };
        exchange(a, b);
        let refused = fail(&mut world.backup(&["--verify"]));
        assert!(refused.contains(text(a)) || refused.contains(text(b)), "{below}: {refused}");
        let restored = world.restore(&world.restored_directory(), None);
        assert_eq!(restored.status.code(), Some(1), "{below}: {}", said(&restored));
        drop(fs::remove_dir_all(world.restored_directory()));
        exchange(a, b);
    }
    succeed(&mut world.backup(&["--verify"]));
}
