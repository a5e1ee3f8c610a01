//! Changes of users and roles by commands, and the end of work whose user has lost rights.
//!
//! Users and roles are documents of `admin.system.users` and `admin.system.roles`, in MongoDB's format. A connection
//! caches the rights of its user, with the generation at which they were read. A change that may concern users or roles
//! begins a new generation, and the connection's next command reads the rights again.

mod documents;
mod revocation;

pub(crate) use documents::{
    BuiltinShown, documents_in, documents_where, insert_user, keep_document, roles_of_database, take_roles_away,
    users_where, with_field,
};
pub(crate) use revocation::end_revoked;

use crate::invocation::Invocation;
use bunko_session::Halt;
use parking_lot::MutexGuard;

/// Begins a command that changes users or roles; the guard keeps out other changes. The command runs on a thread of its
/// own: deriving keys takes milliseconds, and another change may hold the mutex.
/// # Errors
/// [`Halt::TooLong`] on a shared thread.
pub fn begin_change<'a>(invocation: &Invocation<'a>) -> Result<MutexGuard<'a, ()>, Halt> {
    invocation.refuse_if_long(true)?;
    let service = invocation.service;
    Ok(service.authority.access.begin_change())
}
