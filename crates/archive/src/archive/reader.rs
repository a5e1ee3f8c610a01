//! A strict reader of archives.

use super::MAGIC;
use super::block::{BlockHeader, End};
use super::prelude::{Header, NamespaceEntry, Prelude};
use super::{ArchiveError, Reason};
use crate::crc64::Crc64;
use crate::documents::{CutError, CutReason, Cutter, One, Stop, TERMINATOR};
use crate::{Documents, MAX_DOCUMENT_BYTES, PART_BYTES};
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

/// Longest header of a block, in bytes: each of its two names has at most 255 bytes, and some tools allow longer ones.
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// Longest prelude, in bytes; it is kept in memory.
const PRELUDE_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Prefix of the collection behind a time series, which holds the series' documents.
const BUCKETS_PREFIX: &str = "system.buckets.";

/// A piece of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivePiece {
    /// Some documents of one namespace.
    Documents {
        /// Empty for the oplog.
        database: Arc<str>,
        /// The name in the block; for a time series, it begins with `system.buckets.`.
        collection: Arc<str>,
        /// The documents; their checksum is checked only at the namespace's end.
        documents: Documents,
    },
    /// A namespace is complete, and its documents match their checksum.
    End {
        /// Empty for the oplog.
        database: Arc<str>,
        /// The name in the block.
        collection: Arc<str>,
        /// The checksum of all documents of the namespace.
        crc: u64,
    },
}

/// Reads an archive from beginning to end, with memory that does not depend on its size.
///
/// A plain file should be read through a `BufReader` of some hundred KiB; [`crate::compression::Reader`] has its own
/// buffer.
pub struct Reader<R: BufRead> {
    cutter: Cutter<R>,
    part_bytes: usize,
    namespaces: Namespaces,
    /// The namespace of the current block: a position in `namespaces`.
    current: Option<usize>,
    /// Offset of the current block.
    block_offset: u64,
    completeness: Completeness,
    /// Buffer for headers.
    scratch: Vec<u8>,
}

/// The namespaces that must end before the input does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Completeness {
    /// All namespaces of the prelude.
    Whole,
    /// Only namespaces that have a block.
    Selection,
}

impl<R: BufRead> Reader<R> {
    /// Reads the prelude.
    /// # Errors
    /// [`ArchiveError`] if it is damaged, or not the prelude of an archive of version 0.1.
    pub fn open(input: R) -> Result<(Prelude, Self), ArchiveError> {
        Self::begin(input, Completeness::Whole)
    }

    /// As [`Self::open`], for a selection of an archive's units ([`crate::index::Index::select`]): namespaces of the
    /// prelude may have no blocks.
    /// # Errors
    /// As [`Self::open`].
    pub fn open_selection(input: R) -> Result<(Prelude, Self), ArchiveError> {
        Self::begin(input, Completeness::Selection)
    }

    fn begin(input: R, completeness: Completeness) -> Result<(Prelude, Self), ArchiveError> {
        let mut reader = Self {
            cutter: Cutter::new(input),
            part_bytes: PART_BYTES,
            namespaces: Namespaces::default(),
            current: None,
            block_offset: 0,
            completeness,
            scratch: Vec::new(),
        };
        let prelude = reader.prelude()?;
        Ok((prelude, reader))
    }

    /// Sets the most bytes in one part, unless a single document is longer. The default is [`PART_BYTES`].
    #[must_use]
    pub fn with_part_bytes(mut self, bytes: usize) -> Self {
        self.part_bytes = bytes;
        self
    }

    /// Number of bytes read so far, before compression.
    pub fn offset(&self) -> u64 {
        self.cutter.offset()
    }

    /// The input, for its progress.
    pub fn get_ref(&self) -> &R {
        self.cutter.get_ref()
    }

    /// The next part, its documents in `buffer`; `None` at the archive's end, when all namespaces have ended.
    /// # Errors
    /// [`ArchiveError`] if the archive is damaged or reading fails; the reader must not be used any more then.
    pub fn next(&mut self, buffer: Vec<u8>) -> Result<Option<ArchivePiece>, ArchiveError> {
        let mut documents = Documents::reusing(buffer);
        loop {
            let Some(current) = self.current else {
                match self.block()? {
                    Begun::Block => {}
                    Begun::End(part) => return Ok(Some(part)),
                    Begun::EndOfInput => return Ok(None),
                }
                continue;
            };
            match self.cutter.documents(&mut documents, self.part_bytes).map_err(|error| self.cut(error))? {
                Stop::Limit => {}
                Stop::Terminator => self.current = None,
                Stop::EndOfInput => return Err(self.error(self.offset(), Reason::Truncated)),
            }
            if documents.count > 0 {
                let namespace = &mut self.namespaces.states[current];
                namespace.crc.update(&documents.bytes);
                let (database, collection) = (namespace.database.clone(), namespace.collection.clone());
                return Ok(Some(ArchivePiece::Documents { database, collection, documents }));
            }
        }
    }

    fn prelude(&mut self) -> Result<Prelude, ArchiveError> {
        let magic = self.cutter.prefix().map_err(|error| self.cut(error))?;
        let found = magic.map(u32::from_le_bytes).ok_or_else(|| self.error(0, Reason::Truncated))?;
        if found != MAGIC {
            return Err(self.error(0, Reason::Magic { found }));
        }
        let header = match self.prelude_document()? {
            Some(offset) => Header::parse(&self.scratch).map_err(|reason| self.error(offset, reason))?,
            None => return Err(self.error(self.offset() - 4, Reason::MissingHeader)),
        };
        let mut namespaces = Vec::new();
        while let Some(offset) = self.prelude_document()? {
            let entry = NamespaceEntry::parse(&self.scratch).map_err(|reason| self.error(offset, reason))?;
            self.namespaces.add(&entry).map_err(|reason| self.error(offset, reason))?;
            namespaces.push(entry);
        }
        Ok(Prelude { header, namespaces })
    }

    /// Reads the prelude's next document into `scratch` and returns its offset; `None` at the terminator.
    fn prelude_document(&mut self) -> Result<Option<u64>, ArchiveError> {
        let offset = self.offset();
        self.scratch.clear();
        match self.cutter.one(&mut self.scratch, MAX_DOCUMENT_BYTES).map_err(|error| self.cut(error))? {
            One::Terminator => Ok(None),
            One::EndOfInput => Err(self.error(offset, Reason::Truncated)),
            One::Document if self.offset() <= PRELUDE_BYTES_MAX => Ok(Some(offset)),
            One::Document | One::TooLong { .. } => Err(self.error(offset, Reason::PreludeTooLong)),
        }
    }

    /// Reads the next header, and at a namespace's end also the terminator.
    fn block(&mut self) -> Result<Begun, ArchiveError> {
        let offset = self.offset();
        self.block_offset = offset;
        self.scratch.clear();
        match self.cutter.one(&mut self.scratch, HEADER_BYTES_MAX).map_err(|error| self.cut(error))? {
            One::Document => {}
            One::Terminator => return Err(self.error(offset, Reason::MissingHeader)),
            One::TooLong { length } => return Err(self.error(offset, Reason::HeaderTooLong { length })),
            One::EndOfInput => return self.end_of_input(),
        }
        let scratch = std::mem::take(&mut self.scratch);
        let header = BlockHeader::parse(&scratch).map_err(|reason| self.error(offset, reason))?;
        let namespace = self.namespaces.find(header.database, header.collection).map_err(|reason| ArchiveError {
            namespace: Some(format!("{}.{}", header.database, header.collection)),
            ..self.error(offset, reason)
        })?;
        self.current = Some(namespace);
        let begun = match header.end {
            End::More => Begun::Block,
            End::Last { crc } => Begun::End(self.end_of_namespace(namespace, crc)?),
        };
        self.scratch = scratch;
        Ok(begun)
    }

    fn end_of_namespace(&mut self, namespace: usize, crc: u64) -> Result<ArchivePiece, ArchiveError> {
        let offset = self.offset();
        match self.cutter.prefix().map_err(|error| self.cut(error))? {
            Some(TERMINATOR) => {}
            Some(other) => {
                return Err(self.error(offset, Reason::MissingTerminator { found: u32::from_le_bytes(other) }));
            }
            None => return Err(self.error(offset, Reason::Truncated)),
        }
        let found = self.namespaces.states[namespace].crc.value();
        if found != crc {
            return Err(self.error(self.block_offset, Reason::Crc { expected: crc, found }));
        }
        self.current = None;
        let state = &mut self.namespaces.states[namespace];
        state.progress = Progress::Ended;
        Ok(ArchivePiece::End { database: state.database.clone(), collection: state.collection.clone(), crc })
    }

    fn end_of_input(&self) -> Result<Begun, ArchiveError> {
        let mut unended = self.namespaces.states.iter().filter(|state| match self.completeness {
            Completeness::Whole => state.progress != Progress::Ended,
            Completeness::Selection => state.progress == Progress::Begun,
        });
        let Some(first) = unended.next() else { return Ok(Begun::EndOfInput) };
        let reason = Reason::Unended { first: first.name(), count: 1 + unended.count() };
        Err(self.error(self.offset(), reason))
    }

    fn cut(&self, error: CutError) -> ArchiveError {
        let reason = match error.reason {
            CutReason::Io(error) => Reason::Io(error),
            CutReason::Length(error) => Reason::Length(error),
            CutReason::Unclosed(found) => Reason::Unclosed { found },
            CutReason::Truncated => Reason::Truncated,
        };
        self.error(error.offset, reason)
    }

    fn error(&self, offset: u64, reason: Reason) -> ArchiveError {
        let namespace = self.current.map(|current| self.namespaces.states[current].name());
        ArchiveError { offset, block_offset: self.block_offset, namespace, reason }
    }
}

/// The content that follows a header.
enum Begun {
    /// Documents of `current` follow.
    Block,
    End(ArchivePiece),
    EndOfInput,
}

/// The namespaces of the prelude, and how far each was read.
#[derive(Default)]
struct Namespaces {
    states: Vec<OpenNamespace>,
    /// Positions in `states` by database and collection.
    by_name: HashMap<Arc<str>, HashMap<Arc<str>, usize>>,
}

struct OpenNamespace {
    database: Arc<str>,
    collection: Arc<str>,
    /// Whether blocks may name the collection `system.buckets.NAME`, as those of time series do.
    series: bool,
    crc: Crc64,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Awaited,
    Begun,
    Ended,
}

impl Namespaces {
    fn add(&mut self, entry: &NamespaceEntry) -> Result<(), Reason> {
        let (database, collection) = (Arc::<str>::from(&*entry.database), Arc::<str>::from(&*entry.collection));
        let collections = self.by_name.entry(database.clone()).or_default();
        if collections.insert(collection.clone(), self.states.len()).is_some() {
            return Err(Reason::RepeatedNamespace);
        }
        let series = entry.kind == "timeseries";
        self.states.push(OpenNamespace {
            database,
            collection,
            series,
            crc: Crc64::new(),
            progress: Progress::Awaited,
        });
        Ok(())
    }

    /// Finds the namespace of a block that begins.
    fn find(&mut self, database: &str, collection: &str) -> Result<usize, Reason> {
        let collections = self.by_name.get(database).ok_or(Reason::UnknownNamespace)?;
        let series = || {
            let name = collection.strip_prefix(BUCKETS_PREFIX)?;
            collections.get(name).filter(|&&position| self.states[position].series)
        };
        let position = *collections.get(collection).or_else(series).ok_or(Reason::UnknownNamespace)?;
        let state = &mut self.states[position];
        match state.progress {
            Progress::Awaited => {
                state.progress = Progress::Begun;
                if &*state.collection != collection {
                    state.collection = collection.into();
                }
            }
            // The blocks of a time series all have the same name.
            Progress::Begun if &*state.collection != collection => return Err(Reason::UnknownNamespace),
            Progress::Begun => {}
            Progress::Ended => return Err(Reason::AfterEnd),
        }
        Ok(position)
    }
}

impl OpenNamespace {
    fn name(&self) -> String {
        format!("{}.{}", self.database, self.collection)
    }
}
