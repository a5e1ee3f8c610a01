//! Reads streams, compressed or not.

use super::Compression;
use super::ahead::{AHEAD_BYTES_MAX, Ahead, Piece, Shared, Splitter};
use super::budget::Budget;
use super::window::Window;
use std::io::{self, BufRead, Read};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Detects the compression of `input` and begins to read it.
///
/// Frames that contain their own and their content's length are decoded by `threads` threads; others by one, ahead of
/// the consumer. At most 64 MiB are in flight. Frames of different formats may follow each other.
/// # Errors
/// The error of reading the first bytes, or of starting a thread. Damage is found while reading: `InvalidData` or
/// `UnexpectedEof` with the compressed offset of the frame.
pub fn open(input: Box<dyn Read + Send>, threads: NonZeroUsize) -> io::Result<Reader> {
    let mut window = Window::new(input);
    let compression = Compression::detect(window.require(4)?);
    let source = match compression {
        Compression::None => Source::Plain(window),
        _ => Source::Compressed(Decoded::start(window, threads)?),
    };
    Ok(Reader { compression, source, raw_bytes_read: 0 })
}

/// A decoded stream. [`BufRead`] lends its bytes without a copy.
pub struct Reader {
    compression: Compression,
    source: Source,
    raw_bytes_read: u64,
}

enum Source {
    Plain(Window),
    Compressed(Decoded),
}

impl Reader {
    /// Compression of the stream's first frame.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Number of input bytes up to the current position, without those that threads decoded ahead.
    pub fn compressed_bytes_read(&self) -> u64 {
        match &self.source {
            Source::Plain(window) => window.offset(),
            Source::Compressed(decoded) => decoded.input_bytes_read(),
        }
    }

    /// Number of decoded bytes read so far.
    pub fn raw_bytes_read(&self) -> u64 {
        self.raw_bytes_read
    }
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = match &mut self.source {
            Source::Plain(window) => window.read(into)?,
            Source::Compressed(decoded) => {
                let available = decoded.fill()?;
                let length = available.len().min(into.len());
                into[..length].copy_from_slice(&available[..length]);
                decoded.consume(length);
                length
            }
        };
        self.raw_bytes_read += length as u64;
        Ok(length)
    }
}

impl BufRead for Reader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match &mut self.source {
            Source::Plain(window) => window.fill_buf(),
            Source::Compressed(decoded) => decoded.fill(),
        }
    }

    fn consume(&mut self, bytes: usize) {
        match &mut self.source {
            Source::Plain(window) => window.consume(bytes),
            Source::Compressed(decoded) => decoded.consume(bytes),
        }
        self.raw_bytes_read += bytes as u64;
    }
}

/// The consumer's end of the decoding threads.
struct Decoded {
    pieces: Receiver<io::Result<Ahead>>,
    shared: Arc<Shared>,
    piece: Vec<u8>,
    position: usize,
    /// Offsets in the input at which `piece` begins and ends.
    input: (u64, u64),
    charge: usize,
    state: DecoderState,
}

enum DecoderState {
    Open,
    AtEnd,
    /// Every further read fails with this error, because the following data is missing.
    Failed(io::ErrorKind, String),
}

impl Decoded {
    fn start(window: Window, threads: NonZeroUsize) -> io::Result<Self> {
        let shared = Arc::new(Shared { budget: Budget::new(AHEAD_BYTES_MAX), spare: Mutex::default() });
        // The budget limits it, not a number of pieces.
        let (sender, pieces) = channel();
        let splitter = Splitter::new(window, threads, sender, shared.clone());
        // The thread is never joined: while it waits for input, it cannot be told that it is no longer needed.
        thread::Builder::new().name("decompress-input".to_owned()).spawn(move || splitter.run())?;
        Ok(Self { pieces, shared, piece: Vec::new(), position: 0, input: (0, 0), charge: 0, state: DecoderState::Open })
    }

    /// The position in the input, interpolated within a piece.
    fn input_bytes_read(&self) -> u64 {
        let (begin, end) = self.input;
        match self.piece.len() as u64 {
            0 => end,
            length => begin + (end - begin) * self.position as u64 / length,
        }
    }

    /// Decoded bytes that were not consumed; empty at the end.
    fn fill(&mut self) -> io::Result<&[u8]> {
        while self.position == self.piece.len() {
            match &self.state {
                DecoderState::Open => {}
                DecoderState::AtEnd => return Ok(&[]),
                DecoderState::Failed(kind, message) => return Err(io::Error::new(*kind, message.clone())),
            }
            if let Err(error) = self.next_piece() {
                self.state = DecoderState::Failed(error.kind(), error.to_string());
            }
        }
        Ok(&self.piece[self.position..])
    }

    fn next_piece(&mut self) -> io::Result<()> {
        let used = std::mem::take(&mut self.piece);
        self.position = 0;
        self.shared.put(used);
        self.shared.budget.release(std::mem::take(&mut self.charge));
        let lost = |_| io::Error::other("a thread that decompresses has panicked");
        let ahead = self.pieces.recv().map_err(lost)??;
        self.input = (self.input.1, ahead.input_end.max(self.input.1));
        self.charge = ahead.charge;
        match ahead.piece {
            Piece::Ready(piece) => self.piece = piece,
            Piece::Decoding(decoding) => self.piece = decoding.recv().map_err(lost)??,
            Piece::End => self.state = DecoderState::AtEnd,
        }
        Ok(())
    }

    fn consume(&mut self, bytes: usize) {
        self.position = (self.position + bytes).min(self.piece.len());
    }
}

impl Drop for Decoded {
    fn drop(&mut self) {
        self.shared.budget.close();
    }
}
