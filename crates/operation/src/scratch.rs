//! Files for data that do not fit into a stage's memory.

use std::fmt;
use std::io;

/// Where scratch files are made.
pub trait ScratchSpace: Send + Sync + fmt::Debug {
    /// Makes an empty file. The system removes it when it is dropped, and with the process at the latest.
    /// # Errors
    /// `StorageFull` if too little room is left; the system's errors.
    fn create(&self) -> io::Result<Box<dyn ScratchFile>>;
}

/// A file that only its owner sees.
pub trait ScratchFile: Send + Sync {
    /// Appends bytes.
    /// # Errors
    /// `StorageFull` if too little room is left; the system's errors.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Reads from an offset on until `bytes` is full.
    /// # Errors
    /// `UnexpectedEof` after the end; the system's errors.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// Whether an operation may use scratch files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskUse {
    /// Data that do not fit into memory go there.
    Allowed,
    /// Stages fail if their data do not fit into memory.
    Refused,
}
