//! Makes a data directory of a backup, as of a moment.
//!
//! ```text
//! manifest ─► files of engines ─► log, under another name ─► log after it up to the moment ─► all durable ─► rename the log
//! ```
//! A start refuses the directory until the log has its name, because the manifest points into it.

use crate::copy::each_range;
use crate::manifest::{FileEntry, Manifest};
use crate::receipts::{self, Receipt};
use crate::target::Target;
use crate::{Result, Tell, format_ms, of_storage};
use bunko_store::{DescribedDirectory, Lsn, SEGMENT_BYTES, extend_image, files, walk_archived};
use bunko_tools::ToolError;
use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "manifest.bson";
const LOG: &str = "log";
/// The log until all of it is there.
const UNFINISHED_LOG: &str = "log.restoring";

/// A restore to be done.
pub struct RestoreOptions {
    /// The directory of backups.
    pub from: PathBuf,
    /// The moment, in milliseconds since 1970; `None` for the newest.
    pub to_ms: Option<u64>,
    /// The data directory to be made.
    pub dbpath: PathBuf,
}

/// A directory that was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The storage engine to start it with.
    pub engine: String,
    /// The backup that it was made of.
    pub id: String,
    /// Time of its last record, in milliseconds since 1970; the image's where there is none after it.
    pub time_ms: u64,
}

/// The times that can be restored from one backup, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub from_ms: u64,
    pub to_ms: u64,
}

/// Makes a data directory.
/// # Errors
/// `Usage` for a time that cannot be restored, with the times that can, and for a directory that is not empty; `Damaged`
/// with the file. A start refuses the directory then.
pub fn restore(options: &RestoreOptions, tell: Tell<'_>) -> Result<Restored> {
    let target = Target::read(&options.from)?;
    let manifests = target.manifests()?;
    let (manifest, last) = choose(&target, &manifests, options.to_ms)?;
    check_format(manifest)?;
    prepare(&options.dbpath)?;
    let log = options.dbpath.join(UNFINISHED_LOG);
    let cut = cut(&target, manifest, last, options.to_ms)?;
    copy_files(&target, manifest, &options.dbpath)?;
    extend_image(&target.archive_of(&manifest.id), &log, Lsn(manifest.end)..cut.0).map_err(of_storage)?;
    sync_below(&options.dbpath)?;
    files::rename(&log, &options.dbpath.join(LOG)).map_err(of_storage)?;
    files::sync_directory(&options.dbpath).map_err(of_storage)?;
    tell(&format!("restored backup {}; the last write is of {}", manifest.id, format_ms(cut.1)));
    Ok(Restored { engine: manifest.engine.clone(), id: manifest.id.clone(), time_ms: cut.1 })
}

/// The times that a backup can be restored to, and its last receipt.
pub(crate) fn span_of(target: &Target, manifest: &Manifest) -> Result<(Span, Option<Receipt>)> {
    let receipts = receipts::read(&target.archive_of(&manifest.id))?;
    let to_ms = receipts.map_or(manifest.time_ms, |(_, last)| last.complete_ms);
    Ok((Span { from_ms: manifest.time_ms, to_ms }, receipts.map(|(_, last)| last)))
}

/// The newest backup that has the moment.
fn choose<'m>(
    target: &Target,
    manifests: &'m [Manifest],
    to_ms: Option<u64>,
) -> Result<(&'m Manifest, Option<Receipt>)> {
    let mut spans = Vec::new();
    for manifest in manifests.iter().rev() {
        let (span, last) = span_of(target, manifest)?;
        if to_ms.is_none_or(|to_ms| (span.from_ms..=span.to_ms).contains(&to_ms)) {
            return Ok((manifest, last));
        }
        spans.push(format!("{} to {}", format_ms(span.from_ms), format_ms(span.to_ms)));
    }
    spans.reverse();
    let wanted = to_ms.map_or_else(|| "the newest moment".to_owned(), format_ms);
    let range = if spans.is_empty() {
        "there is no backup".to_owned()
    } else {
        format!("the backups have {}", spans.join(", and "))
    };
    Err(ToolError::Usage(format!("{wanted} cannot be restored: {range}")))
}

fn check_format(manifest: &Manifest) -> Result<()> {
    let read = DescribedDirectory::READ;
    if !read.contains(&manifest.data_format) {
        return Err(ToolError::Usage(format!(
            "backup {} has data of format {}, and this version reads {} to {}: restore it with the version that made it",
            manifest.id,
            manifest.data_format,
            read.start(),
            read.end()
        )));
    }
    if manifest.segment_bytes != SEGMENT_BYTES {
        let (found, own) = (manifest.segment_bytes, SEGMENT_BYTES);
        return Err(ToolError::Usage(format!(
            "backup {} has segments of {found} bytes, and this program of {own}",
            manifest.id
        )));
    }
    Ok(())
}

/// Makes the directory, which must be missing or empty.
fn prepare(dbpath: &Path) -> Result<()> {
    bunko_store::check_place(dbpath).map_err(of_storage)?;
    if let Some(found) = files::entries(dbpath).map_err(of_storage)?.first() {
        let (dbpath, found) = (dbpath.display(), found.file_name().unwrap_or_default().display());
        return Err(ToolError::Usage(format!("{dbpath}: has {found}: name a directory that is missing or empty")));
    }
    files::make_directory(dbpath).map_err(of_storage)
}

/// The end of the last record of the log that is restored, and that record's time.
fn cut(target: &Target, manifest: &Manifest, last: Option<Receipt>, to_ms: Option<u64>) -> Result<(Lsn, u64)> {
    let mut cut = (Lsn(manifest.end), manifest.time_ms);
    let Some(last) = last else { return Ok(cut) };
    let archive = target.archive_of(&manifest.id);
    let path_of = |number: u64| archive.join(format!("{number:012}.segment"));
    walk_archived(&path_of, Lsn(manifest.end)..Lsn(last.end), &mut |record| {
        match record.time_ms {
            Some(time_ms) if to_ms.is_some_and(|to_ms| time_ms > to_ms) => return ControlFlow::Break(()),
            Some(time_ms) => cut = (record.end, time_ms),
            // A record without a time is restored only together with a later record.
            None => {}
        }
        ControlFlow::Continue(())
    })
    .map_err(of_storage)?;
    Ok(cut)
}

/// Copies the files of a backup, the manifest first, and checks every range.
fn copy_files(target: &Target, manifest: &Manifest, dbpath: &Path) -> Result<()> {
    let (first, rest): (Vec<_>, Vec<_>) = manifest.files.iter().partition(|file| file.name == MANIFEST);
    for file in first {
        copy_file(target, file, &dbpath.join(MANIFEST))?;
        files::sync_directory(dbpath).map_err(of_storage)?;
    }
    files::make_directory(&dbpath.join(UNFINISHED_LOG)).map_err(of_storage)?;
    for file in rest {
        let to = match Path::new(&file.name).strip_prefix(LOG) {
            Ok(below) => dbpath.join(UNFINISHED_LOG).join(below),
            Err(_) => dbpath.join(&file.name),
        };
        copy_file(target, file, &to)?;
    }
    Ok(())
}

fn copy_file(target: &Target, file: &FileEntry, to: &Path) -> Result<()> {
    files::make_directory(to.parent().unwrap_or(to)).map_err(of_storage)?;
    let failed = |cause: io::Error| ToolError::File { path: to.to_owned(), cause };
    let made = files::create(to).map_err(of_storage)?;
    made.set_len(file.bytes).map_err(failed)?;
    check_file(target, file, &mut |offset, bytes| {
        // The file has its length, so zeros are there.
        let is_empty = bytes.iter().all(|byte| *byte == 0);
        if is_empty { Ok(()) } else { made.write_all_at(bytes, offset).map_err(failed) }
    })?;
    made.sync_all().map_err(failed)
}

/// Reads a file of a backup, and checks its length and every range.
/// # Errors
/// `Damaged` with the file; errors of the files and of `take`.
pub(crate) fn check_file(
    target: &Target,
    file: &FileEntry,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let path = target.files_of(&file.from).join(&file.name);
    let damaged = |offset_bytes, found: String| ToolError::Damaged { path: path.clone(), offset_bytes, found };
    let length = path.metadata().map(|metadata| metadata.len()).map_err(|_| damaged(0, "is missing".to_owned()))?;
    if length != file.bytes {
        return Err(damaged(length.min(file.bytes), format!("has {length} bytes instead of {}", file.bytes)));
    }
    let mut ranges = file.ranges.iter();
    each_range(&path, &mut |offset, bytes| {
        if ranges.next() != Some(&bunko_checksum::crc32c(bytes)) {
            return Err(damaged(offset, "fails its checksum".to_owned()));
        }
        take(offset, bytes)
    })
}

/// Makes the names of all files below a directory durable.
fn sync_below(directory: &Path) -> Result<()> {
    let mut names = BTreeSet::from([directory.to_owned()]);
    while let Some(next) = names.pop_first() {
        names.extend(files::entries(&next).map_err(of_storage)?.into_iter().filter(|path| path.is_dir()));
        files::sync_directory(&next).map_err(of_storage)?;
    }
    Ok(())
}
