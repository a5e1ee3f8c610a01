//! A dump directory, or one file of it; several files are read at a time.

use super::super::feed::{Feed, PartEnd};
use super::super::options::{Oplog, RestoreOptions};
use super::super::plan::{self, Entry};
use super::super::run::Run;
use super::super::target::BUCKETS_PREFIX;
use super::{File, Input as AnyInput, Opened, OplogOfDump, STDIN, Stream, TargetDescription, target};
use crate::ToolError;
use crate::progress::Progress;
use bunko_archive::compression;
use bunko_archive::directory::{self, Collection, DumpFile, Listing};
use bunko_archive::metadata::Metadata;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt::Write;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;
use xxhash_rust::xxh3::xxh3_128;

/// Longest metadata file that is read, in bytes; it is kept in memory.
const METADATA_BYTES_MAX: u64 = 64 * 1024 * 1024;
const METADATA_SUFFIX: &str = ".metadata.json";

/// The documents of a directory.
pub(in super::super) struct Input {
    /// A file for each target; `None` for views and collections without documents.
    files: Vec<Option<DumpFile>>,
    oplog: Option<DumpFile>,
}

pub(super) fn open_directory(
    path: &Path,
    database: Option<&str>,
    options: &RestoreOptions,
    progress: &Progress,
) -> Result<Opened, ToolError> {
    let failed = |cause| ToolError::File { path: path.to_owned(), cause };
    let mut listing = match database {
        None => directory::list(path),
        Some(_) => directory::list_database(path),
    }
    .map_err(failed)?;
    // With an oplog file, the directory need not hold collections.
    if !matches!(options.oplog, Oplog::Replay { file: Some(_), .. }) {
        refuse_what_is_no_dump(path, database, &listing)?;
    }
    if let (Some(name), [only]) = (database, &mut *listing.databases) {
        name.clone_into(&mut only.name);
    }
    if matches!(options.oplog, Oplog::Replay { file: None, .. }) && listing.oplog.is_none() {
        listing.oplog = take_oplog_collection(&mut listing.databases);
    }
    let mut warnings = listing.ignored.iter().map(|path| format!("{} is not part of a dump", path.display())).collect();
    let identity = identity(&listing);
    let (found, files) = plan_listing(listing.databases, options, &mut warnings)?;
    expect(progress, &files);
    let oplog = listing.oplog.as_ref().map_or(OplogOfDump::Missing, |_| OplogOfDump::Included);
    let input = AnyInput::Files(Input { files, oplog: listing.oplog });
    Ok(Opened { found, identity, warnings, oplog, input })
}

/// Takes the documents of `local.oplog.rs` out of a listing: without an `oplog.bson`, they are replayed.
fn take_oplog_collection(databases: &mut [directory::Database]) -> Option<DumpFile> {
    let local = databases.iter_mut().find(|database| database.name == "local")?;
    let place = local.collections.iter().position(|collection| collection.name.as_deref() == Some("oplog.rs"))?;
    local.collections.remove(place).data
}

/// Refuses a directory that is not a dump: restoring nothing from it would look like a success.
fn refuse_what_is_no_dump(path: &Path, database: Option<&str>, listing: &Listing) -> Result<(), ToolError> {
    let has_collections = listing.databases.iter().any(|database| !database.collections.is_empty());
    let is_document = |path: &PathBuf| path.to_string_lossy().contains(".bson");
    let has_documents = listing.ignored.iter().any(is_document);
    // A dump of one database has its prelude beside the collections.
    if has_collections || listing.oplog.is_some() || (listing.prelude.is_some() && !has_documents) {
        return Ok(());
    }
    let advice = match database {
        None if has_documents => {
            "no folder of it is a database's. Its files may be those of one database: name that with --db"
        }
        None => "no folder of it has files of collections (NAME.bson, NAME.metadata.json)",
        Some(_) if listing.ignored.iter().any(|path| path.is_dir()) => {
            "it has no files of collections, but folders: it may be a dump of several databases, without --db"
        }
        Some(_) => "it has no files of collections (NAME.bson, NAME.metadata.json)",
    };
    Err(ToolError::Failed(format!("{} is not a dump: {advice}", path.display())))
}

pub(super) fn open_file(
    path: &Path,
    (database, collection): (&str, &str),
    options: &RestoreOptions,
    progress: &Progress,
) -> Result<Opened, ToolError> {
    let is_stdin = path == Path::new(STDIN);
    if is_stdin && options.resume.is_some() {
        let message = "a restore from standard input cannot be resumed: it cannot be read again";
        return Err(ToolError::Usage(message.to_owned()));
    }
    let size_bytes = match std::fs::metadata(path) {
        _ if is_stdin => 0,
        Ok(metadata) => metadata.len(),
        Err(cause) => return Err(ToolError::File { path: path.to_owned(), cause }),
    };
    let metadata = metadata_beside(path).map(|path| read_metadata(&path, options.threads)).transpose()?;
    let file = DumpFile { path: path.to_owned(), size_bytes };
    let identity = stamp(&file);
    // The file's name shows that it holds buckets, whatever collection they are restored into.
    let buckets = if is_of_series(path) && !collection.starts_with(BUCKETS_PREFIX) { BUCKETS_PREFIX } else { "" };
    let entry = Entry {
        database: database.to_owned(),
        collection: format!("{buckets}{collection}"),
        metadata: metadata.unwrap_or_default(),
        size_bytes,
    };
    let found: Vec<_> = plan::found(options, entry)?.into_iter().collect();
    let files: Vec<_> = found.iter().map(|_| Some(file.clone())).collect();
    expect(progress, &files);
    let input = AnyInput::Files(Input { files, oplog: None });
    Ok(Opened { found, identity, warnings: Vec::new(), oplog: OplogOfDump::Missing, input })
}

/// The input of a replay without a dump.
pub(super) fn open_nothing() -> Opened {
    Opened {
        found: Vec::new(),
        identity: String::new(),
        warnings: Vec::new(),
        oplog: OplogOfDump::Missing,
        input: AnyInput::Files(Input { files: Vec::new(), oplog: None }),
    }
}

fn expect(progress: &Progress, files: &[Option<DumpFile>]) {
    let bytes = files.iter().flatten().map(|file| file.size_bytes).sum();
    progress.source_bytes_expected.store(bytes, Ordering::Relaxed);
}

/// Whether a file holds the buckets of a time series.
fn is_of_series(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(BUCKETS_PREFIX))
}

/// The metadata file for `x.bson`; either may be compressed, by different methods.
fn metadata_beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    // A time series' documents are stored under its buckets' name, and its metadata under its own.
    let name = name.strip_prefix(BUCKETS_PREFIX).unwrap_or(name);
    let stem = &name[..name.rfind(".bson")?];
    let candidates =
        ["", ".gz", ".zst", ".lz4"].map(|suffix| path.with_file_name(format!("{stem}{METADATA_SUFFIX}{suffix}")));
    candidates.into_iter().find(|candidate| candidate.is_file())
}

fn read_metadata(path: &Path, threads: NonZeroUsize) -> Result<Metadata, ToolError> {
    let failed = |cause| ToolError::File { path: path.to_owned(), cause };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    let input = compression::open(Box::new(file), threads).map_err(failed)?;
    let length = input.take(METADATA_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    let damaged = |found| ToolError::Damaged { path: path.to_owned(), offset_bytes: 0, found };
    if length as u64 > METADATA_BYTES_MAX {
        return Err(damaged(format!("longer than {METADATA_BYTES_MAX} bytes")));
    }
    Metadata::parse(&text).map_err(|error| damaged(error.to_string()))
}

/// The targets of a listing, with each one's file.
fn plan_listing(
    databases: Vec<directory::Database>,
    options: &RestoreOptions,
    warnings: &mut Vec<String>,
) -> Result<(Vec<TargetDescription>, Vec<Option<DumpFile>>), ToolError> {
    let (mut found, mut files) = (Vec::new(), Vec::new());
    for database in databases {
        if directory::database_directory(&database.name).is_none() {
            warnings.push(format!("'{}' cannot be the name of a database: passed over", database.name));
            continue;
        }
        for collection in database.collections {
            // Metadata of collections that are left out is not read, unless only it has the name.
            if collection.name.as_deref().is_some_and(|name| !plan::is_needed(options, &database.name, name)) {
                continue;
            }
            let Some(entry) = entry(&database.name, &collection, options.threads, warnings)? else { continue };
            if let Some(target) = plan::found(options, entry)? {
                found.push(target);
                files.push(collection.data);
            }
        }
    }
    Ok((found, files))
}

fn entry(
    database: &str,
    collection: &Collection,
    threads: NonZeroUsize,
    warnings: &mut Vec<String>,
) -> Result<Option<Entry>, ToolError> {
    let metadata = match &collection.metadata {
        Some(file) => read_metadata(&file.path, threads)?,
        None => Metadata::default(),
    };
    let name = match &collection.name {
        Some(name) => name.clone(),
        // The file's name was shortened; the metadata has the whole name.
        None if directory::file_stem(&metadata.collection_name) == collection.stem => metadata.collection_name.clone(),
        None => {
            warnings
                .push(format!("{database}/{}: no metadata says what collection this is: passed over", collection.stem));
            return Ok(None);
        }
    };
    let size_bytes = collection.data.as_ref().map_or(0, |file| file.size_bytes);
    Ok(Some(Entry { database: database.to_owned(), collection: name, metadata, size_bytes }))
}

/// Hash of all files' names, lengths and times.
fn identity(listing: &Listing) -> String {
    let collections = listing.databases.iter().flat_map(|database| &database.collections);
    let files = collections.flat_map(|collection| collection.data.iter().chain(&collection.metadata));
    let mut text = String::new();
    for file in files.chain(&listing.oplog) {
        // Writing to a string does not fail.
        let _ = write!(text, "{}\n{}\n", file.path.display(), stamp(file));
    }
    format!("directory {:032x}", xxh3_128(text.as_bytes()))
}

fn stamp(file: &DumpFile) -> String {
    let modified = std::fs::metadata(&file.path).and_then(|metadata| metadata.modified()).ok();
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    format!("{} bytes, modified {}", file.size_bytes, modified.as_nanos())
}

impl Input {
    /// Reads all files; an error in one of them ends the reading of all.
    pub(super) fn read(&self, run: &Run<'_>) {
        let mut order: Vec<usize> = (0..self.files.len()).collect();
        // Largest first, so that the last one to end is small.
        order.sort_by_key(|&number| std::cmp::Reverse(self.files[number].as_ref().map_or(0, |file| file.size_bytes)));
        let waiting = Mutex::new(VecDeque::from(order));
        let readers = run.options.parallel_collections.get().min(self.files.len()).max(1);
        std::thread::scope(|scope| {
            let read = || {
                if let Err(error) = self.read_waiting(run, &waiting) {
                    run.stop_reading(error);
                }
            };
            for _ in 1..readers {
                scope.spawn(read);
            }
            read();
        });
    }

    fn read_waiting(&self, run: &Run<'_>, waiting: &Mutex<VecDeque<usize>>) -> Result<(), ToolError> {
        let mut feed = Feed::new(run);
        while !run.is_read() {
            let next = waiting.lock().pop_front();
            let Some(number) = next else { break };
            let target = target(run, number);
            feed.begin(target)?;
            if let Some(file) = &self.files[number] {
                let mut file = File::open(&file.path, run.options, run.form.batch_bytes())?;
                if file.is_compressed() {
                    // A compressed file's length says nothing about the documents' length.
                    target.counts.bytes_expected.store(0, Ordering::Relaxed);
                }
                while let Some(mut loan) = feed.lend() {
                    let Some(documents) = file.next(loan.take_buffer(), run.progress)? else { break };
                    loan.fill(documents);
                    let place = PartEnd { path: &file.path, end_bytes: file.offset_bytes() };
                    feed.documents(target, loan, place)?;
                }
            }
            if !run.is_read() {
                feed.end(target);
            }
        }
        Ok(())
    }

    pub(super) fn oplog(self, run: &Run<'_>) -> Result<Option<Stream>, ToolError> {
        let file = match &run.options.oplog {
            Oplog::Replay { file: None, .. } => self.oplog.map(|file| file.path),
            Oplog::Replay { .. } | Oplog::None => None,
        };
        file.map(|path| File::open(&path, run.options, run.form.batch_bytes()).map(Stream::File)).transpose()
    }
}
