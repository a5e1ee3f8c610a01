//! Writes a stream of independently compressed units.

use super::pool::Pool;
use super::spare::Spare;
use super::{Compression, MAX_UNIT_BYTES, gzip, lz4, zstandard};
use crate::index::{self, Index, Unit};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, TryRecvError};

/// Maximum number of bytes before compression in flight, unless a single unit is longer.
const PENDING_BYTES_MAX: usize = MAX_UNIT_BYTES;
/// Limits for the growth of an incompressible unit: a part (1/n) of the unit, and a number of bytes.
const INCOMPRESSIBLE_PART: usize = 128;
const INCOMPRESSIBLE_BYTES: usize = 1024;
/// Number of units in flight beyond those that threads work on.
const PENDING_UNITS_AHEAD: usize = 2;

/// Extent of a [`Writer`]'s output, in whole units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenUpTo {
    /// Bytes in the output.
    pub out_bytes: u64,
    /// Bytes before compression.
    pub raw_bytes: u64,
    /// Number of units.
    pub units: u64,
}

/// Compresses units on several threads, each as a frame (or gzip member) of its own, and writes them in order.
///
/// At most `threads + 2` units and 32 MiB before compression are in flight. The calling thread writes the output.
pub struct Writer<W: Write + Send> {
    out: W,
    compression: Compression,
    threads: NonZeroUsize,
    /// Started with the first unit; never started without compression.
    pool: Option<Pool<Job, io::Result<Job>>>,
    pending: VecDeque<Pending>,
    pending_bytes: usize,
    written: WrittenUpTo,
    units: Vec<Unit>,
    tags: Vec<(String, String)>,
    spare: Spare,
}

/// A unit for a thread, and its compressed frame.
struct Job {
    raw: Vec<u8>,
    frame: Vec<u8>,
}

/// A unit that was passed to a thread.
struct Pending {
    job: Receiver<io::Result<Job>>,
    raw_bytes: usize,
    tag: u32,
}

/// A compressed unit, its length before compression, and its tag.
struct Frame<'f> {
    bytes: &'f [u8],
    raw_bytes: usize,
    tag: u32,
}

impl<W: Write + Send> Writer<W> {
    /// Begins a stream. The index counts offsets from `out`'s present position.
    pub fn new(out: W, compression: Compression, threads: NonZeroUsize) -> Self {
        Self::resume(out, compression, threads, Vec::new())
    }

    /// Continues after `units`, which an earlier writer wrote ([`Self::units`]); `out` must be at the end of the last.
    /// Tags must be given again in the same order ([`Self::tag`]).
    pub fn resume(out: W, compression: Compression, threads: NonZeroUsize, units: Vec<Unit>) -> Self {
        let written = WrittenUpTo {
            out_bytes: units.last().map_or(0, |unit| unit.out_offset + u64::from(unit.out_bytes)),
            raw_bytes: units.iter().map(|unit| u64::from(unit.raw_bytes)).sum(),
            units: units.len() as u64,
        };
        Self {
            out,
            compression,
            threads,
            pool: None,
            pending: VecDeque::new(),
            pending_bytes: 0,
            written,
            units,
            tags: Vec::new(),
            spare: Spare::default(),
        }
    }

    /// Names a namespace in the index, and returns the tag for its units. Tags count from 0.
    pub fn tag(&mut self, database: &str, collection: &str) -> u32 {
        self.tags.push((database.to_owned(), collection.to_owned()));
        self.tags.len() as u32 - 1
    }

    /// Queues one unit, which becomes one independent frame. Returns once it is queued, not once it is written; an
    /// empty unit is ignored. `tag` is from [`Self::tag`], or [`crate::index::NO_TAG`] for data that belongs to no
    /// namespace (the prelude).
    /// # Errors
    /// `InvalidInput` above [`MAX_UNIT_BYTES`], and errors of compressing and writing. After an error the writer must
    /// not be used any more, and [`Self::written`] tells the extent of the whole units.
    pub fn write_unit(&mut self, unit: Vec<u8>, tag: u32) -> io::Result<()> {
        let raw_bytes = unit.len();
        if raw_bytes > MAX_UNIT_BYTES {
            let message = format!("a unit of {raw_bytes} bytes, more than {MAX_UNIT_BYTES}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        if raw_bytes == 0 {
            return Ok(());
        }
        let Some(format) = Format::of(self.compression) else {
            self.write(&Frame { bytes: &unit, raw_bytes, tag })?;
            self.spare.put(unit);
            return Ok(());
        };
        self.write_compressed()?;
        while self.is_full(raw_bytes) {
            self.write_next()?;
        }
        let mut frame = self.spare.take(raw_bytes);
        frame.clear();
        // Incompressible data would make the buffer grow to twice its size; reserved but unused capacity takes no
        // memory.
        frame.reserve_exact(raw_bytes + raw_bytes / INCOMPRESSIBLE_PART + INCOMPRESSIBLE_BYTES);
        let pool = match &mut self.pool {
            Some(pool) => pool,
            None => self.pool.insert(start(format, self.threads)?),
        };
        let job = pool.submit(Job { raw: unit, frame });
        self.pending.push_back(Pending { job, raw_bytes, tag });
        self.pending_bytes += raw_bytes;
        Ok(())
    }

    /// Extent of the output so far. A resumed writer continues there, once the output is synced.
    pub fn written(&self) -> WrittenUpTo {
        self.written
    }

    /// The units in the output so far, which a resumed writer needs for the whole index.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The output, to be synced; writing to it would break the stream.
    pub fn output(&mut self) -> &mut W {
        &mut self.out
    }

    /// Waits until all queued units are written, and flushes the output.
    /// # Errors
    /// As [`Self::write_unit`].
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            self.write_next()?;
        }
        self.out.flush()
    }

    /// Writes the queued units, then the index (except for [`Compression::None`], which has no place for it), and
    /// flushes.
    /// # Errors
    /// As [`Self::write_unit`].
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        let index = Index { units: self.units, tags: self.tags };
        self.out.write_all(&index::encode(&index, self.compression))?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Takes an empty buffer for the next unit: a used one, if there is one.
    pub fn buffer(&mut self) -> Vec<u8> {
        let like_the_last = self.units.last().map_or(0, |unit| unit.raw_bytes as usize);
        let mut buffer = self.spare.take(like_the_last);
        buffer.clear();
        buffer
    }

    fn is_full(&self, more_bytes: usize) -> bool {
        !self.pending.is_empty()
            && (self.pending.len() >= self.threads.get() + PENDING_UNITS_AHEAD
                || self.pending_bytes + more_bytes > PENDING_BYTES_MAX)
    }

    /// Writes the units that are already compressed.
    fn write_compressed(&mut self) -> io::Result<()> {
        while let Some(first) = self.pending.front() {
            let job = match first.job.try_recv() {
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => Err(panicked()),
                Ok(job) => job,
            };
            self.write_job(job?)?;
        }
        Ok(())
    }

    /// Waits for the oldest unit and writes it.
    fn write_next(&mut self) -> io::Result<()> {
        let Some(first) = self.pending.front() else { return Ok(()) };
        let job = first.job.recv().map_err(|_| panicked())??;
        self.write_job(job)
    }

    /// Writes the compressed frame of the oldest unit.
    fn write_job(&mut self, job: Job) -> io::Result<()> {
        let Some(Pending { raw_bytes, tag, .. }) = self.pending.pop_front() else { return Ok(()) };
        self.pending_bytes -= raw_bytes;
        self.write(&Frame { bytes: &job.frame, raw_bytes, tag })?;
        self.spare.put(job.raw);
        self.spare.put(job.frame);
        Ok(())
    }

    fn write(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        self.out.write_all(frame.bytes)?;
        self.units.push(Unit {
            out_offset: self.written.out_bytes,
            out_bytes: frame.bytes.len() as u32,
            raw_bytes: frame.raw_bytes as u32,
            tag: frame.tag,
        });
        self.written.out_bytes += frame.bytes.len() as u64;
        self.written.raw_bytes += frame.raw_bytes as u64;
        self.written.units += 1;
        Ok(())
    }
}

fn panicked() -> io::Error {
    io::Error::other("a thread that compresses has panicked")
}

fn start(format: Format, threads: NonZeroUsize) -> io::Result<Pool<Job, io::Result<Job>>> {
    Pool::start("compress", threads, || {
        let mut encoder = Encoder::new(format);
        move |mut job: Job| encoder.run(&job.raw, &mut job.frame).map(|()| job)
    })
}

/// A format that threads compress.
#[derive(Clone, Copy)]
enum Format {
    Gzip,
    Zstd { level: i32 },
    Lz4,
}

impl Format {
    fn of(compression: Compression) -> Option<Self> {
        match compression {
            Compression::None => None,
            Compression::Gzip => Some(Self::Gzip),
            Compression::Zstd { level } => Some(Self::Zstd { level }),
            Compression::Lz4 => Some(Self::Lz4),
        }
    }
}

/// A thread's compressor. If it cannot be made, its first unit fails.
enum Encoder {
    Gzip(gzip::Compressor),
    Zstd(io::Result<zstandard::Compressor>),
    Lz4,
}

impl Encoder {
    fn new(format: Format) -> Self {
        match format {
            Format::Gzip => Self::Gzip(gzip::Compressor::new()),
            Format::Zstd { level } => Self::Zstd(zstandard::Compressor::new(level)),
            Format::Lz4 => Self::Lz4,
        }
    }

    fn run(&mut self, raw: &[u8], frame: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Gzip(compressor) => compressor.compress(raw, frame),
            Self::Zstd(Ok(compressor)) => compressor.compress(raw, frame),
            Self::Zstd(Err(error)) => Err(io::Error::new(error.kind(), error.to_string())),
            Self::Lz4 => lz4::compress(raw, frame),
        }
    }
}
