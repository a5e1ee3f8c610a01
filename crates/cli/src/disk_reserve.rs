//! Disk space that is reserved for deletions, drops and `compact`, and its log lines.

use bunko_store::{DiskReserve, ReserveOptions};
use std::path::Path;
use std::sync::Arc;

/// One part in this many of the filesystem is reserved.
const PART: u64 = 20;
const BYTES_MIN: u64 = 4 << 20;
const BYTES_MAX: u64 = 64 << 20;

/// The reserve of a data directory, which need not exist yet.
pub(crate) fn options(dbpath: &Path) -> ReserveOptions {
    let size_bytes = dbpath.ancestors().find_map(|path| bunko_host::size_bytes(path).ok());
    ReserveOptions {
        bytes: size_bytes.map_or(BYTES_MAX, bytes_of),
        free_bytes: Arc::new(|directory| bunko_host::free_bytes(directory).ok()),
        on_change: Arc::new(tell),
    }
}

fn bytes_of(filesystem_bytes: u64) -> u64 {
    (filesystem_bytes / PART).clamp(BYTES_MIN, BYTES_MAX)
}

fn tell(reserve: DiskReserve) {
    let DiskReserve { bytes, whole_bytes } = reserve;
    if reserve.is_in_use() {
        tracing::warn!(
            target: "STORAGE", id = 109, ctx = "disk", reserveBytes = bytes, wholeBytes = whole_bytes,
            "The disk is full: deletes, drops and compact go on with the reserve, other writes are refused"
        );
    } else {
        tracing::info!(
            target: "STORAGE", id = 110, ctx = "disk", reserveBytes = bytes,
            "The disk has room again: all writes are accepted"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_disk_keeps_a_twentieth_and_a_large_one_64_mib() {
        let megabytes = |size: u64| bytes_of(size << 20) >> 20;
        assert_eq!([50, 200, 600, 2000, 1 << 20].map(megabytes), [4, 10, 30, 64, 64]);
    }

    #[test]
    fn a_directory_that_is_yet_to_be_made_has_the_disk_of_the_one_above() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let above = options(directory.path()).bytes;
        assert_eq!(options(&directory.path().join("data/db")).bytes, above);
    }
}
