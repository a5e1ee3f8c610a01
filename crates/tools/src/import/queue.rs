//! Chunks on their way from the reader to the workers, whose bytes together are limited.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::Duration;

/// Longest time until a waiting thread notices that the run is over.
const POLL: Duration = Duration::from_millis(50);

/// A part of the input that holds whole records.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub bytes: Vec<u8>,
    /// Place of the chunk's first byte in the input.
    pub start: u64,
    /// Number of the chunk's first line, counted from 1.
    pub line: u64,
    /// Number of lines that end in the chunk.
    pub lines: u64,
    /// Whether nothing precedes or follows it in the input.
    pub is_first: bool,
    pub is_last: bool,
}

impl Chunk {
    /// Place in the input of the byte after the chunk.
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

#[derive(Default)]
struct Waiting {
    chunks: VecDeque<Chunk>,
    /// Bytes of all chunks that were pushed and not released.
    bytes: usize,
    is_closed: bool,
}

/// Chunks in the order of the input.
pub(super) struct ChunkQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    bytes_max: usize,
}

impl ChunkQueue {
    pub fn new(bytes_max: usize) -> Self {
        Self { waiting: Mutex::default(), changed: Condvar::new(), bytes_max }
    }

    /// Adds a chunk once there is room for it. A chunk that is larger than the whole room waits until it is alone.
    /// Chunks are dropped once `is_over`.
    pub fn push(&self, chunk: Chunk, is_over: impl Fn() -> bool) {
        let mut waiting = self.waiting.lock();
        while waiting.bytes > 0 && waiting.bytes + chunk.bytes.len() > self.bytes_max {
            if is_over() {
                return;
            }
            self.changed.wait_for(&mut waiting, POLL);
        }
        waiting.bytes += chunk.bytes.len();
        waiting.chunks.push_back(chunk);
        self.changed.notify_all();
    }

    /// Takes the next chunk; `None` once there are no more, or `is_over`.
    pub fn take(&self, is_over: impl Fn() -> bool) -> Option<Chunk> {
        let mut waiting = self.waiting.lock();
        while !is_over() {
            if let Some(chunk) = waiting.chunks.pop_front() {
                return Some(chunk);
            }
            if waiting.is_closed {
                return None;
            }
            self.changed.wait_for(&mut waiting, POLL);
        }
        None
    }

    /// Takes the next chunk if one is there; does not wait.
    pub fn take_at_hand(&self) -> Option<Chunk> {
        self.waiting.lock().chunks.pop_front()
    }

    /// Gives back the room of a chunk whose text is no longer needed.
    pub fn release(&self, bytes: usize) {
        self.waiting.lock().bytes -= bytes;
        self.changed.notify_all();
    }

    /// Says that no more chunks will come.
    pub fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.changed.notify_all();
    }
}
