//! The frames between the server and a worker: a length, a kind, and a content that depends on the kind. The server asks
//! and the worker answers. While it works, the worker may ask for memory; the server grants it, or ends the worker.
//!
//! The server does not trust a worker: an answer that makes no sense ends it.

use crate::call::Call;
use crate::interpreter_failure::interpreter_failure;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;

/// The largest frame, in bytes. The answer of a script may be larger than a document.
/// Source: MongoDB's limit for buffers, 64 megabytes.
pub(crate) const FRAME_BYTES_MAX: usize = 64 << 20;
/// Bytes of a frame's length, which does not count itself, and of its kind.
const LENGTH_BYTES: usize = 4;
const HEADER_BYTES: usize = LENGTH_BYTES + 1;
/// First size of a buffer for frames, in bytes.
const BUFFER_BYTES: usize = 16 << 10;

const COMPILE: u8 = 0;
const DEFINE: u8 = 1;
const CALL: u8 = 2;
const IS_TRUE: u8 = 3;
const EMITS: u8 = 4;
const GRANT: u8 = 5;

const DONE: u8 = 16;
const COMPILED: u8 = 17;
const TRUTH: u8 = 18;
const VALUE: u8 = 19;
const FAILED: u8 = 20;
const MORE: u8 = 21;

/// Flags of a call's frame: the documents that it contains.
const HAS_THIS: u8 = 1;
const HAS_ARGUMENTS: u8 = 2;

/// The frame that grants a worker the memory that it has asked for.
pub(crate) const GRANTED: [u8; HEADER_BYTES] = [1, 0, 0, 0, GRANT];

/// Makes the frame that asks for `bytes` more bytes of memory.
pub(crate) fn more(bytes: usize) -> [u8; HEADER_BYTES + 8] {
    let mut frame = [0; HEADER_BYTES + 8];
    frame[0] = 9;
    frame[LENGTH_BYTES] = MORE;
    frame[HEADER_BYTES..].copy_from_slice(&(bytes as u64).to_le_bytes());
    frame
}

/// The kind of answer that a call is to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Value,
    Truth,
    Emitted,
}

/// A request to a worker.
pub(crate) enum Request<'a> {
    Compile(&'a str),
    /// The only field of the document.
    Define(DocumentRef<'a>),
    Call(Wish, Call<'a>),
}

impl<'a> Request<'a> {
    /// Reads a frame without its length. The server made it, so that its documents are whole.
    pub fn parse(frame: &'a [u8]) -> Option<Self> {
        let (kind, rest) = frame.split_first()?;
        let wish = match *kind {
            COMPILE => return Some(Self::Compile(std::str::from_utf8(rest).ok()?)),
            DEFINE => return Some(Self::Define(DocumentRef::trusted(rest))),
            CALL => Wish::Value,
            IS_TRUE => Wish::Truth,
            EMITS => Wish::Emitted,
            _ => return None,
        };
        let (number, rest) = rest.split_first_chunk()?;
        let (parts, mut rest) = rest.split_first()?;
        let mut part = |mask: u8| {
            if parts & mask == 0 {
                return None;
            }
            let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
            let (document, behind) = rest.split_at_checked(length)?;
            rest = behind;
            Some(DocumentRef::trusted(document))
        };
        let (this, arguments) = (part(HAS_THIS), part(HAS_ARGUMENTS).unwrap_or(DocumentRef::EMPTY));
        Some(Self::Call(wish, Call { number: u32::from_le_bytes(*number) as usize, this, arguments }))
    }
}

/// An answer of a worker.
pub(crate) enum Answer<'a> {
    Done,
    Compiled(u32),
    Truth(bool),
    /// The only field of a document.
    Value(DocumentRef<'a>),
    Failed(Failure),
}

impl<'a> Answer<'a> {
    /// Reads a frame without its length; `None` if the bytes are not a frame.
    pub fn parse(frame: &'a [u8]) -> Option<Self> {
        let (kind, rest) = frame.split_first()?;
        Some(match *kind {
            DONE => Self::Done,
            COMPILED => Self::Compiled(u32::from_le_bytes(rest.try_into().ok()?)),
            TRUTH => Self::Truth(*rest.first()? != 0),
            VALUE => Self::Value(DocumentRef::parse(rest).ok()?),
            FAILED => {
                let (code, message) = rest.split_first_chunk()?;
                let code = ErrorCode(i32::from_le_bytes(*code));
                Self::Failed(Failure::new(code, std::str::from_utf8(message).ok()?))
            }
            _ => return None,
        })
    }
}

/// The bytes of memory that a worker asks for before it answers; `None` if the frame is no such request.
pub(crate) fn more_bytes(frame: &[u8]) -> Option<usize> {
    let bytes = frame.strip_prefix(&[MORE])?;
    usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

/// A frame that is written.
pub(crate) struct Outgoing(Vec<u8>);

impl Outgoing {
    pub fn new() -> Self {
        Self(Vec::with_capacity(BUFFER_BYTES))
    }

    /// The frame that was written last.
    pub fn frame(&self) -> &[u8] {
        &self.0
    }

    pub fn compile(&mut self, text: &str) -> &[u8] {
        self.begin(COMPILE).extend_from_slice(text.as_bytes());
        self.end()
    }

    pub fn define(&mut self, name: &str, value: ValueRef<'_>) -> &[u8] {
        Writer::new(self.begin(DEFINE)).append(name, value).end();
        self.end()
    }

    pub fn call(
        &mut self,
        wish: Wish,
        number: u32,
        this: Option<DocumentRef<'_>>,
        arguments: &[ValueRef<'_>],
    ) -> &[u8] {
        let frame = self.begin(match wish {
            Wish::Value => CALL,
            Wish::Truth => IS_TRUE,
            Wish::Emitted => EMITS,
        });
        frame.extend_from_slice(&number.to_le_bytes());
        let has_arguments = if arguments.is_empty() { 0 } else { HAS_ARGUMENTS };
        frame.push(has_arguments | if this.is_some() { HAS_THIS } else { 0 });
        frame.extend_from_slice(this.map_or(&[], DocumentRef::as_bytes));
        if !arguments.is_empty() {
            let mut writer = Writer::new(frame);
            for (index, argument) in arguments.iter().enumerate() {
                writer.push(index, *argument);
            }
            writer.end();
        }
        self.end()
    }

    pub fn done(&mut self) -> &[u8] {
        self.begin(DONE);
        self.end()
    }

    pub fn compiled(&mut self, number: u32) -> &[u8] {
        self.begin(COMPILED).extend_from_slice(&number.to_le_bytes());
        self.end()
    }

    pub fn truth(&mut self, is_true: bool) -> &[u8] {
        self.begin(TRUTH).push(u8::from(is_true));
        self.end()
    }

    /// Writes a frame with the value that `write` appends, or with a failure if `write` fails or the frame is too
    /// large.
    pub fn value(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bunko_errors::Result<()>) -> &[u8] {
        match write(self.begin(VALUE)) {
            Ok(()) if self.0.len() <= FRAME_BYTES_MAX => self.end(),
            Ok(()) => {
                let message = "a script's value is larger than a document may be";
                self.failed(&Failure::new(ErrorCode::BSON_OBJECT_TOO_LARGE, message))
            }
            Err(failure) => self.failed(&failure),
        }
    }

    pub fn failed(&mut self, failure: &Failure) -> &[u8] {
        let frame = self.begin(FAILED);
        frame.extend_from_slice(&failure.code().0.to_le_bytes());
        frame.extend_from_slice(failure.message().as_bytes());
        self.end()
    }

    fn begin(&mut self, kind: u8) -> &mut Vec<u8> {
        self.0.clear();
        self.0.extend_from_slice(&[0, 0, 0, 0, kind]);
        &mut self.0
    }

    fn end(&mut self) -> &[u8] {
        let length = (self.0.len() - LENGTH_BYTES) as u32;
        self.0[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        &self.0
    }
}

/// A frame that is read with as few calls of the socket as possible: usually one.
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    filled: usize,
}

impl Incoming {
    pub fn new() -> Self {
        Self { bytes: vec![0; BUFFER_BYTES], filled: 0 }
    }

    /// The frame without its length; `None` until all of it has arrived.
    pub fn frame(&self) -> Option<&[u8]> {
        let end = self.end()?;
        self.bytes.get(LENGTH_BYTES..end).filter(|_| self.filled >= end)
    }

    /// Forgets the frame, so that the next one can be read. Nothing comes after a frame before it is answered.
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// How many bytes the buffer would have to grow for the next call of [`Self::read`].
    pub fn grows_by(&self) -> usize {
        self.end().map_or(0, |end| end.saturating_sub(self.bytes.len()))
    }

    /// Reads the part of the frame that has arrived. Returns whether the other side is still there.
    /// # Errors
    /// As the socket; a frame that is too large.
    pub fn read(&mut self, mut socket: &UnixStream) -> io::Result<bool> {
        let end = self.end().unwrap_or(0);
        if end > FRAME_BYTES_MAX + LENGTH_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too large"));
        }
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        let read = socket.read(&mut self.bytes[self.filled..])?;
        self.filled += read;
        Ok(read > 0)
    }

    /// Where the frame ends in the buffer; `None` until its length has arrived.
    fn end(&self) -> Option<usize> {
        let length = self.bytes[..self.filled].first_chunk().map(|length| u32::from_le_bytes(*length));
        length.map(|length| length as usize + LENGTH_BYTES)
    }
}

/// The failure for a worker whose answer makes no sense.
pub(crate) fn nonsense() -> Failure {
    interpreter_failure("the process that ran the script gave an answer that makes no sense")
}
