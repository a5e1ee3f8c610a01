//! One file (or pipe) of a dump, and the accounts of its namespaces.

use super::plan::{Order, Plan};
use super::state::{Account, Checkpoint, Durability, StateFile, StreamState};
use crate::{PipeEnd, ToolError};
use bunko_archive::compression::{Compression, Writer};
use bunko_archive::index::{NO_TAG, Unit};
use bunko_host::Clock;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, PipeWriter, Seek, SeekFrom, Stdout, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A checkpoint is due after this many bytes of documents.
const CHECKPOINT_BYTES: u64 = 64 * 1024 * 1024;
/// A checkpoint is also due after this time.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(2);

/// Destination of a stream's bytes.
pub(super) enum Out {
    File(File),
    Stdout(Stdout),
    Pipe(PipeWriter),
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Pipe(pipe) => pipe.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Stdout(stdout) => stdout.flush(),
            Self::Pipe(pipe) => pipe.flush(),
        }
    }
}

impl Out {
    fn sync(&self) -> io::Result<()> {
        match self {
            // Pipes and devices cannot be synced, and return an error.
            Self::File(file) if file.metadata()?.is_file() => file.sync_data(),
            Self::File(_) | Self::Stdout(_) | Self::Pipe(_) => Ok(()),
        }
    }
}

/// Compression of streams, and its resources.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding<'c> {
    pub compression: Compression,
    pub threads: NonZeroUsize,
    /// Maximum number of bytes that wait to be compressed.
    pub queue_bytes_max: u64,
    /// Tells when the next checkpoint is due.
    pub clock: &'c Clock,
}

/// A stream that is being written.
pub(super) struct Stream {
    /// Number of the file: 0 for an archive; in a directory, the collection's position in the plan.
    number: usize,
    path: PathBuf,
    writer: Writer<Out>,
    accounts: BTreeMap<usize, Account>,
    /// Accounts that differ from the recorded ones.
    changed: BTreeSet<usize>,
    recorded_units: usize,
    queue_bytes_max: u64,
    /// Bytes handed to the writer, including earlier runs.
    submitted_bytes: u64,
    bytes_since_checkpoint: u64,
    clock: Clock,
    last_checkpoint: Instant,
    /// Set after a failed write: the accounts are ahead of the file, so nothing more may be recorded.
    is_broken: bool,
}

impl Stream {
    /// A stream to standard output.
    pub fn to_standard_output(encoding: Encoding<'_>) -> Self {
        let writer = Writer::new(Out::Stdout(io::stdout()), encoding.compression, encoding.threads);
        Self::new(0, PathBuf::from("-"), writer, encoding, StreamState::default())
    }

    /// A stream to a restore in this process.
    /// # Errors
    /// `File` if the pipe is already in use.
    pub fn to_pipe(end: &PipeEnd<PipeWriter>, encoding: Encoding<'_>) -> Result<Self, ToolError> {
        let path = PathBuf::from("-");
        let pipe = end.take().map_err(|cause| ToolError::File { path: path.clone(), cause })?;
        let writer = Writer::new(Out::Pipe(pipe), encoding.compression, encoding.threads);
        Ok(Self::new(0, path, writer, encoding, StreamState::default()))
    }

    /// Opens a file at its beginning, or at the position up to which `earlier` says that it is safely written.
    /// # Errors
    /// `File`; `Failed` if the file is shorter than was recorded.
    pub fn open(number: usize, path: PathBuf, encoding: Encoding<'_>, earlier: StreamState) -> Result<Self, ToolError> {
        let failed = |cause| ToolError::File { path: path.clone(), cause };
        let Encoding { compression, threads, .. } = encoding;
        let writer = if earlier.units.is_empty() {
            Writer::new(Out::File(File::create(&path).map_err(failed)?), compression, threads)
        } else {
            let mut file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed)?;
            let out_bytes = earlier.out_bytes();
            let found_bytes = file.metadata().map_err(failed)?.len();
            if found_bytes < out_bytes {
                let path = path.display();
                let message =
                    format!("--resume: {path} has {found_bytes} bytes, but {out_bytes} were recorded as written");
                return Err(ToolError::Failed(message));
            }
            file.set_len(out_bytes).map_err(failed)?;
            file.seek(SeekFrom::End(0)).map_err(failed)?;
            Writer::resume(Out::File(file), compression, threads, earlier.units.clone())
        };
        Ok(Self::new(number, path, writer, encoding, earlier))
    }

    fn new(number: usize, path: PathBuf, writer: Writer<Out>, encoding: Encoding<'_>, earlier: StreamState) -> Self {
        Self {
            number,
            path,
            queue_bytes_max: encoding.queue_bytes_max,
            submitted_bytes: writer.written().raw_bytes,
            is_broken: false,
            writer,
            recorded_units: earlier.units.len(),
            accounts: earlier.accounts,
            changed: BTreeSet::new(),
            bytes_since_checkpoint: 0,
            clock: encoding.clock.clone(),
            last_checkpoint: encoding.clock.now(),
        }
    }

    /// Names a namespace for the index.
    pub fn tag(&mut self, database: &str, collection: &str) -> u32 {
        self.writer.tag(database, collection)
    }

    /// Writes bytes that belong to no namespace.
    /// # Errors
    /// `File`.
    pub fn write_prelude(&mut self, bytes: Vec<u8>) -> Result<(), ToolError> {
        self.write(bytes, NO_TAG).map(|_| ())
    }

    /// The account of a namespace, if it exists.
    pub fn account(&self, collection: usize) -> Option<&Account> {
        self.accounts.get(&collection)
    }

    /// The account of a namespace, made if it does not exist, to be changed.
    pub fn account_mut(&mut self, plan: &Plan, collection: usize) -> &mut Account {
        self.changed.insert(collection);
        self.accounts.entry(collection).or_insert_with(|| Account::new(plan, collection))
    }

    /// Writes a unit of a namespace and returns an empty buffer for the next one.
    /// # Errors
    /// `File`.
    pub fn write(&mut self, bytes: Vec<u8>, tag: u32) -> Result<Vec<u8>, ToolError> {
        if bytes.is_empty() {
            return Ok(bytes);
        }
        let length = bytes.len() as u64;
        let written = self.make_room(length).and_then(|()| self.writer.write_unit(bytes, tag));
        self.is_broken |= written.is_err();
        written.map_err(|cause| self.failed(cause))?;
        self.submitted_bytes += length;
        self.bytes_since_checkpoint += length;
        Ok(self.writer.buffer())
    }

    /// Waits for the compressing threads if the queue would exceed its limit.
    fn make_room(&mut self, length: u64) -> io::Result<()> {
        let queued_bytes = self.submitted_bytes - self.writer.written().raw_bytes;
        if queued_bytes > 0 && queued_bytes + length > self.queue_bytes_max { self.writer.flush() } else { Ok(()) }
    }

    /// Whether a checkpoint is due, by bytes or by time.
    pub fn is_checkpoint_due(&self) -> bool {
        self.bytes_since_checkpoint >= CHECKPOINT_BYTES || self.clock.since(self.last_checkpoint) >= CHECKPOINT_INTERVAL
    }

    /// Syncs the written data, then records it. Nothing is recorded between the beginning and the end of a namespace
    /// that is not read by `_id`: such a namespace cannot be resumed in its middle, so a resumed dump reads it from its
    /// beginning.
    /// # Errors
    /// `File`.
    pub fn checkpoint(&mut self, plan: &Plan, state: &Mutex<StateFile>) -> Result<(), ToolError> {
        self.last_checkpoint = self.clock.now();
        let is_open = |account: &Account| {
            let planned = &plan.collections[account.collection];
            planned.order != Order::ById && account.documents > 0 && !account.is_finished
        };
        if self.is_broken || self.accounts.values().any(is_open) {
            return Ok(());
        }
        let synced = self.writer.flush().and_then(|()| self.writer.output().sync());
        self.is_broken |= synced.is_err();
        synced.map_err(|cause| self.failed(cause))?;
        let units = &self.writer.units()[self.recorded_units..];
        let accounts = self.changed.iter().filter_map(|collection| self.accounts.get(collection).cloned());
        let line = Checkpoint {
            stream: self.number,
            accounts: accounts.collect(),
            units: units.iter().map(|unit: &Unit| (unit.out_bytes, unit.raw_bytes, unit.tag)).collect(),
        };
        state.lock().append(&line, Durability::Immediate)?;
        self.recorded_units += line.units.len();
        self.changed.clear();
        self.bytes_since_checkpoint = 0;
        Ok(())
    }

    /// The line to record once the file is whole. It lists no units, because the file's length does not matter any
    /// more.
    pub fn finished_line(&self) -> Checkpoint {
        Checkpoint { stream: self.number, accounts: self.accounts.values().cloned().collect(), units: Vec::new() }
    }

    /// Writes the end and closes the file.
    /// # Errors
    /// `File`.
    pub fn finish(self) -> Result<(), ToolError> {
        let failed = |cause| ToolError::File { path: self.path.clone(), cause };
        self.writer.finish().and_then(|out| out.sync()).map_err(failed)
    }

    fn failed(&self, cause: io::Error) -> ToolError {
        ToolError::File { path: self.path.clone(), cause }
    }
}
