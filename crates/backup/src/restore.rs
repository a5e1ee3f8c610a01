//! Makes a data directory of a backup, as of a moment.
//!
//! ```text
//! manifest ─► files of engines ─► log, under another name ─► log after it up to the moment ─► all durable ─► rename the log
//! ```
//! A start refuses the directory until the log has its name, because the manifest points into it.

use crate::archive::{copy_parts, last_receipt};
use crate::manifest::Manifest;
use crate::place::Place;
use crate::receipts::Receipt;
use crate::stored_file::{copy_file, segment_name};
use crate::target::{Form, Target, archive_of};
use crate::{Result, Tell, format_ms, of_storage};
use bunko_store::{DescribedDirectory, Lsn, SEGMENT_BYTES, extend_image, files, walk_archived};
use bunko_tools::ToolError;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "manifest.bson";
const LOG: &str = "log";
/// Copies of the log after the backup, until it is put after the backup's own.
const ARCHIVE: &str = "archive.restoring";
/// The log until all of it is there.
const UNFINISHED_LOG: &str = "log.restoring";

/// A restore to be done.
pub struct RestoreOptions {
    /// The place of the backups.
    pub from: Place,
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
    copy_manifest(&target, manifest, &options.dbpath)?;
    let archive = local_archive(&target, manifest, last, options)?;
    let cut = cut(&archive, manifest, last, options.to_ms)?;
    copy_files(&target, manifest, &options.dbpath)?;
    extend_image(&archive, &log, Lsn(manifest.end)..cut.0).map_err(of_storage)?;
    files::remove_directory(&options.dbpath.join(ARCHIVE)).map_err(of_storage)?;
    sync_below(&options.dbpath)?;
    files::rename(&log, &options.dbpath.join(LOG)).map_err(of_storage)?;
    files::sync_directory(&options.dbpath).map_err(of_storage)?;
    tell(&format!("restored backup {}; the last write is of {}", manifest.id, format_ms(cut.1)));
    Ok(Restored { engine: manifest.engine.clone(), id: manifest.id.clone(), time_ms: cut.1 })
}

/// The times that a backup can be restored to, and its last receipt.
pub(crate) fn span_of(target: &Target, manifest: &Manifest) -> Result<(Span, Option<Receipt>)> {
    let last = last_receipt(target, &manifest.id)?;
    let to_ms = last.map_or(manifest.time_ms, |last| last.complete_ms);
    Ok((Span { from_ms: manifest.time_ms, to_ms }, last))
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

/// The directory with the log after the backup, as segment files: the target's own, or copies.
fn local_archive(
    target: &Target,
    manifest: &Manifest,
    last: Option<Receipt>,
    options: &RestoreOptions,
) -> Result<PathBuf> {
    if target.form() == Form::Growing {
        return target.path(&archive_of(&manifest.id));
    }
    let directory = options.dbpath.join(ARCHIVE);
    if let Some(last) = last {
        copy_parts(target, manifest, (last, options.to_ms), &directory)?;
    }
    Ok(directory)
}

/// The end of the last record of the log that is restored, and that record's time.
fn cut(archive: &Path, manifest: &Manifest, last: Option<Receipt>, to_ms: Option<u64>) -> Result<(Lsn, u64)> {
    let mut cut = (Lsn(manifest.end), manifest.time_ms);
    let Some(last) = last else { return Ok(cut) };
    let path_of = |number: u64| archive.join(segment_name(number));
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

/// Copies the manifest of the data, with which a start refuses the directory as long as the log is missing.
fn copy_manifest(target: &Target, manifest: &Manifest, dbpath: &Path) -> Result<()> {
    if let Some(file) = manifest.file(MANIFEST) {
        copy_file(target, file, &dbpath.join(MANIFEST))?;
    }
    files::sync_directory(dbpath).map_err(of_storage)
}

/// Copies the other files of a backup, and checks every range.
fn copy_files(target: &Target, manifest: &Manifest, dbpath: &Path) -> Result<()> {
    files::make_directory(&dbpath.join(UNFINISHED_LOG)).map_err(of_storage)?;
    for file in manifest.files.iter().filter(|file| file.name != MANIFEST) {
        let to = match Path::new(&file.name).strip_prefix(LOG) {
            Ok(below) => dbpath.join(UNFINISHED_LOG).join(below),
            Err(_) => dbpath.join(&file.name),
        };
        copy_file(target, file, &to)?;
    }
    Ok(())
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
