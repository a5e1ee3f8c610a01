//! Grows the file ahead of the writes, in steps as MMAPv1's files did: 64 MB, doubled up to 2 GB, then 2 GB at a time.
//! So writes never wait for the filesystem to find room, and data that is read in order lies in order. If the disk has
//! little more than a step, the steps are short, so that the log finds room too.

use crate::data_file::DataFile;
use bunko_store::Result;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::sync::atomic::{AtomicU64, Ordering};

const STEP_BYTES_MIN: u64 = 64 << 20;
const STEP_BYTES_MAX: u64 = 2 << 30;
const SHORT_STEP_BYTES: u64 = 16 << 20;
/// A step is taken only if this many times its size is free.
const FREE_STEPS: u64 = 4;

/// Counters since the start.
#[derive(Default)]
pub(crate) struct Growth {
    pub steps: AtomicU64,
    pub last_micros: AtomicU64,
    pub longest_micros: AtomicU64,
}

/// The length to which a file of `length_bytes` grows.
fn next_length(length_bytes: u64) -> u64 {
    if length_bytes < STEP_BYTES_MIN {
        return STEP_BYTES_MIN;
    }
    length_bytes.saturating_add(length_bytes.min(STEP_BYTES_MAX))
}

/// The length to which the file grows with `free_bytes` free on the disk; `None` if it should not grow ahead.
fn affordable(length_bytes: u64, free_bytes: u64) -> Option<u64> {
    let lengths = [next_length(length_bytes), length_bytes + SHORT_STEP_BYTES];
    lengths.into_iter().find(|next| (next - length_bytes) * FREE_STEPS <= free_bytes)
}

impl Growth {
    /// Makes the file at least `needed_bytes` long, in whole steps. On a filesystem without preallocation, or without
    /// room for some steps, the file grows with the writes instead, and these fail if there is no room at all.
    pub fn reserve(&self, file: &DataFile, needed_bytes: u64) -> Result<()> {
        let mut length_bytes = file.length_bytes()?;
        while length_bytes < needed_bytes {
            let Some(next) = affordable(length_bytes, file.free_bytes()?) else { return Ok(()) };
            let started = file.clock.now();
            match fallocate(&file.file, FallocateFlags::empty(), length_bytes, next - length_bytes) {
                Ok(()) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => return Ok(()),
                Err(error) => return Err(bunko_store::StorageError::io(&file.path, error.into())),
            }
            let micros = file.clock.since(started).as_micros() as u64;
            self.steps.fetch_add(1, Ordering::Relaxed);
            self.last_micros.store(micros, Ordering::Relaxed);
            self.longest_micros.fetch_max(micros, Ordering::Relaxed);
            length_bytes = next;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{affordable, next_length};

    #[test]
    fn steps_double_up_to_two_gigabytes() {
        let lengths = std::iter::successors(Some(8192), |length| Some(next_length(*length)));
        let megabytes: Vec<u64> = lengths.skip(1).take(8).map(|length| length >> 20).collect();
        assert_eq!(megabytes, [64, 128, 256, 512, 1024, 2048, 4096, 6144]);
    }

    #[test]
    fn steps_are_short_where_the_disk_has_little_more_and_end_before_it_is_full() {
        let megabytes = |free: u64| affordable(128 << 20, free << 20).map(|length| length >> 20);
        let found = [512, 511, 64, 63].map(megabytes);
        assert_eq!(found, [Some(256), Some(144), Some(144), None]);
    }
}
