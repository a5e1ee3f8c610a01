//! Destination of all threads' units: an archive, a directory of files, or standard output.

use super::options::{ArchiveTarget, DumpOptions, Output};
use super::plan::{Kind, Plan, Planned, kind_name};
use super::state::{Account, Durability, StateFile, StreamState};
use super::stream::{Encoding, Stream};
use super::unit::{Form, SealedUnit, UNIT_BYTES};
use crate::ToolError;
use crate::progress::{Activity, Progress};
use bunko_archive::compression::{Compression, Writer};
use bunko_archive::index::NO_TAG;
use bunko_archive::{archive, crc64, directory};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Version of this tool in preludes.
const TOOL_VERSION: &str = concat!("bunko ", env!("CARGO_PKG_VERSION"));

/// Maximum number of bytes that wait to be compressed, of all files together.
const QUEUE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Longest buffer that is used again, in bytes. Longer buffers, which a few large documents caused, are freed.
const BUFFER_BYTES_KEPT: usize = 2 * UNIT_BYTES;

/// The output of one run.
pub(super) struct DumpOutput<'a> {
    options: &'a DumpOptions,
    plan: &'a Plan,
    progress: &'a Progress,
    /// `None` if the output cannot be resumed.
    state: Option<Mutex<StateFile>>,
    streams: Streams,
    buffers: Mutex<Vec<Vec<u8>>>,
}

enum Streams {
    One {
        stream: Box<Mutex<Option<Stream>>>,
        form: Form,
        tags: Vec<u32>,
    },
    /// A file for each collection, opened when it is first written to.
    Files {
        root: PathBuf,
        slots: Vec<Mutex<Slot>>,
    },
}

#[derive(Default)]
struct Slot {
    /// Written data, while the file is not open.
    earlier: StreamState,
    stream: Option<Stream>,
}

impl<'a> DumpOutput<'a> {
    /// Opens the output, and continues after the data that `earlier` says is written.
    /// # Errors
    /// `File`, `Failed`.
    pub fn open(
        options: &'a DumpOptions,
        plan: &'a Plan,
        progress: &'a Progress,
        state: Option<StateFile>,
        mut earlier: BTreeMap<usize, StreamState>,
    ) -> Result<Self, ToolError> {
        let (compression, threads) = (options.compression, options.threads);
        let encoding = Encoding { compression, threads, queue_bytes_max: QUEUE_BYTES_MAX, clock: progress.clock() };
        let state = state.map(Mutex::new);
        let streams = match &options.output {
            Output::Directory(root) => {
                write_small_files(root, options, plan)?;
                let slot =
                    |number| Mutex::new(Slot { earlier: earlier.remove(&number).unwrap_or_default(), stream: None });
                Streams::Files { root: root.clone(), slots: (0..plan.collections.len()).map(slot).collect() }
            }
            Output::StandardOutput => {
                let stream = Box::new(Mutex::new(Some(Stream::to_standard_output(encoding))));
                Streams::One { stream, form: Form::Plain, tags: vec![NO_TAG; plan.collections.len()] }
            }
            Output::Archive(target) => {
                let earlier = earlier.remove(&0).unwrap_or_default();
                let is_begun = !earlier.units.is_empty();
                let mut stream = match target {
                    ArchiveTarget::File(path) => Stream::open(0, path.clone(), encoding, earlier)?,
                    ArchiveTarget::Stdout => Stream::to_standard_output(encoding),
                    ArchiveTarget::Pipe(end) => Stream::to_pipe(end, encoding)?,
                };
                let tags = plan.collections.iter().map(|planned| stream.tag(&planned.database, &planned.collection));
                let tags = tags.collect();
                if !is_begun {
                    stream.write_prelude(prelude(options, plan).encode())?;
                    if let Some(state) = &state {
                        stream.checkpoint(plan, state)?;
                    }
                }
                Streams::One { stream: Box::new(Mutex::new(Some(stream))), form: Form::Archive, tags }
            }
        };
        Ok(Self { options, plan, progress, state, streams, buffers: Mutex::default() })
    }

    /// Form of the output's units.
    pub fn form(&self) -> Form {
        match &self.streams {
            Streams::One { form, .. } => *form,
            Streams::Files { .. } => Form::Plain,
        }
    }

    /// How much of a namespace is written, by this run and by earlier ones.
    pub fn account(&self, collection: usize) -> Account {
        let known = match &self.streams {
            Streams::One { stream, .. } => {
                stream.lock().as_ref().and_then(|stream| stream.account(collection).cloned())
            }
            Streams::Files { slots, .. } => {
                let slot = slots[collection].lock();
                match &slot.stream {
                    Some(stream) => stream.account(collection).cloned(),
                    None => slot.earlier.accounts.get(&collection).cloned(),
                }
            }
        };
        known.unwrap_or_else(|| Account::new(self.plan, collection))
    }

    /// A buffer for a unit, reused if possible.
    pub fn buffer(&self) -> Vec<u8> {
        self.buffers.lock().pop().unwrap_or_default()
    }

    /// Writes a unit, and the namespace's end after the last unit of its last range.
    /// # Errors
    /// `File`.
    pub fn write(&self, collection: usize, unit: SealedUnit) -> Result<(), ToolError> {
        let activity = match self.options.compression {
            Compression::None => Activity::WriteTarget,
            // The writer waits for the compressing threads if they are slower than the destination.
            _ => Activity::Compress,
        };
        self.progress
            .time(activity, || self.with_stream(collection, |stream, tag| self.put(stream, tag, collection, unit)))?;
        Ok(())
    }

    /// Writes the end of a namespace that has no documents to read.
    /// # Errors
    /// `File`.
    pub fn write_empty(&self, collection: usize) -> Result<(), ToolError> {
        if self.plan.collections[collection].kind == Kind::View && self.form() == Form::Plain {
            return Ok(());
        }
        self.with_stream(collection, |stream, tag| {
            let mut bytes = Vec::new();
            self.close(stream, collection, &mut bytes);
            stream.write(bytes, tag)?;
            Ok(())
        })
    }

    fn put(&self, stream: &mut Stream, tag: u32, collection: usize, mut unit: SealedUnit) -> Result<(), ToolError> {
        let account = stream.account_mut(self.plan, collection);
        account.crc = crc64::combine(account.crc, unit.crc, unit.document_bytes);
        account.documents += unit.documents;
        account.bytes += unit.document_bytes;
        account.ranges[unit.range] = unit.state;
        if account.ranges.iter().all(|range| range.is_finished) {
            self.close(stream, collection, &mut unit.bytes);
        }
        let buffer = stream.write(unit.bytes, tag)?;
        if (1..=BUFFER_BYTES_KEPT).contains(&buffer.capacity()) {
            self.buffers.lock().push(buffer);
        }
        match &self.state {
            Some(state) if stream.is_checkpoint_due() => stream.checkpoint(self.plan, state),
            _ => Ok(()),
        }
    }

    /// Marks a namespace as finished. In an archive, its end mark follows its last block.
    fn close(&self, stream: &mut Stream, collection: usize, bytes: &mut Vec<u8>) {
        let account = stream.account_mut(self.plan, collection);
        account.is_finished = true;
        let planned = &self.plan.collections[collection];
        if self.form() == Form::Archive {
            if planned.kind == Kind::View {
                archive::begin_block(bytes, &planned.database, &planned.collection);
                archive::end_block(bytes);
            }
            archive::end_of_namespace(bytes, &planned.database, &planned.collection, account.crc);
        }
    }

    fn with_stream(
        &self,
        collection: usize,
        work: impl FnOnce(&mut Stream, u32) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        match &self.streams {
            Streams::One { stream, tags, .. } => {
                let mut stream = stream.lock();
                work(stream.as_mut().expect("open until the dump is finished"), tags[collection])
            }
            Streams::Files { root, slots } => {
                let slot = &mut *slots[collection].lock();
                let stream = match &mut slot.stream {
                    Some(stream) => stream,
                    none => none.insert(self.open_file(root, collection, std::mem::take(&mut slot.earlier))?),
                };
                work(stream, NO_TAG)?;
                if stream.account(collection).is_some_and(|account| account.is_finished) {
                    self.finish_file(slot)?;
                }
                Ok(())
            }
        }
    }

    fn open_file(&self, root: &Path, collection: usize, earlier: StreamState) -> Result<Stream, ToolError> {
        let path = root.join(data_path(&self.plan.collections[collection], self.options.compression)?);
        let queue_bytes_max = QUEUE_BYTES_MAX / self.options.parallel_collections.get() as u64;
        let (compression, threads) = (self.options.compression, self.options.threads);
        let encoding = Encoding { compression, threads, queue_bytes_max, clock: self.progress.clock() };
        Stream::open(collection, path, encoding, earlier)
    }

    /// Closes a finished file at once, and records it as finished after its last bytes are safe. A crash that loses the
    /// record costs only the time to write the file again.
    fn finish_file(&self, slot: &mut Slot) -> Result<(), ToolError> {
        let Some(stream) = slot.stream.take() else { return Ok(()) };
        let line = stream.finished_line();
        slot.earlier.accounts = line.accounts.iter().map(|account| (account.collection, account.clone())).collect();
        stream.finish()?;
        self.state.as_ref().map_or(Ok(()), |state| state.lock().append(&line, Durability::Eventual))
    }

    /// Records the written data, so that the dump can be resumed from there. If that fails too, the dump is resumed
    /// from the last checkpoint.
    pub fn stop(&self) {
        let Some(state) = &self.state else { return };
        let save = |stream: &mut Option<Stream>| {
            if let Some(stream) = stream {
                // The first failure is the one to report.
                let _ = stream.checkpoint(self.plan, state);
            }
        };
        match &self.streams {
            Streams::One { stream, .. } => save(&mut stream.lock()),
            Streams::Files { slots, .. } => slots.iter().for_each(|slot| save(&mut slot.lock().stream)),
        }
    }

    /// Ends the output and removes the state file.
    /// # Errors
    /// `File`.
    pub fn finish(self) -> Result<(), ToolError> {
        if let Streams::One { stream, .. } = self.streams
            && let Some(stream) = stream.into_inner()
        {
            stream.finish()?;
        }
        self.state.map_or(Ok(()), |state| state.into_inner().remove())
    }
}

fn prelude(options: &DumpOptions, plan: &Plan) -> archive::Prelude {
    archive::Prelude {
        header: archive::Header {
            concurrent_collections: i32::try_from(options.parallel_collections.get()).unwrap_or(i32::MAX),
            server_version: plan.server_version.clone(),
            tool_version: TOOL_VERSION.to_owned(),
            ..archive::Header::default()
        },
        namespaces: plan
            .collections
            .iter()
            .map(|planned| archive::NamespaceEntry {
                database: planned.database.clone(),
                // The series' own name, though a time series' blocks carry the name of the collection behind it.
                collection: planned.metadata_name.clone(),
                metadata: planned.metadata.clone(),
                size_bytes: i64::try_from(planned.size_bytes).unwrap_or(i64::MAX),
                kind: kind_name(planned.kind).to_owned(),
            })
            .collect(),
    }
}

/// Writes the prelude and all metadata, and makes their directories.
fn write_small_files(root: &Path, options: &DumpOptions, plan: &Plan) -> Result<(), ToolError> {
    for planned in &plan.collections {
        if planned.kind == Kind::Oplog {
            continue;
        }
        let directory = root.join(database_directory(planned)?);
        std::fs::create_dir_all(&directory).map_err(|cause| ToolError::File { path: directory.clone(), cause })?;
        if planned.kind != Kind::Authorisation {
            let name = directory::metadata_file_name(&planned.metadata_name, options.compression);
            write_small_file(directory.join(name), &planned.metadata, options.compression)?;
        }
    }
    let prelude =
        directory::Prelude { server_version: plan.server_version.clone(), tool_version: TOOL_VERSION.to_owned() };
    // If one database is dumped, the classic tool puts the prelude into that database's directory.
    let beside = plan.collections.first().filter(|_| options.database.is_some());
    let directory = match beside {
        Some(planned) => root.join(database_directory(planned)?),
        None => root.to_owned(),
    };
    let suffix = if options.compression == Compression::Gzip { ".gz" } else { "" };
    write_small_file(directory.join(format!("prelude.json{suffix}")), &prelude.to_json(), options.compression)
}

/// Writes a file that is compressed by gzip or not at all, see [`directory::metadata_file_name`].
fn write_small_file(path: PathBuf, text: &str, compression: Compression) -> Result<(), ToolError> {
    let compression = if compression == Compression::Gzip { compression } else { Compression::None };
    let written = File::create(&path).and_then(|file| {
        let mut writer = Writer::new(file, compression, NonZeroUsize::MIN);
        writer.write_unit(text.as_bytes().to_vec(), NO_TAG)?;
        writer.finish().map(|_| ())
    });
    written.map_err(|cause| ToolError::File { path, cause })
}

fn database_directory(planned: &Planned) -> Result<&str, ToolError> {
    directory::database_directory(&planned.database).ok_or_else(|| {
        ToolError::Failed(format!("the database '{}' has a name that no directory can have", planned.database))
    })
}

fn data_path(planned: &Planned, compression: Compression) -> Result<PathBuf, ToolError> {
    Ok(match planned.kind {
        Kind::Oplog => PathBuf::from(format!("oplog.bson{}", compression.suffix())),
        // The classic tool writes these names unescaped.
        Kind::Authorisation => {
            let name = format!("{}.bson{}", planned.collection, compression.suffix());
            Path::new(database_directory(planned)?).join(name)
        }
        _ => {
            let name = directory::data_file_name(&planned.collection, compression);
            Path::new(database_directory(planned)?).join(name)
        }
    })
}
