//! Reads a frame's fields in their order.

use crate::WireError;
use bunko_bson::DocumentRef;

/// The unread part of a frame. A read that does not fit is an error and takes nothing.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn int32(&mut self) -> Result<i32, WireError> {
        self.array().map(i32::from_le_bytes)
    }

    #[inline]
    pub(crate) fn uint32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(crate) fn int64(&mut self) -> Result<i64, WireError> {
        self.array().map(i64::from_le_bytes)
    }

    /// Reads a zero-terminated name.
    pub(crate) fn name(&mut self) -> Result<&'a str, WireError> {
        let end = self.rest.iter().position(|&byte| byte == 0).ok_or(WireError::BadName)?;
        let name = std::str::from_utf8(&self.rest[..end]).map_err(|_| WireError::BadName)?;
        self.rest = &self.rest[end + 1..];
        Ok(name)
    }

    /// Reads a part that begins with its own length in bytes, these four included. The length stays in the result.
    #[inline]
    pub(crate) fn sized(&mut self) -> Result<&'a [u8], WireError> {
        let mut ahead = *self;
        let length = ahead.int32()?;
        match usize::try_from(length) {
            Ok(count) if count >= 4 => self.take(count),
            _ => Err(WireError::BadCount(length)),
        }
    }

    /// Reads a document, and checks it to its leaves.
    #[inline]
    pub(crate) fn document(&mut self) -> Result<DocumentRef<'a>, WireError> {
        Ok(DocumentRef::parse(self.sized()?)?)
    }

    /// Checks that nothing is left of the frame.
    pub(crate) fn finish(self) -> Result<(), WireError> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(WireError::TrailingBytes { count }),
        }
    }
}
