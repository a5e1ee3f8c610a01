//! Free pages, and giving them back to the filesystem.
//!
//! LMDB never shortens its file, but reuses the pages that it frees. Pages that have been free for long enough can be
//! given back as holes in the file. The condition is the one under which LMDB itself reuses a page: no committed state
//! that a view or a restart may still read leads to it.

use crate::committed::{Committed, TreeWalk};
use crate::data_file::DataFile;
use crate::page::u64_at;
use bunko_store::{Direction, Result, StorageError};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::ops::{Bound, Range};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// Longest time of one step of giving pages back.
const STEP: Duration = Duration::from_millis(500);
/// Number of meta pages, which come before the first page that LMDB uses.
const META_PAGES: u64 = 2;

/// Shows each list of free pages, with the transaction that freed them.
fn for_each_list(committed: &Committed, mut show: impl FnMut(u64, &[u8])) -> Result<()> {
    let mut walk = TreeWalk::new(committed.meta.free, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
    while let Some(place) = walk.next(committed)? {
        let entry = committed.entry(place)?;
        let list = u64_at(entry.value, 0)
            .and_then(|count| usize::try_from(count).ok()?.checked_mul(8))
            .and_then(|length| entry.value.get(8..)?.get(..length))
            .filter(|list| is_plausible(list, committed.meta.pages));
        let (Some(transaction), Some(list)) = (u64_at(entry.key, 0), list) else {
            return Err(committed.file.corrupt(entry.offset_bytes, "a malformed list of free pages"));
        };
        show(transaction, list);
    }
    Ok(())
}

/// Whether a list is in descending order and names only pages that LMDB has used.
fn is_plausible(list: &[u8], pages: u64) -> bool {
    let mut above = pages;
    list.chunks_exact(8).filter_map(|page| u64_at(page, 0)).all(|page| {
        let is_below = (META_PAGES..above).contains(&page);
        above = page;
        is_below
    })
}

/// Number of free pages in a committed state. Checks the lists that LMDB will read, because LMDB trusts them.
pub(crate) fn count(committed: &Committed) -> Result<u64> {
    count_since(committed, 0)
}

/// Number of pages that were freed by `transaction` or later ones.
pub(crate) fn count_since(committed: &Committed, transaction: u64) -> Result<u64> {
    let mut pages = 0;
    for_each_list(committed, |freed_by, list| {
        if freed_by >= transaction {
            pages += list.len() as u64 / 8;
        }
    })?;
    Ok(pages)
}

/// Runs of pages that were freed before `before_transaction`, in order.
pub(crate) fn runs(committed: &Committed, before_transaction: u64) -> Result<Vec<Range<u64>>> {
    let mut pages = Vec::new();
    for_each_list(committed, |transaction, list| {
        if transaction < before_transaction {
            pages.extend(list.chunks_exact(8).filter_map(|page| u64_at(page, 0)));
        }
    })?;
    pages.sort_unstable();
    if pages.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(committed.file.corrupt(0, "a page that is free twice"));
    }
    let mut runs: Vec<Range<u64>> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some(run) if run.end == page => run.end += 1,
            _ => runs.push(page..page + 1),
        }
    }
    Ok(runs)
}

/// Bytes of the file on disk, without its holes.
pub(crate) fn allocated_bytes(file: &DataFile) -> Result<u64> {
    let metadata = file.file.metadata().map_err(|source| StorageError::io(&file.path, source))?;
    Ok(metadata.blocks() * 512)
}

/// Gives back pages that were freed before `before_transaction`, in runs of at least `run_pages_min` pages. Returns the
/// bytes gained. No thread may be writing, and `before_transaction` must be no later than the last commit and every
/// commit that a view reads: LMDB would reuse exactly those pages next.
pub(crate) fn punch(committed: &Committed, before_transaction: u64, run_pages_min: u64) -> Result<u64> {
    let file = &committed.file;
    let page_bytes = file.page_bytes as u64;
    let allocated_bytes_before = allocated_bytes(file)?;
    let started = file.clock.now();
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    // The longest runs first, because they gain most within the time of a step.
    let mut runs = runs(committed, before_transaction)?;
    runs.retain(|run| run.end - run.start >= run_pages_min);
    runs.sort_by_key(|run| std::cmp::Reverse(run.end - run.start));
    for run in runs {
        match fallocate(&file.file, flags, run.start * page_bytes, (run.end - run.start) * page_bytes) {
            Ok(()) => {}
            Err(Errno::OPNOTSUPP) => break,
            Err(error) => return Err(StorageError::io(&file.path, error.into())),
        }
        if file.clock.since(started) > STEP {
            break;
        }
    }
    Ok(allocated_bytes_before.saturating_sub(allocated_bytes(file)?))
}
