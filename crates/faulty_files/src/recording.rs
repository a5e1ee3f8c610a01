//! The recorded changes to the files of a watched directory.

use std::ffi::OsString;

/// A file or directory, independent of its names. The watched directory itself is 0.
pub type FileId = u64;

/// A call that changed a file or directory, or made a change durable. Failed calls are not recorded.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Event {
    Create {
        directory: FileId,
        name: OsString,
        file: FileId,
        is_directory: bool,
    },
    /// Durable at once if the file was opened with `O_DSYNC` (`is_synced`).
    Write {
        file: FileId,
        offset: u64,
        bytes: Vec<u8>,
        is_synced: bool,
    },
    /// The file has this length now, in bytes.
    Resize {
        file: FileId,
        length: u64,
    },
    /// The file has at least this length now, in bytes.
    Allocate {
        file: FileId,
        end: u64,
    },
    Punch {
        file: FileId,
        offset: u64,
        length: u64,
    },
    /// All earlier changes to the file are durable; for a directory, to its entries.
    Sync {
        file: FileId,
    },
    Rename {
        from: (FileId, OsString),
        to: (FileId, OsString),
        file: FileId,
    },
    Link {
        directory: FileId,
        name: OsString,
        file: FileId,
    },
    Unlink {
        directory: FileId,
        name: OsString,
    },
    /// A mark that the test set.
    Note(u64),
}
