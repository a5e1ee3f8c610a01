//! The only conversion of storage errors to failures that clients get.

use bunko_errors::{ErrorCode, Failure};
use bunko_store::StorageError;

/// The failure that a client gets for a storage error.
#[expect(clippy::needless_pass_by_value, reason = "stands in `map_err(from_storage)`, which hands the error over")]
pub fn from_storage(error: StorageError) -> Failure {
    let code = match &error {
        StorageError::OutOfDiskSpace { .. } | StorageError::MapFull { .. } => ErrorCode::OUT_OF_DISK_SPACE,
        StorageError::RecordTooLarge { .. } => ErrorCode::BSON_OBJECT_TOO_LARGE,
        StorageError::OutOfMemory { .. } => ErrorCode::EXCEEDED_MEMORY_LIMIT,
        StorageError::UnknownEngine { .. } | StorageError::VolatileEngine { .. } => ErrorCode::INVALID_OPTIONS,
        StorageError::HistoryLost => ErrorCode::CAPPED_POSITION_LOST,
        // The operation began while the member was primary: MongoDB interrupts it.
        StorageError::NotPrimary => ErrorCode::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
        StorageError::NotSecondary => ErrorCode::NOT_SECONDARY,
        StorageError::LogFailed | StorageError::RolledBack | StorageError::Closing => {
            ErrorCode::INTERRUPTED_AT_SHUTDOWN
        }
        StorageError::ImageInUse { .. } => ErrorCode::CONFLICTING_OPERATION_IN_PROGRESS,
        StorageError::ImageGone { .. } => ErrorCode::OPERATION_FAILED,
        StorageError::Io { .. }
        | StorageError::ImageDamaged { .. }
        | StorageError::Corrupt { .. }
        | StorageError::ForeignRecord { .. }
        | StorageError::AppliedAbove { .. }
        | StorageError::CommittedAbove { .. }
        | StorageError::NeedsInitialSync { .. }
        | StorageError::Diverged { .. }
        | StorageError::Unapplied
        | StorageError::Panicked { .. }
        | StorageError::Locked { .. }
        | StorageError::OtherFormat { .. }
        | StorageError::ForeignDirectory { .. }
        | StorageError::MissingParent { .. }
        | StorageError::OtherEngine { .. } => ErrorCode::INTERNAL_ERROR,
    };
    Failure::new(code, error.to_string())
}
