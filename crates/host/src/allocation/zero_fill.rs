//! Writes zeros from beginning to end.

use super::Allocated;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Size of one write.
const CHUNK: &[u8] = &[0; 1 << 20];

pub(super) fn allocate(directory: &Path, bytes: u64) -> io::Result<Allocated> {
    let start = Instant::now();
    let mut file = File::create_new(directory.join("zero-fill"))?;
    let mut longest_write = Duration::ZERO;
    let mut left = bytes;
    while left > 0 {
        let chunk = &CHUNK[..left.min(CHUNK.len() as u64) as usize];
        let write = Instant::now();
        let written = file.write(chunk)?;
        longest_write = longest_write.max(write.elapsed());
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        left -= written as u64;
    }
    Ok(Allocated { file, elapsed: start.elapsed(), longest_write: Some(longest_write) })
}
