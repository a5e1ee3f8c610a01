//! Blocks of user writes. Every function of the catalog that changes documents, collections or indexes calls a check
//! here first.
//! Source: MongoDB manual 8.2, `setUserWriteBlockMode`.

use crate::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;

/// Databases in which the server and its tools keep their own data. They can always be written.
const INTERNAL_DATABASES: [&str; 3] = ["admin", "config", "local"];

/// Refuses a change of `namespace` if the writes of the operation's user are blocked.
/// # Errors
/// `UserWritesBlocked`.
pub(crate) fn check(namespace: &Namespace, operation: &dyn OperationSource) -> Result<()> {
    if namespace.collection() == Namespace::PROFILE_COLLECTION {
        Ok(())
    } else {
        check_database(namespace.database(), operation)
    }
}

/// As [`check`], for one collection. Its name is looked up only if the operation's writes are blocked.
/// # Errors
/// `UserWritesBlocked`.
#[inline]
pub(crate) fn check_collection(collection: &Collection, operation: &dyn OperationSource) -> Result<()> {
    if operation.is_kept_from_writing() { check(&collection.namespace(), operation) } else { Ok(()) }
}

/// As [`check`], for a whole database.
/// # Errors
/// `UserWritesBlocked`.
pub(crate) fn check_database(database: &str, operation: &dyn OperationSource) -> Result<()> {
    if !operation.is_kept_from_writing() || INTERNAL_DATABASES.contains(&database) {
        return Ok(());
    }
    Err(Failure::new(ErrorCode::USER_WRITES_BLOCKED, "User writes blocked"))
}
