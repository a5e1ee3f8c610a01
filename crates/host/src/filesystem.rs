//! The filesystem that holds a path, and its free space.

use crate::mount_table::{self, Mount};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A mounted filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// Type as the kernel names it: `ext4`, `xfs`, `tmpfs`, `overlay`.
    pub kind: String,
    /// Mount point.
    pub mount_point: PathBuf,
    /// Device file, or the kernel's name for the source.
    pub device: String,
}

/// The filesystem that holds a path; `None` if the path does not exist or the kernel does not tell.
pub fn filesystem_of(path: &Path) -> Option<Filesystem> {
    holder(&mount_table::mounts(), &fs::canonicalize(path).ok()?)
}

/// Bytes that an ordinary user may still write to the filesystem that holds a path.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let statistics = rustix::fs::statvfs(path)?;
    Ok(statistics.f_bavail * statistics.f_frsize)
}

/// Size in bytes of the filesystem that holds a path.
pub fn size_bytes(path: &Path) -> io::Result<u64> {
    let statistics = rustix::fs::statvfs(path)?;
    Ok(statistics.f_blocks * statistics.f_frsize)
}

/// The mount whose point is the longest prefix of the path. Among mounts of one point the last counts: it hides the
/// others.
// Device numbers would not identify it better: subvolumes of btrfs have numbers that are not in the mount table.
fn holder(mounts: &[Mount], path: &Path) -> Option<Filesystem> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count()).map(|mount| Filesystem {
        kind: mount.kind.clone(),
        mount_point: mount.point.clone(),
        device: mount.source.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
        22 27 0:21 / /proc rw,relatime - proc proc rw\n\
        27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
        25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=24684084k\n\
        30 25 0:27 / /dev/shm rw,relatime - tmpfs second rw,size=24684084k\n\
        43 27 7:0 / /data/old rw,relatime - ext3 /dev/loop0 rw\n";

    fn kind_and_device(path: &str) -> (String, String) {
        let filesystem = holder(&mount_table::parse(TABLE), Path::new(path)).expect("the root holds all");
        (filesystem.kind, filesystem.device)
    }

    #[test]
    fn the_deepest_mount_point_holds_a_path() {
        assert_eq!(kind_and_device("/data/old/journal"), ("ext3".into(), "/dev/loop0".into()));
        assert_eq!(kind_and_device("/data/old"), ("ext3".into(), "/dev/loop0".into()));
        assert_eq!(kind_and_device("/data/older"), ("ext4".into(), "/dev/vda".into()));
        assert_eq!(kind_and_device("/"), ("ext4".into(), "/dev/vda".into()));
    }

    #[test]
    fn a_later_mount_hides_an_earlier_one() {
        assert_eq!(kind_and_device("/dev/shm/x"), ("tmpfs".into(), "second".into()));
    }

    #[test]
    fn this_machine_has_filesystems() {
        let proc = filesystem_of(Path::new("/proc/self")).expect("mounted");
        assert_eq!((proc.kind.as_str(), proc.mount_point.as_path()), ("proc", Path::new("/proc")));
        assert_eq!(filesystem_of(Path::new("/proc/none-such")), None);
        let free = free_bytes(&std::env::temp_dir()).expect("it exists");
        assert!(free > 0 && free <= size_bytes(&std::env::temp_dir()).expect("it exists"));
    }
}
