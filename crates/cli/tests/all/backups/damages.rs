//! Files of backups that are damaged, cut or missing.

use super::writer::{Writer, now_ms};
use super::{World, fail, succeed};
use crate::tool::text;
use bunko_testkit::directory::files_below;
use bunko_testkit::patience::wait_until;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

#[test]
fn damaged_missing_and_cut_files_are_named() {
    check_damages(&World::new("lsm"));
}

/// Damages, cuts and removes each file of the backups, and restores and checks them.
pub(super) fn check_damages(world: &World) {
    let mut writer = Writer::start(&world.uri(), "all", 1000);
    wait_until("writes", || writer.acknowledged() > 50);
    let follower = world.follow();
    wait_until("a backup", || world.span().is_some());
    let enough = writer.acknowledged() + 50;
    wait_until("writes", || writer.acknowledged() > enough);
    writer.stop();
    world.wait_until_archived(now_ms());
    drop(follower);
    let is_content = |path: &PathBuf| !["lock", "owner", "bunko-backup.json"].iter().any(|name| path.ends_with(name));
    let files: Vec<_> = files_below(&world.to()).into_iter().filter(is_content).collect();
    assert!(files.len() >= 5, "{files:?}");
    for path in &files {
        let whole = fs::read(path).expect("readable");
        let used = whole.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let is_receipts = path.ends_with("receipts") || path.ends_with("receipt");
        // The archive's header of a segment is 64 bytes; its first record follows.
        let at = if is_receipts { 3 } else { used.saturating_sub(2) as u64 };
        let refused = |why: &str| {
            let verified = fail(&mut world.backup(&["--verify"]));
            assert!(verified.contains(text(path)), "{why}: {} is not in: {verified}", path.display());
            let restored = world.restore(&world.scratch.path().join(format!("{why}-restored")), None);
            assert!(!restored.status.success(), "{why}: {}", path.display());
            drop(fs::remove_dir_all(world.scratch.path().join(format!("{why}-restored"))));
        };
        if used > 0 {
            let file = fs::OpenOptions::new().write(true).open(path).expect("opens");
            file.write_all_at(&[whole[at as usize] ^ 0x55], at).expect("written");
            refused("damaged");
            fs::write(path, &whole).expect("written");
        }
        // Without its last receipt an archive is shorter, and without a manifest there is no backup.
        if !is_receipts && !whole.is_empty() {
            fs::write(path, &whole[..used.saturating_sub(1)]).expect("written");
            refused("cut");
            fs::write(path, &whole).expect("written");
        }
        if !is_receipts && path.extension().is_none_or(|end| end != "json") {
            fs::remove_file(path).expect("removed");
            refused("missing");
            fs::write(path, &whole).expect("written");
        }
    }
    succeed(&mut world.backup(&["--verify"]));
}
