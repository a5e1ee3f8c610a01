//! Copies the files of an image into a target. Files that the target has already are not copied again.

use crate::Result;
use crate::manifest::{FileEntry, Manifest};
use crate::source::Source;
use crate::stored_file::each_range;
use crate::target::{FILES, Target, file_of};
use bunko_store::{IMAGE_RANGE_BYTES, ImageFile, ImageList};
use bunko_tools::ToolError;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Called before each range; an error ends the copy.
pub(crate) type Tick<'t> = &'t mut dyn FnMut(&mut Source) -> Result<()>;

/// A copy of an image into a target.
pub(crate) struct Copy<'c> {
    pub target: &'c Target,
    pub source: &'c mut Source,
    pub list: &'c ImageList,
    /// The backup that the copied files belong to.
    pub id: &'c str,
    /// All finished backups of the target.
    pub earlier: &'c [Manifest],
}

/// The files of a copy.
pub(crate) struct Copied {
    pub files: Vec<FileEntry>,
    /// Number of bytes that the target did not have.
    pub new_bytes: u64,
}

impl Copy<'_> {
    /// Copies all files. They are durable on return.
    /// # Errors
    /// Errors of the store and of the server.
    pub fn run(&mut self, tick: Tick<'_>) -> Result<Copied> {
        let stored = self.target.objects().list(FILES)?;
        let (mut copied, mut names) = (Copied { files: Vec::new(), new_bytes: 0 }, BTreeSet::new());
        for file in &self.list.files {
            let entry = match self.found(file, &stored, tick)? {
                Some(entry) => entry,
                None => {
                    copied.new_bytes += file.bytes;
                    self.copied(file, tick)?
                }
            };
            names.insert(file_of(&entry));
            copied.files.push(entry);
        }
        self.target.objects().settle(&names)?;
        Ok(copied)
    }

    /// The file in the target that has the same contents: of a finished backup, or of one that was interrupted.
    fn found(&mut self, file: &ImageFile, stored: &BTreeMap<String, u64>, tick: Tick<'_>) -> Result<Option<FileEntry>> {
        let earlier = self.earlier;
        let is_there = |entry: &FileEntry| stored.get(&file_of(entry)) == Some(&entry.bytes);
        for entry in earlier.iter().rev().filter_map(|manifest| manifest.file(&file.name)) {
            if entry.bytes == file.bytes && is_there(entry) && self.is_same(entry, tick)? {
                return Ok(Some(entry.clone()));
            }
        }
        let ids: BTreeSet<&str> =
            stored.keys().filter_map(|name| name.strip_prefix(FILES)?.split('/').next()).collect();
        for from in ids {
            let is_finished = earlier.iter().any(|manifest| manifest.id == from);
            if is_finished {
                continue;
            }
            let from = from.to_owned();
            let entry = FileEntry { name: file.name.clone(), bytes: file.bytes, from, ranges: Vec::new() };
            if is_there(&entry)
                && let Some(ranges) = self.same_ranges(&entry, tick)?
            {
                return Ok(Some(FileEntry { ranges, ..entry }));
            }
        }
        Ok(None)
    }

    /// The checksums of a file of an interrupted backup; `None` if the server's file differs. The server is asked after each
    /// range, because it ends an image that is not read.
    fn same_ranges(&mut self, entry: &FileEntry, tick: Tick<'_>) -> Result<Option<Vec<u32>>> {
        let (mut ranges, mut is_same) = (Vec::new(), true);
        let (source, image) = (&mut *self.source, &self.list.id);
        let shown = each_range(self.target, &file_of(entry), &mut |offset, bytes| {
            tick(source)?;
            let checksum = bunko_checksum::crc32c(bytes);
            is_same = source.checksum(image, &entry.name, offset)? == checksum;
            ranges.push(checksum);
            Ok(if is_same { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        match shown {
            Ok(exists) => Ok((exists && is_same).then_some(ranges)),
            // It is copied again.
            Err(ToolError::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_same(&mut self, entry: &FileEntry, tick: Tick<'_>) -> Result<bool> {
        for (range, checksum) in entry.ranges.iter().enumerate() {
            tick(self.source)?;
            let offset = range as u64 * IMAGE_RANGE_BYTES;
            if self.source.checksum(&self.list.id, &entry.name, offset)? != *checksum {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn copied(&mut self, file: &ImageFile, tick: Tick<'_>) -> Result<FileEntry> {
        let mut entry =
            FileEntry { name: file.name.clone(), bytes: file.bytes, from: self.id.to_owned(), ranges: Vec::new() };
        let mut made = self.target.objects().create(&file_of(&entry), file.bytes)?;
        let mut offset = 0;
        while offset < file.bytes {
            tick(self.source)?;
            let length = (file.bytes - offset).min(IMAGE_RANGE_BYTES);
            let (bytes, checksum) = self.source.read(&self.list.id, &file.name, (offset, length))?;
            made.add(&bytes)?;
            entry.ranges.push(checksum);
            offset += length;
        }
        made.finish()?;
        Ok(entry)
    }
}
