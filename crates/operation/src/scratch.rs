//! Room on disk for what does not fit into a stage's memory.

use std::fmt;
use std::io;

/// Where scratch files are made.
pub trait ScratchSpace: Send + Sync + fmt::Debug {
    /// Makes an empty file, which goes when it is dropped, and with the process at the latest.
    /// # Errors
    /// `StorageFull` where too little room is left; what the system says.
    fn create(&self) -> io::Result<Box<dyn ScratchFile>>;
}

/// A file that only its owner sees.
pub trait ScratchFile: Send + Sync {
    /// Puts bytes behind those that are there.
    /// # Errors
    /// `StorageFull` where too little room is left; what the system says.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Reads from an offset on until `bytes` is full.
    /// # Errors
    /// `UnexpectedEof` behind the end; what the system says.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// Whether an operation may use scratch files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskUse {
    /// What does not fit into memory goes there.
    Allowed,
    /// What does not fit into memory fails.
    Refused,
}
