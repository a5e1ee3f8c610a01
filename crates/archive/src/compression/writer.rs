//! Writing units.

use super::pool::Pool;
use super::spare::Spare;
use super::{Compression, gzip, lz4, zstandard};
use crate::index::{self, Index, Unit};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, TryRecvError};

/// Longest unit, in bytes before compression.
pub const MAX_UNIT_BYTES: usize = 32 * 1024 * 1024;
/// Most bytes before compression that are under way, unless a single unit is longer.
const PENDING_BYTES_MAX: usize = MAX_UNIT_BYTES;
/// By which part of itself, and how many bytes besides, a unit that cannot be compressed grows at most.
const INCOMPRESSIBLE_PART: usize = 128;
const INCOMPRESSIBLE_BYTES: usize = 1024;
/// How many units may be under way besides those that threads work on.
const PENDING_UNITS_AHEAD: usize = 2;

/// How far a [`Writer`]'s output reaches, all of it whole units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenUpTo {
    /// Bytes in the output.
    pub out_bytes: u64,
    /// Bytes before compression.
    pub raw_bytes: u64,
    /// Units.
    pub units: u64,
}

/// Compresses units on several threads, each as a frame (or gzip member) of its own, and writes them in order.
///
/// At most `threads + 2` units and 32 MiB before compression are under way. The output is written by whoever calls.
pub struct Writer<W: Write + Send> {
    out: W,
    compression: Compression,
    threads: NonZeroUsize,
    /// Started with the first unit; never without compression.
    pool: Option<Pool<Job, io::Result<Job>>>,
    pending: VecDeque<Pending>,
    pending_bytes: usize,
    written: WrittenUpTo,
    units: Vec<Unit>,
    tags: Vec<(String, String)>,
    spare: Spare,
}

/// A unit for a thread, and what it made of it.
struct Job {
    raw: Vec<u8>,
    frame: Vec<u8>,
}

/// A unit that a thread has or had.
struct Pending {
    job: Receiver<io::Result<Job>>,
    raw_bytes: usize,
    tag: u32,
}

/// A compressed unit, and how it is counted.
struct Frame<'f> {
    bytes: &'f [u8],
    raw_bytes: usize,
    tag: u32,
}

impl<W: Write + Send> Writer<W> {
    /// Begins a stream. Where `out` does not stand at its begin, the index counts from where it stands.
    pub fn new(out: W, compression: Compression, threads: NonZeroUsize) -> Self {
        Self::resume(out, compression, threads, Vec::new())
    }

    /// Goes on behind `units`, which an earlier writer wrote ([`Self::units`]); `out` must stand at the end of the last.
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

    /// Names a namespace in the index; its units are written with the tag that this returns. Tags count from 0.
    pub fn tag(&mut self, database: &str, collection: &str) -> u32 {
        self.tags.push((database.to_owned(), collection.to_owned()));
        self.tags.len() as u32 - 1
    }

    /// Queues one unit, which becomes one independent frame. Returns once it is queued, not once it is written; an empty
    /// one is none. `tag` is from [`Self::tag`], or [`crate::index::NO_TAG`] for what belongs to no one namespace (the
    /// prelude).
    /// # Errors
    /// `InvalidInput` above [`MAX_UNIT_BYTES`], and what compressing and writing to the output give; after an error the
    /// writer is of no more use, and [`Self::written`] says what is whole.
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
        // What does not shrink would let the buffer grow to twice its size; room that is not used takes no memory.
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

    /// What is in the output so far: where a resumed writer goes on, once the output is synced.
    pub fn written(&self) -> WrittenUpTo {
        self.written
    }

    /// The units in the output so far: what a resumed writer needs to write the whole index.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The output, to sync it; whoever writes to it breaks the stream.
    pub fn output(&mut self) -> &mut W {
        &mut self.out
    }

    /// Waits until all queued units are in the output, and flushes it.
    /// # Errors
    /// As [`Self::write_unit`].
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            self.write_next()?;
        }
        self.out.flush()
    }

    /// Writes what is queued, then the index (not for [`Compression::None`], which has no room for it), and flushes.
    /// # Errors
    /// As [`Self::write_unit`].
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        let index = Index { units: self.units, tags: self.tags };
        self.out.write_all(&index::encode(&index, self.compression))?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// An empty buffer, one that was used before where there is one.
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

    /// Writes the units that are compressed already.
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

    /// Writes what became of the oldest unit.
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

/// What threads are for.
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

/// A thread's compressor. Making one may fail, which its first unit tells.
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
