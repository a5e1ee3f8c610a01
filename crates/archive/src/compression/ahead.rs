//! The thread that reads a compressed input ahead of its consumer, and cuts it at its frames.
//!
//! A frame whose lengths are known without decoding goes whole to one of several threads; all of ours do. Any other is
//! decoded here, piece by piece, so that it may be of any length.

use super::budget::{Budget, Closed};
use super::pool::Pool;
use super::spare::Spare;
use super::window::Window;
use super::{gzip, lz4, zstandard};
use std::io::{self, BufRead, Read};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes, compressed and not, between this thread and its consumer.
pub(super) const AHEAD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How much of a frame of unknown length is handed on at once, in bytes.
const PIECE_BYTES: usize = 256 * 1024;
/// What a piece costs beside its bytes: a stream of empty frames is not free either.
const PIECE_OVERHEAD_BYTES: usize = 1024;

/// What comes out, in the input's order.
pub(super) enum Piece {
    /// Decoded.
    Ready(Vec<u8>),
    /// A thread decodes it.
    Decoding(Receiver<io::Result<Vec<u8>>>),
    /// The input is at its end: without this, a thread that panicked would look like it.
    End,
}

/// A piece, and what the consumer has to know of it.
pub(super) struct Ahead {
    pub(super) piece: Piece,
    /// How many bytes of the input are behind its end.
    pub(super) input_end: u64,
    /// To be given back to the budget.
    pub(super) charge: usize,
}

/// What this thread shares with its consumer.
pub(super) struct Shared {
    pub(super) budget: Budget,
    pub(super) spare: Mutex<Spare>,
}

impl Shared {
    fn take(&self, bytes: usize) -> Vec<u8> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).take(bytes)
    }

    pub(super) fn put(&self, buffer: Vec<u8>) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).put(buffer);
    }
}

/// Why there is nothing to do any more.
enum Stop {
    Failed(io::Error),
    Closed,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

/// A frame's format.
#[derive(Clone, Copy)]
enum Format {
    Gzip,
    Zstd,
    Lz4,
}

/// A whole frame for one of the threads.
struct Job {
    format: Format,
    frame: Vec<u8>,
    raw_bytes: usize,
    out: Vec<u8>,
    /// Where the frame begins in the input.
    offset: u64,
}

/// The thread's state.
pub(super) struct Splitter {
    window: Window,
    threads: NonZeroUsize,
    /// Started when there is a frame for it: most foreign streams have none.
    pool: Option<Pool<Job, io::Result<Vec<u8>>>>,
    pieces: Sender<io::Result<Ahead>>,
    shared: Arc<Shared>,
}

impl Splitter {
    pub(super) fn new(
        window: Window,
        threads: NonZeroUsize,
        pieces: Sender<io::Result<Ahead>>,
        shared: Arc<Shared>,
    ) -> Self {
        Self { window, threads, pool: None, pieces, shared }
    }

    /// Goes through the input to its end, the first damage, or until the consumer is gone.
    pub(super) fn run(mut self) {
        let last = match self.frames() {
            Ok(()) => Ok(Ahead { piece: Piece::End, input_end: self.window.offset(), charge: 0 }),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Closed) => return,
        };
        // A consumer that is gone misses nothing.
        let _ = self.pieces.send(last);
    }

    fn frames(&mut self) -> Result<(), Stop> {
        loop {
            let offset = self.window.offset();
            let format = match self.window.require(4)? {
                [] => return Ok(()),
                [0x1f, 0x8b, ..] => Format::Gzip,
                [0x28, 0xb5, 0x2f, 0xfd, ..] => Format::Zstd,
                [0x04, 0x22, 0x4d, 0x18, ..] => Format::Lz4,
                [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                    self.skip().map_err(|error| at(offset, &error))?;
                    continue;
                }
                _ => return Err(Stop::Failed(at(offset, &invalid("no frame begins here")))),
            };
            match self.measure(format)? {
                Some((frame_bytes, raw_bytes)) => self.submit(format, frame_bytes, raw_bytes)?,
                None => self.decode(format)?,
            }
        }
    }

    fn measure(&mut self, format: Format) -> io::Result<Option<(usize, usize)>> {
        match format {
            Format::Gzip => gzip::measure(&mut self.window),
            Format::Zstd => zstandard::measure(&mut self.window),
            Format::Lz4 => lz4::measure(&mut self.window),
        }
    }

    /// Hands a whole frame to a thread.
    fn submit(&mut self, format: Format, frame_bytes: usize, raw_bytes: usize) -> Result<(), Stop> {
        let charge = frame_bytes + raw_bytes + PIECE_OVERHEAD_BYTES;
        self.shared.budget.acquire(charge)?;
        let offset = self.window.offset();
        let (mut frame, out) = (self.shared.take(frame_bytes), self.shared.take(raw_bytes));
        frame.clear();
        frame.reserve_exact(frame_bytes);
        frame.extend_from_slice(&self.window.available()[..frame_bytes]);
        self.window.consume(frame_bytes);
        let pool = match &mut self.pool {
            Some(pool) => pool,
            None => {
                let shared = self.shared.clone();
                let pool = Pool::start("decompress", self.threads, || {
                    let (shared, mut decoder) = (shared.clone(), Decoder::default());
                    move |job| decoder.run(job, &shared)
                })?;
                self.pool.insert(pool)
            }
        };
        let decoding = pool.submit(Job { format, frame, raw_bytes, out, offset });
        self.send(Piece::Decoding(decoding), charge)
    }

    /// Decodes one frame of unknown length here.
    fn decode(&mut self, format: Format) -> Result<(), Stop> {
        let offset = self.window.offset();
        let (shared, pieces, window) = (&self.shared, &self.pieces, &mut self.window);
        let hand_on = |piece: Vec<u8>, input_end: u64| {
            let charge = piece.len() + PIECE_OVERHEAD_BYTES;
            shared.budget.acquire(charge)?;
            pieces.send(Ok(Ahead { piece: Piece::Ready(piece), input_end, charge })).map_err(|_| Closed)
        };
        let take = || shared.take(PIECE_BYTES);
        let decoded = match format {
            Format::Gzip => {
                let decoder = flate2::bufread::GzDecoder::new(window);
                in_pieces(decoder, |decoder| decoder.get_ref().offset(), take, hand_on)
            }
            Format::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(window)?.single_frame();
                in_pieces(decoder, |decoder| decoder.get_ref().offset(), take, hand_on)
            }
            Format::Lz4 => in_pieces(lz4::Stream::new(window), lz4::Stream::input_offset, take, hand_on),
        };
        decoded.map_err(|stop| match stop {
            Stop::Failed(error) => Stop::Failed(at(offset, &error)),
            Stop::Closed => Stop::Closed,
        })
    }

    /// Passes over a frame that is to be skipped, whatever its length.
    fn skip(&mut self) -> io::Result<()> {
        let header = self.window.require(8)?.first_chunk::<8>();
        let header = header.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let content_bytes = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let mut missing = u64::from(content_bytes) + 8;
        while missing > 0 {
            let available = self.window.require(1)?.len() as u64;
            if available == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let passed = available.min(missing);
            self.window.consume(passed as usize);
            missing -= passed;
        }
        Ok(())
    }

    fn send(&self, piece: Piece, charge: usize) -> Result<(), Stop> {
        let ahead = Ahead { piece, input_end: self.window.offset(), charge };
        self.pieces.send(Ok(ahead)).map_err(|_| Stop::Closed)
    }
}

/// Decodes to the decoder's end, and hands each piece on with how far the decoder's input is.
fn in_pieces<D: Read>(
    mut decoder: D,
    input_offset: impl Fn(&D) -> u64,
    buffer: impl Fn() -> Vec<u8>,
    hand_on: impl Fn(Vec<u8>, u64) -> Result<(), Closed>,
) -> Result<(), Stop> {
    loop {
        let mut piece = buffer();
        let end = fill(&mut decoder, &mut piece);
        if !piece.is_empty() {
            hand_on(piece, input_offset(&decoder))?;
        }
        if let End::Reached = end? {
            return Ok(());
        }
    }
}

/// Whether a frame has more.
enum End {
    Open,
    Reached,
}

/// Fills a piece; what was decoded before an error is in it.
fn fill(decoder: &mut impl Read, piece: &mut Vec<u8>) -> io::Result<End> {
    // Zeroed room is cheap to get where it is new.
    if piece.capacity() == 0 {
        *piece = vec![0; PIECE_BYTES];
    }
    piece.resize(PIECE_BYTES, 0);
    let mut filled = 0;
    let end = loop {
        if filled == piece.len() {
            break Ok(End::Open);
        }
        match decoder.read(&mut piece[filled..]) {
            Ok(0) => break Ok(End::Reached),
            Ok(length) => filled += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    piece.truncate(filled);
    end
}

/// A thread's decoders, made when they are first needed.
#[derive(Default)]
struct Decoder {
    gzip: Option<gzip::Decompressor>,
    zstd: Option<zstandard::Decompressor>,
}

impl Decoder {
    fn run(&mut self, job: Job, shared: &Shared) -> io::Result<Vec<u8>> {
        let mut out = job.out;
        out.clear();
        // Measured to be within a unit's limit; a byte more, because inflating into nothing does not end.
        out.reserve_exact(job.raw_bytes + 1);
        let result = match job.format {
            Format::Gzip => {
                let decoder = self.gzip.get_or_insert_with(gzip::Decompressor::new);
                decoder.decompress(&job.frame, job.raw_bytes, &mut out)
            }
            Format::Zstd => self.zstd(&job.frame, job.raw_bytes, &mut out),
            Format::Lz4 => lz4::decompress(&job.frame, job.raw_bytes, &mut out),
        };
        shared.put(job.frame);
        result.map(|()| out).map_err(|error| at(job.offset, &error))
    }

    fn zstd(&mut self, frame: &[u8], raw_bytes: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let decoder = match &mut self.zstd {
            Some(decoder) => decoder,
            None => self.zstd.insert(zstandard::Decompressor::new()?),
        };
        decoder.decompress(frame, raw_bytes, out)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Says in which frame of the input an error is.
fn at(offset: u64, error: &io::Error) -> io::Error {
    let what = match error.kind() {
        io::ErrorKind::UnexpectedEof => "truncated".to_owned(),
        _ => error.to_string(),
    };
    io::Error::new(error.kind(), format!("compressed stream, frame at its offset {offset}: {what}"))
}
