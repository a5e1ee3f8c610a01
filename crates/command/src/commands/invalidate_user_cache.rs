//! `invalidateUserCache`: every connection reads anew what its user may do.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command =
    Command { name: "invalidateUserCache", aliases: &[], fields: &[], databases: Databases::Any, run };

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    invocation.service.access.note_change();
    Ok(())
}
