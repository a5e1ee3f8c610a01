//! Reads documents one after the other. Bytes around a document in the log, or in its extent, are kept for the next
//! one.

use crate::documents::{Documents, Home, block_number, not_in_block};
use crate::extents::{Block, Extent};
use bunko_heap::prefetch;
use bunko_store::{KeyspaceId, Location, Log, Result};
use std::sync::Arc;

/// Minimum and maximum of the bytes that are read ahead in the log. The maximum leaves room in the processor's first
/// cache for work on the documents; the system reads further ahead from a disk.
const AHEAD_BYTES_MIN: u64 = 4 * 1024;
const AHEAD_BYTES_MAX: u64 = 32 * 1024;
/// Documents of a block are prefetched this many ahead of the reader; a fetch takes about as long as the reader needs
/// for them.
const PREFETCHED_AHEAD: usize = 2;
/// Maximum number of bytes that are prefetched of each document.
const PREFETCHED_BYTES: usize = 256;
/// Largest gap between two documents that still counts as log order, in bytes.
const GAP_BYTES: u64 = 64 * 1024;

/// Data that one cursor has read.
#[derive(Default)]
pub(crate) struct Reader {
    window: Window,
    /// The block of the last document from an extent.
    current: Option<Current>,
}

struct Current {
    extent: Arc<Extent>,
    number: usize,
    block: Arc<Block>,
    /// Number of the first block that was not read ahead.
    not_ahead: usize,
    /// Number of the document that a scan reads next.
    next: usize,
}

impl Current {
    /// Loads the next block of a scan, with read-ahead if it follows the block before.
    fn next(before: Option<&Self>, documents: &Documents, extent: Arc<Extent>, number: usize) -> Result<Self> {
        let before = before.filter(|before| before.extent.number == extent.number && before.number + 1 == number);
        let not_ahead = match before {
            Some(before) if number < before.not_ahead => before.not_ahead,
            Some(_) => extent.read_ahead(number),
            None => 0,
        };
        let block = documents.block(&extent, number)?;
        Ok(Self { extent, number, block, not_ahead, next: 0 })
    }
}

impl Reader {
    /// Reads a document, which is lent until the next call.
    pub fn read(&mut self, documents: &Documents, keyspace: KeyspaceId, location: Location) -> Result<&[u8]> {
        // The log's bytes never change, even if the document has moved to an extent meanwhile.
        if self.window.holds(location) {
            let document = self.window.document(location);
            documents.log().verify(location, document)?;
            self.window.last_end = location.position + u64::from(location.length);
            return Ok(self.window.document(location));
        }
        let mut found = self.current.as_ref().and_then(|current| current.block.find(location, current.next));
        while found.is_none() {
            match documents.home(location) {
                Home::Extent(extent) => {
                    let number = block_number(&extent, keyspace, location)?;
                    let current = Current::next(self.current.as_ref(), documents, extent, number)?;
                    let in_block = current.block.find(location, 0);
                    found = Some(in_block.ok_or_else(|| not_in_block(&current.extent, number, location))?);
                    self.current = Some(current);
                }
                Home::Log => match self.window.hold(documents.log(), location) {
                    Err(error) => documents.unless_moved(location, error)?,
                    Ok(()) => {
                        let document = self.window.document(location);
                        documents.log().verify(location, document)?;
                        return Ok(self.window.document(location));
                    }
                },
            }
        }
        let (current, number) = self.current.as_mut().zip(found).expect("the document is at hand");
        current.next = number + 1;
        if let Some(soon) = current.block.get(number + PREFETCHED_AHEAD) {
            prefetch(&soon.document[..soon.document.len().min(PREFETCHED_BYTES)]);
        }
        Ok(current.block.get(number).expect("found").document)
    }
}

/// Bytes of the log that were read ahead.
struct Window {
    position: u64,
    /// Number of valid bytes in the buffer.
    valid: usize,
    buffer: Vec<u8>,
    /// End of the last document. A document that begins soon after this position is taken for the next of a scan in log
    /// order.
    last_end: u64,
    /// Bytes of the next read. It doubles while documents follow each other, so that scattered reads stay small.
    ahead: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self { position: 0, valid: 0, buffer: Vec::new(), last_end: 0, ahead: AHEAD_BYTES_MIN }
    }
}

impl Window {
    fn holds(&self, location: Location) -> bool {
        let end = location.position + u64::from(location.length);
        location.position >= self.position && end <= self.position + self.valid as u64
    }

    /// Makes sure that the window holds a document.
    fn hold(&mut self, log: &Log, location: Location) -> Result<()> {
        if !self.holds(location) {
            self.fill(log, location)?;
        }
        self.last_end = location.position + u64::from(location.length);
        Ok(())
    }

    fn document(&self, location: Location) -> &[u8] {
        let start = (location.position - self.position) as usize;
        &self.buffer[start..start + location.length as usize]
    }

    fn fill(&mut self, log: &Log, location: Location) -> Result<()> {
        let follows = location.position >= self.last_end && location.position - self.last_end < GAP_BYTES;
        self.ahead = if follows { (self.ahead * 2).min(AHEAD_BYTES_MAX) } else { AHEAD_BYTES_MIN };
        let readable = if follows { log.readable_bytes(location.position).min(self.ahead) } else { 0 };
        let wanted = u64::from(location.length).max(readable) as usize;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        // Set before the read: if it fails, no stale byte counts as valid.
        self.valid = 0;
        log.read_raw(location.position, &mut self.buffer[..wanted])?;
        self.position = location.position;
        self.valid = wanted;
        Ok(())
    }
}
