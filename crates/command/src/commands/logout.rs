//! `logout`: forgets who a connection is; nobody, as there are no users.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command =
    Command { name: "logout", aliases: &[], fields: &[], databases: Databases::Any, run };

fn run(_: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    Ok(())
}
