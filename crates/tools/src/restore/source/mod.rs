//! Sources of documents.

mod archive;
mod files;

use super::options::{ArchiveSource, RestoreOptions, Source};
use super::run::Run;
use super::target::{RestoredNamespace, TargetDescription};
use crate::progress::{Activity, Progress};
use crate::{ToolError, unfinished};
use bunko_archive::Documents;
use bunko_archive::bson_file::{BsonFileError, BsonFileReason};
use bunko_archive::compression::{self, Compression};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Name of standard input in messages.
const STDIN: &str = "-";

/// A dump that was opened.
pub(super) struct Opened {
    /// The namespaces of the dump that are restored.
    pub(super) found: Vec<TargetDescription>,
    /// A text that differs for different dumps.
    pub(super) identity: String,
    /// Notes on skipped files.
    pub(super) warnings: Vec<String>,
    pub(super) oplog: OplogOfDump,
    /// Source of the documents.
    pub(super) input: Input,
}

/// Whether a dump has an oplog.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OplogOfDump {
    Included,
    Missing,
}

/// The documents of a dump.
pub(super) enum Input {
    Archive(Box<archive::Input>),
    Files(files::Input),
}

/// Opens the dump and reads its description of namespaces. Parts are as long as batches, so that each can be sent as it
/// is.
/// # Errors
/// `File`, `Damaged`, `Usage`, `Failed` for a dump that is not finished.
pub(super) fn open(options: &RestoreOptions, part_bytes: usize, progress: &Progress) -> Result<Opened, ToolError> {
    progress.source_bytes.store(0, Ordering::Relaxed);
    refuse_unfinished(&options.source)?;
    match &options.source {
        Source::Archive(ArchiveSource::File(path)) => archive::open_file(path, options, part_bytes, progress),
        Source::Archive(ArchiveSource::Stdin) => {
            archive::open_once(Box::new(io::stdin()), options, part_bytes, progress)
        }
        Source::Archive(ArchiveSource::Pipe(end)) => {
            let pipe = end.take().map_err(|cause| ToolError::File { path: STDIN.into(), cause })?;
            archive::open_once(Box::new(pipe), options, part_bytes, progress)
        }
        Source::Directory { path, database } => files::open_directory(path, database.as_deref(), options, progress),
        Source::File { path, database, collection } => {
            files::open_file(path, (database, collection), options, progress)
        }
        Source::Absent => Ok(files::open_nothing()),
    }
}

/// Refuses an unfinished dump. A truncated archive is noticed only at its end, when the rest is restored; truncated
/// files may never be noticed.
fn refuse_unfinished(source: &Source) -> Result<(), ToolError> {
    match source {
        Source::Archive(ArchiveSource::File(path)) => unfinished::refuse(path, [unfinished::state_beside(path)]),
        Source::Directory { path, database: None } => unfinished::refuse(path, [unfinished::state_in(path)]),
        Source::Directory { path, database: Some(_) } => {
            unfinished::refuse(path, [unfinished::state_in(path), unfinished::state_in(&path.join(".."))])
        }
        Source::File { path, .. } if path != Path::new(STDIN) => refuse_unfinished_file(path),
        Source::Archive(ArchiveSource::Stdin | ArchiveSource::Pipe(_)) | Source::File { .. } | Source::Absent => Ok(()),
    }
}

/// Refuses a file of an unfinished dump: in a database's directory, or beside those.
/// # Errors
/// `Failed`.
pub(super) fn refuse_unfinished_file(path: &Path) -> Result<(), ToolError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    unfinished::refuse(path, [unfinished::state_in(directory), unfinished::state_in(&directory.join(".."))])
}

impl Input {
    /// Reads everything but the oplog. The targets are in the order of [`Opened::found`].
    /// # Errors
    /// `File`, `Damaged`, and errors of preparing collections.
    pub(super) fn read(&mut self, run: &Run<'_>) -> Result<(), ToolError> {
        match self {
            Self::Archive(archive) => archive.read(run),
            Self::Files(files) => {
                files.read(run);
                Ok(())
            }
        }
    }

    /// The oplog of the dump, to be read after everything else; `None` if the dump has none.
    /// # Errors
    /// `File`.
    pub(super) fn oplog(self, run: &Run<'_>) -> Result<Option<Stream>, ToolError> {
        match self {
            Self::Archive(archive) => Ok(archive.oplog()),
            Self::Files(files) => files.oplog(run),
        }
    }
}

/// Documents of one namespace, or entries of an oplog.
pub(super) enum Stream {
    /// Entries of an archive, after all collections.
    Archive(Box<archive::OplogPart>),
    /// Documents of a separate file.
    File(File),
}

impl Stream {
    /// The next documents, in `buffer`; `None` at the end.
    /// # Errors
    /// `Damaged`, `File`.
    pub(super) fn next(&mut self, buffer: Vec<u8>, progress: &Progress) -> Result<Option<Documents>, ToolError> {
        match self {
            Self::Archive(archive) => archive.next(buffer, progress),
            Self::File(file) => file.next(buffer, progress),
        }
    }
}

/// A file of documents, one after another.
pub(super) struct File {
    path: PathBuf,
    reader: bunko_archive::bson_file::Reader<compression::Reader>,
    /// Compressed bytes that are already counted in the progress.
    counted_bytes: u64,
}

impl File {
    /// Opens a file, or standard input.
    /// # Errors
    /// `File`.
    pub(super) fn open(path: &Path, options: &RestoreOptions, part_bytes: usize) -> Result<Self, ToolError> {
        let failed = |cause| ToolError::File { path: path.to_owned(), cause };
        let input: Box<dyn Read + Send> = if path == Path::new(STDIN) {
            Box::new(io::stdin())
        } else {
            Box::new(std::fs::File::open(path).map_err(failed)?)
        };
        let input = compression::open(input, options.threads).map_err(failed)?;
        let reader = bunko_archive::bson_file::Reader::new(input).with_part_bytes(part_bytes);
        Ok(Self { path: path.to_owned(), reader, counted_bytes: 0 })
    }

    fn next(&mut self, buffer: Vec<u8>, progress: &Progress) -> Result<Option<Documents>, ToolError> {
        let activity = activity(self.reader.get_ref());
        let documents = progress.time(activity, || self.reader.next(buffer));
        let read_bytes = self.reader.get_ref().compressed_bytes_read();
        progress.source_bytes.fetch_add(read_bytes - self.counted_bytes, Ordering::Relaxed);
        self.counted_bytes = read_bytes;
        documents.map_err(|error| damaged_file(&self.path, error))
    }

    fn is_compressed(&self) -> bool {
        self.reader.get_ref().compression() != Compression::None
    }

    fn offset_bytes(&self) -> u64 {
        self.reader.offset()
    }
}

fn activity(input: &compression::Reader) -> Activity {
    match input.compression() {
        Compression::None => Activity::ReadSource,
        _ => Activity::Decompress,
    }
}

fn damaged_file(path: &Path, error: BsonFileError) -> ToolError {
    let offset_bytes = error.offset;
    match error.reason {
        BsonFileReason::Io(cause) => broken_input(path, offset_bytes, cause),
        _ => ToolError::Damaged { path: path.to_owned(), offset_bytes, found: error.to_string() },
    }
}

/// Maps a read error: `Damaged` for invalid or truncated data, `File` for any other error.
fn broken_input(path: &Path, offset_bytes: u64, cause: io::Error) -> ToolError {
    let path = path.to_owned();
    match cause.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            ToolError::Damaged { path, offset_bytes, found: cause.to_string() }
        }
        _ => ToolError::File { path, cause },
    }
}

/// A target by its index in [`Opened::found`].
fn target<'r>(run: &'r Run<'_>, number: usize) -> &'r Arc<RestoredNamespace> {
    &run.targets[number]
}
