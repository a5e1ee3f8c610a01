//! File pages that the kernel keeps in memory.

use crate::regular_files;
use rustix::fs::{Advice, fadvise, fdatasync};
use std::fs::File;
use std::io;
use std::path::Path;

/// Writes the regular files at or below a path back to their device and lets the kernel drop their pages, so that the
/// next read comes from the device.
///
/// Pages that a process has mapped stay in memory, and processes keep their own caches: stop a server first if it is to
/// start cold. Caches of the device and of a hypervisor stay, too.
/// # Errors
/// The error of the first file that cannot be opened, synced or advised.
pub fn forget_cached_pages(path: &Path) -> io::Result<()> {
    regular_files::visit(path, |path, _| {
        let file = File::open(path)?;
        // The kernel drops only clean pages.
        fdatasync(&file)?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProcessReading, filesystem_of};

    #[test]
    fn the_next_reading_comes_from_the_device() {
        const BYTES: usize = 8 << 20;
        let directory = tempfile::tempdir().expect("writable");
        let file = directory.path().join("data");
        std::fs::write(&file, vec![7; BYTES]).expect("writable");
        forget_cached_pages(directory.path()).expect("all files are ours");
        let device_bytes = || ProcessReading::of(std::process::id()).and_then(|reading| reading.read_bytes);
        let before = device_bytes();
        assert_eq!(std::fs::read(&file).expect("readable"), vec![7; BYTES]);
        let filesystem = filesystem_of(directory.path()).expect("mounted");
        match before.zip(device_bytes()) {
            Some((before, after)) if ["ext4", "xfs"].contains(&filesystem.kind.as_str()) => {
                assert!(after - before >= BYTES as u64, "{before} {after}");
            }
            _ => eprintln!("SKIPPED: reads from devices are not counted on {filesystem:?}"),
        }
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let directory = tempfile::tempdir().expect("writable");
        let missing = forget_cached_pages(&directory.path().join("none")).expect_err("no such directory");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
