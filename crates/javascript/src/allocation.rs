//! The engine's memory: the process's allocator, which counts it for the operation, with a question now and then.
#![allow(unsafe_code)]

use bunko_operation::OperationContext;
use parking_lot::Mutex;
use rquickjs::allocator::{Allocator, RustAllocator};
use std::sync::Arc;

/// Bytes that may be taken between two questions.
const BYTES_PER_QUESTION: usize = 1024 * 1024;
/// Largest piece that an operation is still given which has to stop: enough to throw an exception.
const LAST_PIECE_BYTES_MAX: usize = 4096;

/// Why an engine has to stop, once it has.
#[derive(Default)]
pub(crate) struct Stop(Mutex<Option<bunko_errors::Failure>>);

impl Stop {
    /// Asks the operation; whether it has to stop.
    pub fn ask(&self, operation: &OperationContext) -> bool {
        let mut reason = self.0.lock();
        if reason.is_none() {
            *reason = operation.check().err();
        }
        reason.is_some()
    }

    /// The reason, if it has to stop.
    pub fn reason(&self) -> Option<bunko_errors::Failure> {
        self.0.lock().clone()
    }
}

/// The process's allocator for one engine.
pub(crate) struct Asking {
    pub operation: Arc<OperationContext>,
    pub stop: Arc<Stop>,
    until_question: usize,
}

impl Asking {
    pub fn new(operation: Arc<OperationContext>, stop: Arc<Stop>) -> Self {
        Self { operation, stop, until_question: BYTES_PER_QUESTION }
    }

    /// Whether that much more may be taken.
    fn may_take(&mut self, bytes: usize) -> bool {
        if let Some(left) = self.until_question.checked_sub(bytes) {
            self.until_question = left;
            return true;
        }
        self.until_question = BYTES_PER_QUESTION;
        let has_to_stop = self.stop.ask(&self.operation);
        if has_to_stop {
            // It is asked again for the next piece.
            self.until_question = 0;
        }
        !has_to_stop || bytes <= LAST_PIECE_BYTES_MAX
    }
}

// SAFETY: all pieces are the inner allocator's, or none; sizes are passed on unchanged.
unsafe impl Allocator for Asking {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if self.may_take(size) { RustAllocator.alloc(size) } else { std::ptr::null_mut() }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        match count.checked_mul(size) {
            Some(bytes) if self.may_take(bytes) => RustAllocator.calloc(count, size),
            _ => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        // SAFETY: the piece came from the inner allocator.
        unsafe { RustAllocator.dealloc(pointer) }
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, new_size: usize) -> *mut u8 {
        if !self.may_take(new_size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the piece came from the inner allocator.
        unsafe { RustAllocator.realloc(pointer, new_size) }
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        // SAFETY: the piece came from the inner allocator.
        unsafe { RustAllocator::usable_size(pointer) }
    }
}
