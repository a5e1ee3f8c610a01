//! `connectionStatus`: who the connection is logged in as; nobody, as there are no users.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::{BinarySubtype, ValueRef, Writer};

pub(super) const COMMAND: Command =
    Command { name: "connectionStatus", aliases: &[], fields: &["showPrivileges"], databases: Databases::Any, run };

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let with_privileges = invocation.boolean("showPrivileges", false)?;
    reply.begin_document("authInfo");
    reply.begin_array("authenticatedUsers").end();
    reply.begin_array("authenticatedUserRoles").end();
    if with_privileges {
        reply.begin_array("authenticatedUserPrivileges").end();
    }
    let uuid = invocation.connection.uuid(&*invocation.service.world.random);
    reply.end().append("uuid", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &uuid });
    Ok(())
}
