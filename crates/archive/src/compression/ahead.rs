//! The thread that reads a compressed input ahead of its consumer, and cuts it into frames.
//!
//! A frame whose lengths are known without decoding is decoded by one of several threads; frames that this crate wrote
//! are such frames. Any other frame is decoded by the thread itself, piece by piece, so that it may have any length.

use super::budget::{Budget, Closed};
use super::pool::Pool;
use super::spare::Spare;
use super::window::Window;
use super::{gzip, lz4, zstandard};
use std::io::{self, BufRead, Read};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of bytes, compressed and decoded, between this thread and its consumer.
pub(super) const AHEAD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Length of a piece of a frame of unknown length, in bytes.
const PIECE_BYTES: usize = 256 * 1024;
/// Bytes charged for a piece in addition to its content, so that a stream of empty frames is limited too.
const PIECE_OVERHEAD_BYTES: usize = 1024;

/// A piece of output, in the input's order.
pub(super) enum Piece {
    /// Already decoded.
    Ready(Vec<u8>),
    /// A thread is decoding it.
    Decoding(Receiver<io::Result<Vec<u8>>>),
    /// Marks the input's end. Without the mark, a thread that panicked would look like the end.
    End,
}

/// A piece, and its place and charge.
pub(super) struct Ahead {
    pub(super) piece: Piece,
    /// Offset in the input after the piece.
    pub(super) input_end: u64,
    /// Bytes to return to the budget.
    pub(super) charge: usize,
}

/// State that this thread shares with its consumer.
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

/// Reason why the thread stops.
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

/// A whole frame for a decoding thread.
struct Job {
    format: Format,
    frame: Vec<u8>,
    raw_bytes: usize,
    out: Vec<u8>,
    /// Offset of the frame in the input.
    offset: u64,
}

/// The thread that reads ahead.
pub(super) struct Splitter {
    window: Window,
    threads: NonZeroUsize,
    /// Started with the first frame whose lengths are known: most streams of other tools have none.
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

    /// Reads the input to its end or the first damage, or until the consumer is gone.
    pub(super) fn run(mut self) {
        let last = match self.frames() {
            Ok(()) => Ok(Ahead { piece: Piece::End, input_end: self.window.offset(), charge: 0 }),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Closed) => return,
        };
        // The error is ignored: the consumer is gone, and needs no result.
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

    /// Passes a whole frame to a decoding thread.
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

    /// Decodes one frame of unknown length in this thread.
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

    /// Skips a skippable frame of any length.
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

/// Decodes to the decoder's end, and passes each piece on with the offset of the decoder's input.
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

/// Whether a frame has more data.
enum End {
    Open,
    Reached,
}

/// Fills a piece. If decoding fails, the piece holds the data decoded before.
fn fill(decoder: &mut impl Read, piece: &mut Vec<u8>) -> io::Result<End> {
    // Newly allocated memory is zeroed at little cost.
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

/// A thread's decoders, made on first use.
#[derive(Default)]
struct Decoder {
    gzip: Option<gzip::Decompressor>,
    zstd: Option<zstandard::Decompressor>,
}

impl Decoder {
    fn run(&mut self, job: Job, shared: &Shared) -> io::Result<Vec<u8>> {
        let mut out = job.out;
        out.clear();
        // [`gzip::measure`] and its counterparts have limited the length. The buffer gets one byte more than the
        // content, because inflating into a full buffer does not end.
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

/// Adds the offset of the frame to an error.
fn at(offset: u64, error: &io::Error) -> io::Error {
    let what = match error.kind() {
        io::ErrorKind::UnexpectedEof => "truncated".to_owned(),
        _ => error.to_string(),
    };
    io::Error::new(error.kind(), format!("compressed stream, frame at its offset {offset}: {what}"))
}
