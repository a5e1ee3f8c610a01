//! `rolesInfo`: roles, what they inherit, and what they allow.
//! Source: MongoDB manual 8.2, "rolesInfo".

use super::create_role::privilege_documents;
use super::users_info::{Asked, append_restrictions};
use crate::access_control::{BuiltinShown, Role, all_inherited, documents_of, find_role, roles_of_database};
use crate::authorization::{Privileges, users};
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_access::{Privilege, add};
use bunko_bson::number::Number;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const COMMAND: Command = Command {
    name: "rolesInfo",
    aliases: &[],
    fields: &["showAuthenticationRestrictions", "showBuiltinRoles", "showPrivileges"],
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::By(users::roles_info),
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let database = invocation.request.database;
    let asked = Asked::parse(invocation, invocation.argument(), "role", database)?;
    let with_privileges = shows_privileges(invocation, &asked)?;
    let with_restrictions = invocation.boolean("showAuthenticationRestrictions", false)?;
    let builtin = if invocation.boolean("showBuiltinRoles", false)? { BuiltinShown::Yes } else { BuiltinShown::No };
    let roles = match &asked {
        Asked::Names(names) => {
            let found = names.iter().map(|name| find_role(&invocation.service.catalog, name));
            found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()
        }
        Asked::Database(_) | Asked::Everywhere => roles_of_database(invocation, database, builtin)?,
    };
    reply.begin_array("roles");
    for (index, role) in roles.iter().enumerate() {
        let mut described = describe(invocation, role, with_privileges)?;
        if with_restrictions {
            append_restrictions(&mut described, role.document.as_ref().map_or(DocumentRef::EMPTY, DocumentBuf::as_ref));
        }
        reply.push(index, &described);
    }
    reply.end();
    Ok(())
}

/// Whether `showPrivileges` asks for them.
/// # Errors
/// `BadValue` for another type than a boolean or a number; `IllegalOperation` or `CommandNotSupported` for the fragment
/// of a user.
fn shows_privileges(invocation: &Invocation<'_>, asked: &Asked) -> Result<bool> {
    const FRAGMENT: &str = "asUserFragment";
    match invocation.field("showPrivileges") {
        Some(ValueRef::String(FRAGMENT)) if !matches!(asked, Asked::Names(_)) => {
            let message = "Cannot get user fragment for all roles in a database";
            Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message))
        }
        Some(ValueRef::String(FRAGMENT)) => {
            Err(Failure::not_supported_yet(&format!("'rolesInfo.showPrivileges: {FRAGMENT}'")))
        }
        None | Some(ValueRef::Boolean(_)) => invocation.boolean("showPrivileges", false),
        Some(value) if Number::of(value).is_some() => invocation.boolean("showPrivileges", false),
        Some(value) => Err(Failure::bad_value(format!(
            "'showPrivileges' should either be a boolean or the string '{FRAGMENT}', but got {}",
            value.kind().alias()
        ))),
    }
}

fn describe(invocation: &Invocation<'_>, role: &Role, with_privileges: bool) -> Result<DocumentBuf> {
    let mut described = DocumentBuf::new();
    if role.document.is_some() {
        described.append("_id", &role.name.id());
    }
    let inherited = all_inherited(&invocation.service.catalog, &role.roles)?;
    let names: Vec<_> = inherited.iter().map(|role| role.name.clone()).collect();
    described
        .append("role", &role.name.name)
        .append("db", &role.name.database)
        .append("roles", &documents_of(&role.roles))
        .append("inheritedRoles", &documents_of(&names))
        .append("isBuiltin", role.document.is_none());
    if with_privileges {
        let mut all: Vec<Privilege> = Vec::new();
        for privilege in role.privileges.iter().chain(inherited.iter().flat_map(|role| &role.privileges)) {
            add(&mut all, privilege.clone());
        }
        described
            .append("privileges", &privilege_documents(&role.privileges))
            .append("inheritedPrivileges", &privilege_documents(&all));
    }
    Ok(described)
}
