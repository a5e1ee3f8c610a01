//! Errors of the storage layer, which knows no server codes.

use bunko_replica::Position;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A failure of the storage layer, with the facts that an operator needs.
#[derive(Debug)]
pub enum StorageError {
    /// The operating system returned an error.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Bytes on disk differ from the bytes that were written.
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Where in the file the bad bytes begin.
        offset_bytes: u64,
        /// Description of the damage.
        found: String,
    },
    /// No room for the log, or for the next checkpoint. No part of the refused write was kept.
    OutOfDiskSpace {
        /// The directory whose disk is full.
        path: PathBuf,
    },
    /// The next checkpoint of an engine that maps its file might not fit into the map. No part of the refused write was
    /// kept.
    MapFull {
        /// The file.
        path: PathBuf,
        /// Maximum size of the map.
        map_bytes: u64,
    },
    /// Another process has the data directory open.
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The directory was written by another version of the program.
    OtherFormat {
        /// The manifest.
        path: PathBuf,
        /// The version that it names.
        found: u32,
        /// The version that this program reads.
        supported: u32,
    },
    /// The directory holds data of `MongoDB`.
    ForeignDirectory {
        /// The directory.
        path: PathBuf,
        /// Names of files that show it, or the first of them.
        found: Vec<String>,
    },
    /// The directory that the data directory would be made in is missing.
    MissingParent {
        /// The data directory.
        path: PathBuf,
    },
    /// The data directory was made with another storage engine.
    OtherEngine {
        /// The data directory.
        path: PathBuf,
        /// The engine that it was made with.
        found: String,
        /// The engine that was asked for.
        asked: String,
    },
    /// A keyspace names an engine that this program does not have.
    UnknownEngine {
        /// The engine's name.
        name: String,
    },
    /// The engine keeps no log, which a member of a set of several needs.
    VolatileEngine {
        /// The engine's name.
        name: String,
    },
    /// An engine that keeps its data in memory has reached its limit. No part of the refused write was kept.
    OutOfMemory {
        /// Bytes that the engine holds.
        used_bytes: u64,
        /// Maximum number of bytes that the engine may hold.
        limit_bytes: u64,
    },
    /// A record is larger than a segment.
    RecordTooLarge {
        /// The record's length in bytes.
        length_bytes: u64,
    },
    /// Bytes of another member's log do not continue this log. None of them was kept.
    ForeignRecord {
        /// The log position at which they were refused.
        position: u64,
        /// Description of what is wrong.
        found: String,
    },
    /// Records that engines have applied cannot be removed from the log.
    AppliedAbove {
        /// The position to which the log should be truncated.
        position: u64,
        /// The position below which everything is applied.
        applied: u64,
    },
    /// Committed records cannot be removed from the log.
    CommittedAbove {
        /// The position to which the log should be truncated.
        position: u64,
        /// The commit point.
        committed: u64,
    },
    /// Records cannot be taken back, because a checkpoint has them: all data must be copied from another member.
    NeedsInitialSync {
        /// The position to which the log should be truncated.
        position: u64,
        /// The end of the checkpoint.
        checkpoint: u64,
    },
    /// A part of the log is being taken back, and the data directory must be opened again.
    RolledBack,
    /// This log does not have the position at which another member's log should be continued or cut.
    Diverged {
        /// The position.
        asked: Position,
        /// The position at which this log ends.
        found: Position,
    },
    /// The part of the log to be read back has been given up.
    HistoryLost,
    /// The store has an image, which another reader uses.
    ImageInUse {
        /// The reader.
        owner: String,
    },
    /// There is no image with that id any more, or it is not complete.
    ImageGone {
        /// The id.
        id: String,
    },
    /// A file of an image is not as it was sent. It is asked for again.
    ImageDamaged {
        /// The file.
        name: String,
        /// Where in the file the bad bytes begin.
        offset_bytes: u64,
    },
    /// The log failed earlier; no write is acknowledged any more.
    LogFailed,
    /// The store belongs to a set's member that is not its primary. No part of the refused write was kept.
    NotPrimary,
    /// The store takes no records of other members, because it is not a secondary's.
    NotSecondary,
    /// The log has records that are not applied yet, so the store cannot become a primary's.
    Unapplied,
    /// The store is about to close, and the write would have had to wait. No part of it was kept.
    Closing,
    /// A background thread panicked. The state that it was changing may be half changed.
    Panicked {
        /// The panic's message.
        message: String,
    },
}

impl StorageError {
    /// Wraps an I/O error with its path; a full disk becomes [`StorageError::OutOfDiskSpace`].
    pub fn io(path: &Path, source: io::Error) -> Self {
        if is_full(&source) {
            return Self::OutOfDiskSpace { path: path.to_owned() };
        }
        Self::Io { path: path.to_owned(), source }
    }
}

/// Whether the disk has no room, or its user has used up the quota.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl StorageError {
    /// Writes an error of the choice of an engine.
    fn fmt_engine(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherEngine { path, found, asked } => write!(
                f,
                "{}: made with storage engine '{found}', and asked for is '{asked}'; start with '{found}', or with an \
                 empty directory and restore a dump into it",
                path.display()
            ),
            Self::VolatileEngine { name } => write!(
                f,
                "the storage engine '{name}' keeps no log, so its server cannot be a member of a replica set of several"
            ),
            Self::UnknownEngine { name } => write!(f, "there is no storage engine '{name}'"),
            _ => unreachable!("the caller has all errors of that choice"),
        }
    }

    /// Writes an error that comes from the log of another member.
    fn fmt_other_log(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForeignRecord { position, found } => {
                write!(f, "bytes of another member's log were refused at log position {position}: {found}")
            }
            Self::AppliedAbove { position, applied } => {
                write!(f, "the log cannot be truncated to {position}: everything below {applied} is applied")
            }
            Self::CommittedAbove { position, committed } => {
                write!(f, "the log cannot be truncated to {position}: everything below {committed} is committed")
            }
            Self::NeedsInitialSync { position, checkpoint } => write!(
                f,
                "the log cannot be truncated to {position}: a checkpoint has all below {checkpoint}, so this member needs \
                 an initial sync"
            ),
            Self::Diverged { asked, found } => write!(
                f,
                "this log, which ends at position {} in term {}, has no position {} in term {}",
                found.end, found.term, asked.end, asked.term
            ),
            _ => unreachable!("the caller has all errors of other logs"),
        }
    }

    fn fmt_other_format(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::OtherFormat { path, found, supported } = self else { unreachable!("the caller has this error") };
        let advice = if found > supported {
            "a later version of Bunko wrote it: start that version"
        } else {
            "an earlier version of Bunko wrote it: take a dump with that version, and restore it into an empty directory"
        };
        let path = path.display();
        write!(f, "{path}: data directory has format version {found}, this program reads {supported}; {advice}")
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Corrupt { file, offset_bytes, found } => {
                write!(f, "{}: corrupt at offset {offset_bytes}: {found}", file.display())
            }
            Self::OutOfDiskSpace { path } => write!(
                f,
                "{}: no space left on the disk; deletes, drops and compact still work, and make room",
                path.display()
            ),
            Self::MapFull { path, map_bytes } => {
                write!(
                    f,
                    "{}: no space left in the map of {map_bytes} bytes; delete what is not needed",
                    path.display()
                )
            }
            Self::Locked { path } => write!(f, "{}: another process has this data directory open", path.display()),
            Self::OtherFormat { .. } => self.fmt_other_format(f),
            Self::ForeignDirectory { path, found } => write!(
                f,
                "{}: a data directory of MongoDB ({}), whose files this program cannot read; take a dump with mongodump \
                 while mongod runs on it, start with an empty directory, and restore the dump into that",
                path.display(),
                found.join(", ")
            ),
            Self::MissingParent { path } => write!(
                f,
                "data directory {} not found, and the directory above it is missing too: create that, or name another \
                 data directory",
                path.display()
            ),
            Self::OtherEngine { .. } | Self::VolatileEngine { .. } | Self::UnknownEngine { .. } => self.fmt_engine(f),
            Self::OutOfMemory { used_bytes, limit_bytes } => write!(
                f,
                "the storage engine 'memory' is full: it holds {used_bytes} bytes of at most {limit_bytes} \
                 (inMemorySizeGB)"
            ),
            Self::RecordTooLarge { length_bytes } => {
                write!(f, "a write of {length_bytes} bytes does not fit into one log segment")
            }
            Self::ForeignRecord { .. }
            | Self::Diverged { .. }
            | Self::AppliedAbove { .. }
            | Self::CommittedAbove { .. }
            | Self::NeedsInitialSync { .. } => self.fmt_other_log(f),
            Self::RolledBack => f.write_str("a rollback has begun; the server must be restarted"),
            Self::HistoryLost => {
                write!(f, "the log was given up before it was read back; keep more of it (oplogSizeMB)")
            }
            Self::ImageInUse { owner } => write!(f, "an image of the data is being read by {owner}; try again later"),
            Self::ImageGone { id } => write!(f, "there is no image '{id}' of the data any more; begin another one"),
            Self::ImageDamaged { name, offset_bytes } => {
                write!(f, "{name}: bytes of an image fail their checksum at offset {offset_bytes}")
            }
            Self::Panicked { message } => write!(f, "a panic, which is a bug of this program: {message}"),
            Self::NotPrimary => f.write_str("not primary"),
            Self::NotSecondary => f.write_str("not secondary"),
            Self::Unapplied => f.write_str("the log has records that are not applied yet"),
            Self::Closing => f.write_str("the server is shutting down"),
            Self::LogFailed => write!(f, "the log failed earlier; the server must be restarted"),
        }
    }
}

impl std::error::Error for StorageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Self::Io { source, .. } = self { Some(source) } else { None }
    }
}
