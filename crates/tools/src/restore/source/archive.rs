//! An archive: one stream, its namespaces interleaved.

use super::super::feed::{Feed, PartEnd};
use super::super::options::{Oplog, RestoreOptions};
use super::super::plan::{self, Entry, OPLOG};
use super::super::run::Run;
use super::super::target::BUCKETS_PREFIX;
use super::{Input as AnyInput, Opened, OplogOfDump, STDIN, Stream, activity, broken_input, target};
use crate::ToolError;
use crate::progress::Progress;
use bunko_archive::archive::{ArchiveError, ArchivePiece, NamespaceEntry, Prelude, Reader, Reason};
use bunko_archive::compression;
use bunko_archive::metadata::Metadata;
use bunko_archive::{Documents, index};
use foldhash::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;
use xxhash_rust::xxh3::xxh3_128;

/// The documents of an archive.
pub(in super::super) struct Input {
    path: PathBuf,
    reader: Reader<compression::Reader>,
    /// Index of a namespace's target, by its name in blocks.
    numbers: HashMap<String, usize>,
    /// Whether the target's collection was prepared.
    begun: Vec<bool>,
    /// The first entries of the oplog, once they have been read.
    oplog: Option<Documents>,
    wants_oplog: bool,
}

/// How much of an archive is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// The units of the namespaces that are needed.
    Selection,
}

pub(super) fn open_file(
    path: &Path,
    options: &RestoreOptions,
    part_bytes: usize,
    progress: &Progress,
) -> Result<Opened, ToolError> {
    let failed = |cause| ToolError::File { path: path.to_owned(), cause };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    // A named pipe cannot be searched for an index at its end.
    let index = if options.filter.takes_everything() || !metadata.is_file() {
        None
    } else {
        // Without a valid index everything is read, and checked by its own checksums.
        index::read(&file).unwrap_or(None)
    };
    let (input, extent, length): (Box<dyn io::Read + Send>, _, _) = match index {
        None => (Box::new(file), Extent::Whole, metadata.len()),
        Some(index) => {
            let selection = index.select(file, |database, collection| plan::is_needed(options, database, collection));
            let length = selection.remaining_bytes();
            (Box::new(selection), Extent::Selection, length)
        }
    };
    progress.source_bytes_expected.store(length, Ordering::Relaxed);
    let input = compression::open(input, options.threads).map_err(failed)?;
    let mut opened = open(path, input, extent, options, part_bytes)?;
    opened.identity = format!("{} bytes, modified {}, {}", metadata.len(), modified.as_nanos(), opened.identity);
    Ok(opened)
}

/// Opens standard input or a pipe, which can be read only once.
pub(super) fn open_once(
    input: Box<dyn io::Read + Send>,
    options: &RestoreOptions,
    part_bytes: usize,
    progress: &Progress,
) -> Result<Opened, ToolError> {
    let path = Path::new(STDIN);
    if options.resume.is_some() {
        let message = "a restore from standard input cannot be resumed: it cannot be read again";
        return Err(ToolError::Usage(message.to_owned()));
    }
    progress.source_bytes_expected.store(0, Ordering::Relaxed);
    let input =
        compression::open(input, options.threads).map_err(|cause| ToolError::File { path: path.to_owned(), cause })?;
    open(path, input, Extent::Whole, options, part_bytes)
}

fn open(
    path: &Path,
    input: compression::Reader,
    extent: Extent,
    options: &RestoreOptions,
    part_bytes: usize,
) -> Result<Opened, ToolError> {
    let opened = match extent {
        Extent::Whole => Reader::open(input),
        Extent::Selection => Reader::open_selection(input),
    };
    let (prelude, reader) = opened.map_err(|error| damaged(path, error))?;
    let identity = format!("prelude {:032x}", xxh3_128(&prelude.encode()));
    let is_oplog = |entry: &NamespaceEntry| (&*entry.database, &*entry.collection) == OPLOG;
    let has_oplog = prelude.namespaces.iter().any(is_oplog);
    let oplog = if has_oplog { OplogOfDump::Included } else { OplogOfDump::Missing };
    let (found, numbers) = plan_prelude(path, prelude, options)?;
    let begun = vec![false; found.len()];
    let wants_oplog = matches!(options.oplog, Oplog::Replay { file: None, .. });
    let reader = reader.with_part_bytes(part_bytes);
    let input = Input { path: path.to_owned(), reader, numbers, begun, oplog: None, wants_oplog };
    Ok(Opened { found, identity, warnings: Vec::new(), oplog, input: AnyInput::Archive(Box::new(input)) })
}

/// The targets of the prelude's namespaces, and the index of each name in blocks.
fn plan_prelude(
    path: &Path,
    prelude: Prelude,
    options: &RestoreOptions,
) -> Result<(Vec<super::TargetDescription>, HashMap<String, usize>), ToolError> {
    let (mut found, mut numbers) = (Vec::new(), HashMap::default());
    for namespace in prelude.namespaces {
        let name = format!("{}.{}", namespace.database, namespace.collection);
        let metadata = Metadata::parse(&namespace.metadata).map_err(|error| ToolError::Damaged {
            path: path.to_owned(),
            offset_bytes: 0,
            found: format!("{name}: {error}"),
        })?;
        // A time series' documents are those of the collection behind it, and some tools use that name in blocks.
        let buckets = format!("{}.{BUCKETS_PREFIX}{}", namespace.database, namespace.collection);
        let entry = Entry {
            database: namespace.database,
            collection: namespace.collection,
            metadata,
            size_bytes: namespace.size_bytes.max(0) as u64,
        };
        if let Some(target) = plan::found(options, entry)? {
            numbers.entry(buckets).or_insert(found.len());
            numbers.insert(name, found.len());
            found.push(target);
        }
    }
    Ok((found, numbers))
}

impl Input {
    pub(super) fn read(&mut self, run: &Run<'_>) -> Result<(), ToolError> {
        let mut feed = Feed::new(run);
        while let Some(mut loan) = feed.lend() {
            match self.part(loan.take_buffer(), run.progress)? {
                None => return self.end(&mut feed),
                Some(ArchivePiece::Documents { database, collection, documents }) => {
                    if (&*database, &*collection) == OPLOG {
                        if self.wants_oplog {
                            self.oplog = Some(documents);
                            return self.end(&mut feed);
                        }
                        continue;
                    }
                    loan.fill(documents);
                    if let Some(number) = self.number(&database, &collection) {
                        self.begin(&mut feed, number)?;
                        let place = PartEnd { path: &self.path, end_bytes: self.reader.offset() };
                        feed.documents(target(run, number), loan, place)?;
                    }
                }
                Some(ArchivePiece::End { database, collection, .. }) => {
                    if let Some(number) = self.number(&database, &collection) {
                        self.begin(&mut feed, number)?;
                        feed.end(target(run, number));
                    }
                }
            }
        }
        Ok(())
    }

    fn number(&self, database: &str, collection: &str) -> Option<usize> {
        self.numbers.get(&format!("{database}.{collection}")).copied()
    }

    fn begin(&mut self, feed: &mut Feed<'_>, number: usize) -> Result<(), ToolError> {
        if !std::mem::replace(&mut self.begun[number], true) {
            feed.begin(target(feed.run, number))?;
        }
        Ok(())
    }

    /// Ends the namespaces. The reader has checked that every namespace that began has ended. In a selection,
    /// namespaces without a block are empty.
    fn end(&mut self, feed: &mut Feed<'_>) -> Result<(), ToolError> {
        for number in 0..self.begun.len() {
            if !self.begun[number] {
                self.begin(feed, number)?;
                feed.end(target(feed.run, number));
            }
        }
        Ok(())
    }

    fn part(&mut self, buffer: Vec<u8>, progress: &Progress) -> Result<Option<ArchivePiece>, ToolError> {
        let activity = activity(self.reader.get_ref());
        let part = progress.time(activity, || self.reader.next(buffer));
        progress.source_bytes.store(self.reader.get_ref().compressed_bytes_read(), Ordering::Relaxed);
        part.map_err(|error| damaged(&self.path, error))
    }

    pub(super) fn oplog(mut self) -> Option<Stream> {
        let first = self.oplog.take()?;
        Some(Stream::Archive(Box::new(OplogPart { input: self, first: Some(first) })))
    }
}

/// The oplog of an archive, which follows all collections.
pub(in super::super) struct OplogPart {
    input: Input,
    first: Option<Documents>,
}

impl OplogPart {
    pub(super) fn next(&mut self, buffer: Vec<u8>, progress: &Progress) -> Result<Option<Documents>, ToolError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let mut buffer = buffer;
        loop {
            match self.input.part(std::mem::take(&mut buffer), progress)? {
                None => return Ok(None),
                Some(ArchivePiece::Documents { database, collection, documents }) => {
                    if (&*database, &*collection) == OPLOG {
                        return Ok(Some(documents));
                    }
                    if self.input.number(&database, &collection).is_some() {
                        return Err(ToolError::Damaged {
                            path: self.input.path.clone(),
                            offset_bytes: self.input.reader.offset(),
                            found: format!("documents of {database}.{collection} after entries of the oplog"),
                        });
                    }
                    buffer = documents.bytes;
                }
                Some(ArchivePiece::End { .. }) => {}
            }
        }
    }
}

fn damaged(path: &Path, error: ArchiveError) -> ToolError {
    match error.reason {
        Reason::Io(cause) => broken_input(path, error.offset, cause),
        _ => ToolError::Damaged {
            path: path.to_owned(),
            offset_bytes: error.offset,
            found: format!("the block at offset {}: {}", error.block_offset, described(&error)),
        },
    }
}

fn described(error: &ArchiveError) -> String {
    match &error.namespace {
        Some(namespace) => format!("{namespace}: {}", error.reason),
        None => error.reason.to_string(),
    }
}
