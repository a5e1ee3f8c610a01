//! `rolesInfo`: the roles; none, as nothing is forbidden to anybody.

use super::users_info::check_names;
use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "rolesInfo",
    aliases: &[],
    fields: &["showAuthenticationRestrictions", "showBuiltinRoles", "showPrivileges"],
    databases: Databases::Any,
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    check_names(invocation, invocation.argument(), "role")?;
    for option in ["showAuthenticationRestrictions", "showBuiltinRoles", "showPrivileges"] {
        invocation.boolean(option, false)?;
    }
    reply.begin_array("roles").end();
    Ok(())
}
