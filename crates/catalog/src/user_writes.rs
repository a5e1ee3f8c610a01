//! Writes of users may be blocked as a whole: every door to the catalog through which documents, collections or indexes
//! change asks here first.
//! Source: MongoDB manual 8.2, `setUserWriteBlockMode`.

use crate::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;

/// What the server and its tools keep about themselves may always be written.
const INTERNAL_DATABASES: [&str; 3] = ["admin", "config", "local"];

/// Refuses a change of what `namespace` names where the writes of the operation's user are blocked.
/// # Errors
/// `UserWritesBlocked`.
pub(crate) fn check(namespace: &Namespace, operation: &dyn OperationSource) -> Result<()> {
    if namespace.collection() == Namespace::PROFILE_COLLECTION {
        Ok(())
    } else {
        check_database(namespace.database(), operation)
    }
}

/// The same of a collection, whose name is not looked up where nobody's writes are blocked.
/// # Errors
/// `UserWritesBlocked`.
#[inline]
pub(crate) fn check_collection(collection: &Collection, operation: &dyn OperationSource) -> Result<()> {
    if operation.operation().is_kept_from_writing() { check(&collection.namespace(), operation) } else { Ok(()) }
}

/// The same for all of a database.
/// # Errors
/// `UserWritesBlocked`.
pub(crate) fn check_database(database: &str, operation: &dyn OperationSource) -> Result<()> {
    if !operation.operation().is_kept_from_writing() || INTERNAL_DATABASES.contains(&database) {
        return Ok(());
    }
    Err(Failure::new(ErrorCode::USER_WRITES_BLOCKED, "User writes blocked"))
}
