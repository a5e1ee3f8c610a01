//! `connectionStatus`: the user that the connection is logged in as.

use super::create_role::privilege_documents;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_authority::documents_of;
use bunko_bson::{BinarySubtype, ValueRef, Writer};
use bunko_errors::Failure;
use bunko_request::facts::{CommandFacts, TransactionUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "connectionStatus",
        fields: &[field("showPrivileges", Kind::BooleanLike)],
        transaction: TransactionUse::NotFirst,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::BeforeLogin,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let with_privileges = parse(invocation)?;
    let user = invocation.connection.user();
    reply.begin_document("authInfo");
    reply.begin_array("authenticatedUsers");
    if let Some(user) = user {
        reply.push(0, &user.name.to_document("user"));
    }
    reply.end();
    reply.append("authenticatedUserRoles", &documents_of(user.map_or(&[], |user| &user.roles)));
    if with_privileges {
        let privileges = privilege_documents(user.map_or(&[], |user| &user.privileges));
        reply.append("authenticatedUserPrivileges", &privileges);
    }
    let uuid = invocation.connection.uuid(&*invocation.service.world.random);
    reply.end().append("uuid", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &uuid });
    Ok(())
}

/// Whether the privileges are shown.
fn parse(fields: &Fields<'_>) -> Result<bool, Failure> {
    fields.boolean("showPrivileges", false)
}
