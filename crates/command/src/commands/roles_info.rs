//! `rolesInfo`: roles, what they inherit, and what they allow.
//! Source: MongoDB manual 8.2, "rolesInfo".

use super::create_role::privilege_documents;
use super::users_info::{ShownNames, privileges_of, restrictions_of};
use crate::access_control::{BuiltinShown, roles_of_database};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Name;
use bunko_authority::privileges::users;
use bunko_authority::{Role, all_inherited, documents_of, find_role};
use bunko_bson::number::Number;
use bunko_bson::{DocumentBuf, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::facts::{CommandFacts, Secrets};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "rolesInfo",
        fields: &[
            field("showAuthenticationRestrictions", Kind::BooleanLike),
            field("showBuiltinRoles", Kind::BooleanLike),
            field("showPrivileges", Kind::Own),
        ],
        secrets: Secrets::Named,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::roles_info),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let database = invocation.request.database;
    let asked = ShownNames::parse(invocation, invocation.argument(), "role", database)?;
    let form = Form::parse(invocation, &asked)?;
    let (with_restrictions, builtin) = parse(invocation)?;
    let roles = match &asked {
        ShownNames::Names(names) if form == Form::UserFragment => {
            reply.append("userFragment", &user_fragment(invocation, names, with_restrictions)?);
            return Ok(());
        }
        ShownNames::Names(names) => {
            let found = names.iter().map(|name| find_role(&invocation.service.catalog, name));
            found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()
        }
        ShownNames::Database(_) | ShownNames::Everywhere => roles_of_database(invocation, database, builtin)?,
    };
    reply.begin_array("roles");
    for (index, role) in roles.iter().enumerate() {
        reply.push(index, &describe(invocation, role, form, with_restrictions)?);
    }
    reply.end();
    Ok(())
}

/// Whether authentication restrictions are shown, and whether built-in roles are.
fn parse(fields: &Fields<'_>) -> Result<(bool, BuiltinShown)> {
    let builtin = if fields.boolean("showBuiltinRoles", false)? { BuiltinShown::Yes } else { BuiltinShown::No };
    Ok((fields.boolean("showAuthenticationRestrictions", false)?, builtin))
}

/// The forms of the reply that `showPrivileges` selects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Roles,
    RolesWithPrivileges,
    /// One document with all rights that a user with the named roles would have.
    UserFragment,
}

impl Form {
    /// Reads `showPrivileges`.
    /// # Errors
    /// `BadValue` for a type other than boolean or number; `IllegalOperation` for a user fragment without named roles.
    fn parse(fields: &Fields<'_>, asked: &ShownNames) -> Result<Self> {
        const FIELD: &str = "showPrivileges";
        const FRAGMENT: &str = "asUserFragment";
        match fields.field(FIELD) {
            Some(ValueRef::String(FRAGMENT)) if !matches!(asked, ShownNames::Names(_)) => {
                let message = "Cannot get user fragment for all roles in a database";
                Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message))
            }
            Some(ValueRef::String(FRAGMENT)) => Ok(Self::UserFragment),
            Some(value) if !matches!(value, ValueRef::Boolean(_)) && Number::of(value).is_none() => {
                Err(Failure::bad_value(format!(
                    "'{FIELD}' should either be a boolean or the string '{FRAGMENT}', but got {}",
                    value.kind().alias()
                )))
            }
            _ if fields.boolean(FIELD, false)? => Ok(Self::RolesWithPrivileges),
            _ => Ok(Self::Roles),
        }
    }
}

/// The rights of a user who has these roles.
fn user_fragment(invocation: &Invocation<'_>, names: &[Name], with_restrictions: bool) -> Result<DocumentBuf> {
    let inherited = all_inherited(&invocation.service.catalog, names)?;
    // Named roles count as inherited even if they do not exist.
    let mut all: Vec<Name> = inherited.iter().map(|role| role.name.clone()).collect();
    for name in names {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    let mut fragment = DocumentBuf::new()
        .with("roles", &documents_of(names))
        .with("inheritedRoles", &documents_of(&all))
        .with("inheritedPrivileges", &privilege_documents(&privileges_of(&inherited)));
    if with_restrictions {
        fragment.append("inheritedAuthenticationRestrictions", &restrictions_of(&inherited));
    }
    Ok(fragment)
}

fn describe(invocation: &Invocation<'_>, role: &Role, form: Form, with_restrictions: bool) -> Result<DocumentBuf> {
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
    let all = || std::iter::once(role).chain(&inherited);
    if form == Form::RolesWithPrivileges {
        described
            .append("privileges", &privilege_documents(&role.privileges))
            .append("inheritedPrivileges", &privilege_documents(&privileges_of(all())));
    }
    if with_restrictions {
        described
            .append("authenticationRestrictions", &restrictions_of([role]))
            .append("inheritedAuthenticationRestrictions", &restrictions_of(all()));
    }
    Ok(described)
}
