//! What was done to the files of a watched directory.

use std::ffi::OsString;

/// A file or directory, whatever its names. The watched directory itself is 0.
pub type FileId = u64;

/// A call that changed something, or made it durable. Calls that failed are not among them.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Event {
    Create {
        directory: FileId,
        name: OsString,
        file: FileId,
        is_directory: bool,
    },
    /// Durable at once where the file was opened so (`O_DSYNC`).
    Write {
        file: FileId,
        offset: u64,
        bytes: Vec<u8>,
        is_synced: bool,
    },
    /// The file is that long now, in bytes.
    Resize {
        file: FileId,
        length: u64,
    },
    /// The file is that long at least, in bytes.
    Allocate {
        file: FileId,
        end: u64,
    },
    Punch {
        file: FileId,
        offset: u64,
        length: u64,
    },
    /// All that was done to the file before is durable; of a directory, its entries.
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
    /// What the test said at that time.
    Note(u64),
}
