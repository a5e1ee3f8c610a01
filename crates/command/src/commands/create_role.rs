//! `createRole` and `updateRole`: roles of a database beside the built-in ones.
//! Source: MongoDB manual 8.2, "createRole", "updateRole".

use crate::access_control::{begin_change, with_field};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::{BUILTIN_ROLES, Name, Privilege};
use bunko_authority::audit::{Account, AuditEvent};
use bunko_authority::privileges::users;
use bunko_authority::{
    DATABASE, ROLES, check_grantable, check_privileges_grantable, documents_of, find_role, name_of_argument,
    name_to_create, privileges, restrictions, role_names,
};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::facts::{Changes, CommandFacts, WriteConcernUse};
use bunko_request::field_kinds::{Field, Kind, field};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "createRole",
        fields: FIELDS,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::create_role),
    audit: AuditEvent::Account(Account { shows: &["privileges"], ..Account::ROLE }),
    run: create,
};
pub(super) const UPDATE: Command = Command {
    facts: CommandFacts {
        name: "updateRole",
        fields: FIELDS,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::update_role),
    audit: AuditEvent::Account(Account { shows: &["privileges"], ..Account::ROLE }),
    run: update,
};

const FIELDS: &[Field] =
    &[field("privileges", Kind::Array), field("roles", Kind::Array), field("authenticationRestrictions", Kind::Array)];
/// MongoDB's code for a role name that is taken.
const ROLE_EXISTS: ErrorCode = ErrorCode(51002);

struct RoleFields<'a> {
    privileges: Option<Vec<Privilege>>,
    roles: Option<Vec<Name>>,
    restrictions: Option<ArrayRef<'a>>,
}

impl<'a> RoleFields<'a> {
    fn parse(invocation: &Invocation<'a>) -> Result<Self> {
        Ok(Self {
            privileges: privileges(invocation)?,
            roles: role_names(invocation, "roles", invocation.request.database)?,
            restrictions: restrictions(invocation)?,
        })
    }

    fn check(&self, invocation: &Invocation<'_>, name: &Name) -> Result<()> {
        check_privileges_grantable(self.privileges.as_deref().unwrap_or_default(), name)?;
        let roles = self.roles.as_deref().unwrap_or_default();
        check_grantable(&invocation.service.catalog, roles, Some(name))
    }
}

fn create(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let name = name_to_create(invocation, "Role", invocation.request.database)?;
    check_name(&name)?;
    let fields = RoleFields::parse(invocation)?;
    let (Some(privileges), Some(roles)) = (&fields.privileges, &fields.roles) else {
        let missing = if fields.privileges.is_none() { "privileges" } else { "roles" };
        return Err(Failure::missing_field(format_args!("createRole.{missing}")).into());
    };
    let _only_one = begin_change(invocation)?;
    if find_role(&invocation.service.catalog, &name)?.is_some() {
        return Err(Failure::new(ROLE_EXISTS, format!("Role \"{name}\" already exists")).into());
    }
    fields.check(invocation, &name)?;
    let mut document = DocumentBuf::new()
        .with("_id", &name.id())
        .with("role", &name.name)
        .with("db", &name.database)
        .with("privileges", &privilege_documents(privileges))
        .with("roles", &documents_of(roles));
    if let Some(restrictions) = fields.restrictions.filter(|restrictions| !restrictions.is_empty()) {
        document.append("authenticationRestrictions", restrictions);
    }
    stored_settings::keep(invocation, DATABASE, ROLES, &document)
}

fn check_name(name: &Name) -> Result<()> {
    let database = name.database.as_str();
    if matches!(database, "local" | "$external") {
        return Err(Failure::bad_value(format!("Cannot create roles in the {database} database")));
    }
    if BUILTIN_ROLES.iter().any(|role| role.name == name.name && role.is_in(database)) {
        return Err(Failure::bad_value("Cannot create roles with the same name as a built-in role"));
    }
    Ok(())
}

fn update(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let name = name_of_argument(invocation, invocation.request.database)?;
    let fields = RoleFields::parse(invocation)?;
    if fields.privileges.is_none() && fields.roles.is_none() && fields.restrictions.is_none() {
        return Err(Failure::bad_value("Must specify at least one field to update in updateRole").into());
    }
    let _only_one = begin_change(invocation)?;
    let mut document = own_document(invocation, &name)?;
    fields.check(invocation, &name)?;
    if let Some(privileges) = &fields.privileges {
        document = with_field(document.as_ref(), "privileges", Some((&privilege_documents(privileges)).into()));
    }
    if let Some(roles) = &fields.roles {
        document = with_field(document.as_ref(), "roles", Some((&documents_of(roles)).into()));
    }
    if let Some(restrictions) = fields.restrictions {
        let kept = Some(restrictions.into()).filter(|_| !restrictions.is_empty());
        document = with_field(document.as_ref(), "authenticationRestrictions", kept);
    }
    stored_settings::keep(invocation, DATABASE, ROLES, &document)
}

/// The document of a role, to be changed.
/// # Errors
/// `RoleNotFound`; `InvalidRoleModification` for a built-in role.
pub(super) fn own_document(invocation: &Invocation<'_>, name: &Name) -> Result<DocumentBuf> {
    let role = find_role(&invocation.service.catalog, name)?;
    let role = role.ok_or_else(|| Failure::new(ErrorCode::ROLE_NOT_FOUND, format!("Role '{name}' not found")))?;
    role.into_own_document()
}

/// Privileges as documents, as they are stored and shown.
pub(super) fn privilege_documents(privileges: &[Privilege]) -> ArrayBuf {
    privileges.iter().map(Privilege::to_document).collect::<Vec<_>>().iter().collect()
}
