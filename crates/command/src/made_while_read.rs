//! Collections that are made while they are read: the oplog, of the log, and those of `config` that tell of sessions. Nothing is
//! stored for them, so that few commands can do anything with them.

use crate::dispatch::Command;
use crate::invocation::Invocation;
use crate::{oplog_view, session_collections};
use bunko_catalog::Namespace;
use bunko_errors::Result;

/// Refuses what cannot be done with the collection of that name, where it is one of them. `reader` is the command that would
/// read it: the one that runs, or the one that `explain` has inside.
/// # Errors
/// `CommandNotSupported`.
pub(crate) fn check(invocation: &Invocation<'_>, namespace: &Namespace, reader: &Command) -> Result<()> {
    let catalog = &invocation.service.catalog;
    // Nothing plans how the oplog is read: whatever `explain` has inside, it has nothing to say of it.
    oplog_view::check(invocation, namespace)?;
    session_collections::check(catalog, namespace, reader.name)
}
