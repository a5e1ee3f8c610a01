//! Disk space of a directory.

use crate::regular_files;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// `st_blocks` counts in this unit whatever the filesystem's block size is.
/// Source: stat(3type).
const STAT_BLOCK_BYTES: u64 = 512;

/// Bytes allocated for all regular files at or below a path. Holes do not count, preallocated space does, and a file
/// with several names counts once. Files that vanish meanwhile are skipped; a missing path counts 0. The count ends at
/// the first directory that may not be read.
pub fn directory_bytes(path: &Path) -> u64 {
    let mut bytes = 0;
    let mut linked = HashSet::new();
    // A data directory is readable as a whole or not at all, so no error is worth reporting.
    let _ = regular_files::visit(path, |_, metadata| {
        if metadata.nlink() == 1 || linked.insert((metadata.dev(), metadata.ino())) {
            bytes += metadata.blocks() * STAT_BLOCK_BYTES;
        }
        Ok(())
    });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn allocated_space_counts_once_and_holes_do_not() {
        let directory = tempfile::tempdir().expect("writable");
        let at = |name: &str| directory.path().join(name);
        assert_eq!(directory_bytes(directory.path()), 0);

        fs::create_dir(at("journal")).expect("writable");
        fs::write(at("journal/1"), vec![7; 100_000]).expect("writable");
        // Some filesystems allocate blocks only at writeback.
        File::open(at("journal/1")).and_then(|file| file.sync_all()).expect("synced");
        let one = directory_bytes(directory.path());
        assert!((100_000..200_000).contains(&one), "{one}");

        fs::hard_link(at("journal/1"), at("same")).expect("links");
        assert_eq!(directory_bytes(directory.path()), one);

        File::create(at("hole")).and_then(|file| file.set_len(1 << 30)).expect("sparse");
        assert!(directory_bytes(directory.path()) < 1 << 20);
        assert_eq!(directory_bytes(&at("none such")), 0);
    }
}
