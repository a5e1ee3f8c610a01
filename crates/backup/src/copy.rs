//! Copies the files of an image into a target. Files that the target has already are not copied again.

use crate::manifest::{FileEntry, Manifest};
use crate::source::Source;
use crate::target::Target;
use crate::{Result, of_storage};
use bunko_store::{IMAGE_RANGE_BYTES, ImageFile, ImageList, files};
use bunko_tools::ToolError;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file that is being copied, which gets its name once it is whole and durable.
const UNFINISHED: &str = "unfinished.tmp";

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
    /// Errors of the files and of the server.
    pub fn run(&mut self, tick: Tick<'_>) -> Result<Copied> {
        let directory = self.target.files_of(self.id);
        files::make_directory(&directory).map_err(of_storage)?;
        let (mut copied, mut directories) = (Copied { files: Vec::new(), new_bytes: 0 }, BTreeSet::new());
        for file in &self.list.files {
            let entry = match self.found(file, tick)? {
                Some(entry) => entry,
                None => {
                    copied.new_bytes += file.bytes;
                    self.copied(file, tick)?
                }
            };
            let root = self.target.files_of(&entry.from);
            let name = Path::new(&entry.name);
            directories.extend(name.ancestors().skip(1).map(|below| root.join(below)));
            copied.files.push(entry);
        }
        for directory in directories {
            files::sync_directory(&directory).map_err(of_storage)?;
        }
        self.target.sync_names()?;
        Ok(copied)
    }

    /// The file in the target that has the same contents: of a finished backup, or of one that was interrupted.
    fn found(&mut self, file: &ImageFile, tick: Tick<'_>) -> Result<Option<FileEntry>> {
        let earlier = self.earlier;
        for entry in earlier.iter().rev().filter_map(|manifest| manifest.file(&file.name)) {
            if entry.bytes == file.bytes && self.is_there(entry) && self.is_same(entry, tick)? {
                return Ok(Some(entry.clone()));
            }
        }
        for from in self.target.ids_with_files()? {
            let is_finished = earlier.iter().any(|manifest| manifest.id == from);
            if is_finished {
                continue;
            }
            let entry = FileEntry { name: file.name.clone(), bytes: file.bytes, from, ranges: Vec::new() };
            if self.is_there(&entry)
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
        let path = self.target.files_of(&entry.from).join(&entry.name);
        let file = files::open(&path).map_err(of_storage)?;
        let (mut ranges, mut offset, mut bytes) = (Vec::new(), 0, Vec::new());
        while offset < entry.bytes {
            tick(self.source)?;
            bytes.resize((entry.bytes - offset).min(IMAGE_RANGE_BYTES) as usize, 0);
            let failed = |cause: io::Error| ToolError::File { path: path.clone(), cause };
            file.read_exact_at(&mut bytes, offset).map_err(failed)?;
            let checksum = bunko_checksum::crc32c(&bytes);
            if self.source.checksum(&self.list.id, &entry.name, offset)? != checksum {
                return Ok(None);
            }
            ranges.push(checksum);
            offset += bytes.len() as u64;
        }
        Ok(Some(ranges))
    }

    fn is_there(&self, entry: &FileEntry) -> bool {
        let path = self.target.files_of(&entry.from).join(&entry.name);
        path.metadata().is_ok_and(|metadata| metadata.len() == entry.bytes)
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
        let directory = self.target.files_of(self.id);
        let (unfinished, path) = (directory.join(UNFINISHED), directory.join(&file.name));
        let failed = |cause: io::Error| ToolError::File { path: path.clone(), cause };
        files::make_directory(path.parent().unwrap_or(&directory)).map_err(of_storage)?;
        let made = files::create(&unfinished).map_err(of_storage)?;
        made.set_len(file.bytes).map_err(failed)?;
        let (mut ranges, mut offset) = (Vec::new(), 0);
        while offset < file.bytes {
            tick(self.source)?;
            let length = (file.bytes - offset).min(IMAGE_RANGE_BYTES);
            let (bytes, checksum) = self.source.read(&self.list.id, &file.name, (offset, length))?;
            // The file has its length, so zeros are there.
            if bytes.iter().any(|byte| *byte != 0) {
                made.write_all_at(&bytes, offset).map_err(failed)?;
            }
            ranges.push(checksum);
            offset += length;
        }
        made.sync_all().map_err(failed)?;
        files::rename(&unfinished, &path).map_err(of_storage)?;
        Ok(FileEntry { name: file.name.clone(), bytes: file.bytes, from: self.id.to_owned(), ranges })
    }
}

/// Reads a file range by range.
/// # Errors
/// Errors of the file and of `take`.
pub(crate) fn each_range(path: &Path, take: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
    let failed = |cause: io::Error| ToolError::File { path: path.to_owned(), cause };
    let file = files::open(path).map_err(of_storage)?;
    let length = file.metadata().map_err(failed)?.len();
    let (mut offset, mut bytes) = (0, Vec::new());
    while offset < length {
        bytes.resize((length - offset).min(IMAGE_RANGE_BYTES) as usize, 0);
        file.read_exact_at(&mut bytes, offset).map_err(failed)?;
        take(offset, &bytes)?;
        offset += bytes.len() as u64;
    }
    Ok(())
}
