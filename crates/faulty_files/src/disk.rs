//! The contents that a disk may have after a power cut.
//!
//! Until a file is synced, any part of its changes may be lost, page by page and in any order; its length is any that
//! it had since the last sync. Until a directory is synced, each of its entries may be as before. No single filesystem
//! loses that much, but POSIX allows it.

use crate::recording::{Event, FileId};
use bunko_testkit::random::Random;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Unit in which a disk writes, in bytes.
const PAGE_BYTES: u64 = 4096;

type Page = [u8; PAGE_BYTES as usize];

/// A disk, and the changes that are not synced to it.
#[derive(Clone, Default)]
pub struct Disk {
    files: BTreeMap<FileId, Inode>,
}

#[derive(Clone, Default)]
struct Inode {
    is_directory: bool,
    length: u64,
    pages: BTreeMap<u64, Box<Page>>,
    entries: BTreeMap<OsString, FileId>,
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Page { number: u64, start: usize, bytes: Vec<u8> },
    Length { length: u64 },
    Zeros { offset: u64, length: u64 },
    Entry { name: OsString, file: Option<FileId> },
    Moved { from: OsString, to: OsString, file: FileId },
}

impl Disk {
    /// An empty disk.
    pub fn new() -> Self {
        let root = Inode { is_directory: true, ..Inode::default() };
        Self { files: BTreeMap::from([(0, root)]) }
    }

    /// Applies a recorded call.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Create { directory, name, file, is_directory } => {
                self.files.insert(*file, Inode { is_directory: *is_directory, ..Inode::default() });
                self.change(*directory, Change::Entry { name: name.clone(), file: Some(*file) });
            }
            Event::Write { file, offset, bytes, is_synced } => {
                let Some(inode) = self.files.get_mut(file) else { return };
                let changes = page_changes(*offset, bytes);
                let end = offset + bytes.len() as u64;
                let grows = end > inode.newest_length();
                let length = grows.then_some(Change::Length { length: end });
                for change in length.into_iter().chain(changes) {
                    if *is_synced {
                        inode.keep(&change);
                    } else {
                        inode.unsynced.push(change);
                    }
                }
            }
            Event::Resize { file, length } => self.change(*file, Change::Length { length: *length }),
            Event::Allocate { file, end } => {
                if self.files.get(file).is_some_and(|inode| inode.newest_length() < *end) {
                    self.change(*file, Change::Length { length: *end });
                }
            }
            Event::Punch { file, offset, length } => {
                self.change(*file, Change::Zeros { offset: *offset, length: *length });
            }
            Event::Sync { file } => {
                if let Some(inode) = self.files.get_mut(file) {
                    for change in std::mem::take(&mut inode.unsynced) {
                        inode.keep(&change);
                    }
                }
            }
            // A rename within one directory happens whole or not at all.
            Event::Rename { from, to, file } if from.0 == to.0 => {
                self.change(from.0, Change::Moved { from: from.1.clone(), to: to.1.clone(), file: *file });
            }
            Event::Rename { from, to, file } => {
                self.change(to.0, Change::Entry { name: to.1.clone(), file: Some(*file) });
                self.change(from.0, Change::Entry { name: from.1.clone(), file: None });
            }
            Event::Link { directory, name, file } => {
                self.change(*directory, Change::Entry { name: name.clone(), file: Some(*file) });
            }
            Event::Unlink { directory, name } => {
                self.change(*directory, Change::Entry { name: name.clone(), file: None });
            }
            Event::Note(_) => {}
        }
    }

    fn change(&mut self, file: FileId, change: Change) {
        if let Some(inode) = self.files.get_mut(&file) {
            inode.unsynced.push(change);
        }
    }

    /// Cuts the power: a random part of the unsynced changes is kept.
    pub fn cut(&mut self, random: &mut Random) {
        for inode in self.files.values_mut() {
            // The share that is lost differs from file to file; it is often all or nothing.
            let kept_of_four = random.below(5);
            for change in std::mem::take(&mut inode.unsynced) {
                if random.below(4) < kept_of_four {
                    inode.keep(&change);
                }
            }
        }
    }

    /// Writes the disk's contents into an empty directory.
    ///
    /// # Errors
    /// The first error of the file system.
    pub fn write_to(&self, directory: &Path) -> std::io::Result<()> {
        self.write_directory(0, directory)
    }

    fn write_directory(&self, number: FileId, directory: &Path) -> std::io::Result<()> {
        let Some(inode) = self.files.get(&number) else { return Ok(()) };
        for (name, file) in &inode.entries {
            let path = directory.join(name);
            match self.files.get(file) {
                Some(below) if below.is_directory => {
                    std::fs::create_dir(&path)?;
                    self.write_directory(*file, &path)?;
                }
                Some(content) => content.write_file(&path)?,
                None => {}
            }
        }
        Ok(())
    }
}

/// A write, cut at pages.
fn page_changes(offset: u64, bytes: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    let (mut at, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let start = (at % PAGE_BYTES) as usize;
        let length = rest.len().min(PAGE_BYTES as usize - start);
        changes.push(Change::Page { number: at / PAGE_BYTES, start, bytes: rest[..length].to_vec() });
        at += length as u64;
        rest = &rest[length..];
    }
    changes
}

impl Inode {
    fn newest_length(&self) -> u64 {
        let newest = self.unsynced.iter().rev().find_map(|change| match change {
            Change::Length { length } => Some(*length),
            _ => None,
        });
        newest.unwrap_or(self.length)
    }

    /// Lets a change reach the disk.
    fn keep(&mut self, change: &Change) {
        match change {
            Change::Page { number, start, bytes } => {
                let page = self.pages.entry(*number).or_insert_with(|| Box::new([0; PAGE_BYTES as usize]));
                page[*start..start + bytes.len()].copy_from_slice(bytes);
            }
            Change::Length { length } => {
                self.length = *length;
                self.zero(*length, u64::MAX - length);
            }
            Change::Zeros { offset, length } => self.zero(*offset, *length),
            Change::Entry { name, file: Some(file) } => _ = self.entries.insert(name.clone(), *file),
            Change::Moved { from, to, file } => {
                self.entries.remove(from);
                self.entries.insert(to.clone(), *file);
            }
            Change::Entry { name, file: None } => _ = self.entries.remove(name),
        }
    }

    fn zero(&mut self, offset: u64, length: u64) {
        let end = offset + length;
        for (number, page) in self.pages.range_mut(offset / PAGE_BYTES..) {
            let start = number * PAGE_BYTES;
            let from = offset.max(start).min(end);
            let to = (start + PAGE_BYTES).min(end);
            if from >= to {
                break;
            }
            page[(from - start) as usize..(to - start) as usize].fill(0);
        }
    }

    /// Writes the pages up to the file's length; bytes past it are dropped.
    fn write_file(&self, path: &Path) -> std::io::Result<()> {
        let file = File::create(path)?;
        file.set_len(self.length)?;
        for (number, page) in &self.pages {
            let start = number * PAGE_BYTES;
            let length = self.length.saturating_sub(start).min(PAGE_BYTES) as usize;
            if page[..length].iter().any(|&byte| byte != 0) {
                file.write_all_at(&page[..length], start)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> OsString {
        name.into()
    }

    fn create(file: FileId, at: &str) -> Event {
        Event::Create { directory: 0, name: name(at), file, is_directory: false }
    }

    fn write(file: FileId, bytes: &[u8]) -> Event {
        Event::Write { file, offset: 0, bytes: bytes.to_vec(), is_synced: false }
    }

    /// Contents of the file `a` after many cuts.
    fn outcomes(events: &[Event]) -> Vec<Option<Vec<u8>>> {
        let mut found: Vec<_> = (0..200)
            .map(|seed| {
                let directory = tempfile::tempdir().expect("temporary directory");
                let mut disk = Disk::new();
                for event in events {
                    disk.apply(event);
                }
                disk.cut(&mut Random(seed));
                disk.write_to(directory.path()).expect("written");
                std::fs::read(directory.path().join("a")).ok()
            })
            .collect();
        found.sort();
        found.dedup();
        found
    }

    #[test]
    fn synced_bytes_are_there_and_others_may_be() {
        let made = [create(1, "a"), write(1, b"one"), Event::Sync { file: 1 }, Event::Sync { file: 0 }];
        assert_eq!(outcomes(&made), [Some(b"one".to_vec())]);
        let mut changed = made.to_vec();
        changed.push(write(1, b"two"));
        assert_eq!(outcomes(&changed), [Some(b"one".to_vec()), Some(b"two".to_vec())]);
        assert_eq!(outcomes(&made[..3]), [None, Some(b"one".to_vec())], "no sync of the directory");
        let unsynced = outcomes(&[create(1, "a"), Event::Sync { file: 0 }, write(1, b"one")]);
        assert_eq!(unsynced, [Some(vec![]), Some(vec![0; 3]), Some(b"one".to_vec())]);
    }

    #[test]
    fn a_rename_leads_to_the_old_file_or_to_the_new_one() {
        let events = [
            create(1, "a"),
            write(1, b"old"),
            Event::Sync { file: 1 },
            create(2, "b"),
            write(2, b"new"),
            Event::Sync { file: 2 },
            Event::Sync { file: 0 },
            Event::Rename { from: (0, name("b")), to: (0, name("a")), file: 2 },
        ];
        assert_eq!(outcomes(&events), [Some(b"new".to_vec()), Some(b"old".to_vec())]);
        let mut synced = events.to_vec();
        synced.push(Event::Sync { file: 0 });
        assert_eq!(outcomes(&synced), [Some(b"new".to_vec())]);
    }
}
