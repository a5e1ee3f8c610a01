//! Backups of a server's files and of its log, and restores to a moment.
//!
//! ```text
//! server ──image of a checkpoint──► files/ID/...   ┐
//!        ──its list───────────────► backups/ID.json├─► restore: the image, and the log after it up to a time
//!        ──log after the image────► archive/ID/...  ┘
//! ```
//! A target is a place with named objects (`objects`): files of a directory or objects of a bucket, encrypted or not.
//! An image is the engines' files of one checkpoint and the log's segments up to a place (`image` of `store`). The server's
//! part is the command `bunkoBackup`. `docs/reference/backup-directory.md` describes the files of a target.
//!
//! **Invariant:** a manifest names only files that are whole and durable, and is itself made by a rename.
//! **Invariant:** a receipt covers only records that are durable in the archive.
//! **Invariant:** a file that a manifest names is never changed, and removed only after the manifest.
//! **Invariant:** a start refuses a directory in which a restore has not ended.
#![forbid(unsafe_code)]

mod archive;
mod begin_backup;
mod copy;
mod follow;
mod keys;
mod list;
mod manifest;
mod moment;
mod objects;
mod pieces;
mod place;
mod receipts;
mod restore;
mod retention;
mod seal;
mod source;
mod stored_file;
mod target;
mod verify;

pub use begin_backup::{BackupOptions, back_up};
pub use follow::{FollowOptions, follow};
pub use list::{Listed, list};
pub use moment::{format_ms, parse_ms};
pub use place::{Place, Surroundings};
pub use restore::{RestoreOptions, Restored, restore};
pub use retention::Keep;
pub use target::rekey;
pub use verify::verify;

use bunko_store::StorageError;
use bunko_tools::ToolError;

/// Result of a backup's work.
pub type Result<T, E = ToolError> = std::result::Result<T, E>;

/// Sentences for the user while the work goes on.
pub type Tell<'a> = &'a dyn Fn(&str);

fn of_storage(error: StorageError) -> ToolError {
    match error {
        StorageError::Io { path, source } => ToolError::File { path, cause: source },
        StorageError::Corrupt { file, offset_bytes, found } => ToolError::Damaged { path: file, offset_bytes, found },
        StorageError::OutOfDiskSpace { path } => {
            ToolError::Failed(format!("{}: no space left on the disk", path.display()))
        }
        error => ToolError::Failed(error.to_string()),
    }
}
