//! Reserves blocks without writing them.

use super::Allocated;
use rustix::fs::FallocateFlags;
use rustix::io::retry_on_intr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Instant;

/// # Errors
/// `EOPNOTSUPP` if the filesystem cannot.
// posix_fallocate(3) would write zeros instead, and so measure another method.
pub(super) fn allocate(directory: &Path, bytes: u64) -> io::Result<Allocated> {
    let start = Instant::now();
    let file = File::create_new(directory.join("fallocate"))?;
    retry_on_intr(|| rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes))?;
    Ok(Allocated { file, elapsed: start.elapsed(), longest_write: None })
}
