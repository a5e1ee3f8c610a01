//! The memory that an engine holds, and its credit: the server counts memory for the operation before the engine
//! takes it.
#![allow(unsafe_code)]

use crate::protocol;
use rquickjs::allocator::{Allocator, RustAllocator};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are counted for the operation before the first script; the engine with its prelude takes about a third of
/// them.
pub(crate) const FIRST_CREDIT: usize = 2 << 20;
/// Number of bytes by which more credit is asked for.
const PIECE_BYTES: usize = 1 << 20;
/// The engine's allocator rounds sizes up to this.
const GRAIN_BYTES: usize = 8;

/// The account of one engine. Only the engine's thread uses it; the counters are atomic because the engine asks for
/// `Sync`.
pub(crate) struct Account {
    server: Arc<UnixStream>,
    held: AtomicUsize,
    credit: AtomicUsize,
    /// The part of `held` that is the buffer of answers.
    answer: AtomicUsize,
}

impl Account {
    pub fn new(server: Arc<UnixStream>) -> Self {
        let credit = AtomicUsize::new(FIRST_CREDIT);
        Self { server, held: AtomicUsize::default(), credit, answer: AtomicUsize::default() }
    }

    /// Counts bytes before they are taken. Returns whether they may be taken.
    fn take(&self, bytes: usize) -> bool {
        let held = self.held.load(Ordering::Relaxed).saturating_add(bytes);
        let credit = self.credit.load(Ordering::Relaxed);
        if held > credit && !self.ask(held - credit) {
            return false;
        }
        self.held.store(held, Ordering::Relaxed);
        true
    }

    fn give_back(&self, bytes: usize) {
        let held = self.held.load(Ordering::Relaxed);
        self.held.store(held.saturating_sub(bytes), Ordering::Relaxed);
    }

    /// Counts the buffer of answers, which keeps its `bytes`.
    pub fn hold_answer(&self, bytes: usize) {
        let held = self.answer.load(Ordering::Relaxed);
        if bytes > held && self.take(bytes - held) {
            self.answer.store(bytes, Ordering::Relaxed);
        }
    }

    /// Asks the server for more credit. A server that refuses it ends this process instead of answering.
    #[cold]
    fn ask(&self, bytes: usize) -> bool {
        let bytes = bytes.next_multiple_of(PIECE_BYTES);
        let mut answer = [0; protocol::GRANTED.len()];
        let mut server = &*self.server;
        let asked = server.write_all(&protocol::more(bytes)).and_then(|()| server.read_exact(&mut answer));
        let is_granted = asked.is_ok() && answer == protocol::GRANTED;
        if is_granted {
            self.credit.fetch_add(bytes, Ordering::Relaxed);
        }
        is_granted
    }
}

/// The process's allocator for one engine.
pub(crate) struct Accounted(pub Arc<Account>);

impl Accounted {
    fn taken(&self, size: usize, take: impl FnOnce() -> *mut u8) -> *mut u8 {
        let size = size.next_multiple_of(GRAIN_BYTES);
        if !self.0.take(size) {
            return std::ptr::null_mut();
        }
        let taken = take();
        if taken.is_null() {
            self.0.give_back(size);
        }
        taken
    }
}

// SAFETY: all pieces are the inner allocator's, or none; sizes are passed on unchanged.
unsafe impl Allocator for Accounted {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        self.taken(size, || RustAllocator.alloc(size))
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        match count.checked_mul(size) {
            Some(bytes) => self.taken(bytes, || RustAllocator.calloc(count, size)),
            None => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        // SAFETY: the piece came from the inner allocator.
        unsafe {
            self.0.give_back(RustAllocator::usable_size(pointer));
            RustAllocator.dealloc(pointer);
        }
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, new_size: usize) -> *mut u8 {
        // SAFETY: the piece came from the inner allocator.
        let old_size = unsafe { RustAllocator::usable_size(pointer) };
        // SAFETY: as above.
        let moved = self.taken(new_size, || unsafe { RustAllocator.realloc(pointer, new_size) });
        if !moved.is_null() {
            self.0.give_back(old_size);
        }
        moved
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        // SAFETY: the piece came from the inner allocator.
        unsafe { RustAllocator::usable_size(pointer) }
    }
}
