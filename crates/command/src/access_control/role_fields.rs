//! Fields that commands about users and roles have in common.

use super::roles::{all_inherited, find_role, reserved_role};
use crate::fields::Fields;
use bunko_access::{Name, Privilege, Restrictions, add};
use bunko_bson::{ArrayRef, ValueRef};
use bunko_catalog::Catalog;
use bunko_errors::{ErrorCode, Failure, Result};

/// Most roles or privileges that one command may name.
const NAMED_MAX: usize = 10_000;

/// The names of roles in a field, each once.
/// # Errors
/// `TypeMismatch`, `BadValue`.
pub(crate) fn role_names(fields: &Fields<'_>, field: &str, database: &str) -> Result<Option<Vec<Name>>> {
    let Some(array) = fields.array(field)? else { return Ok(None) };
    check_count(field, array)?;
    let mut names = Vec::new();
    for value in array.iter() {
        let name = Name::parse(value, "role", database).map_err(|error| invalid(fields, field, &error))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(Some(names))
}

/// The privileges in the field of that name, each resource once.
/// # Errors
/// `TypeMismatch`, `BadValue`.
pub(crate) fn privileges(fields: &Fields<'_>) -> Result<Option<Vec<Privilege>>> {
    let Some(array) = fields.array("privileges")? else { return Ok(None) };
    check_count("privileges", array)?;
    let mut privileges = Vec::new();
    for (index, value) in array.iter().enumerate() {
        let place = format!("privileges.{index}");
        let document = value.as_document().ok_or_else(|| fields.mismatch(&place, value, "type 'object'"))?;
        add(&mut privileges, Privilege::parse(document).map_err(|error| invalid(fields, &place, &error))?);
    }
    Ok(Some(privileges))
}

/// The field `authenticationRestrictions`.
/// # Errors
/// `TypeMismatch`, `BadValue`; `CommandNotSupported` for addresses of the server.
pub(crate) fn restrictions<'a>(fields: &Fields<'a>) -> Result<Option<ArrayRef<'a>>> {
    const FIELD: &str = "authenticationRestrictions";
    let Some(array) = fields.array(FIELD)? else { return Ok(None) };
    check_count(FIELD, array)?;
    let parsed = Restrictions::parse(array).map_err(|error| invalid(fields, FIELD, &error))?;
    if parsed.name_server() {
        return Err(Failure::not_supported_yet(&format!("'{FIELD}.serverAddress' of '{}'", fields.command)));
    }
    Ok(Some(array))
}

fn check_count(field: &str, array: ArrayRef<'_>) -> Result<()> {
    let count = array.iter().count();
    if count <= NAMED_MAX {
        return Ok(());
    }
    Err(Failure::bad_value(format!("'{field}' has {count} elements, and may have {NAMED_MAX}")))
}

fn invalid(fields: &Fields<'_>, field: &str, error: &str) -> Failure {
    Failure::bad_value(format!("BSON field '{}.{field}': {error}", fields.command))
}

/// Refuses roles that are not there, and with `to` such as that role may not inherit from.
/// # Errors
/// `RoleNotFound`, `InvalidRoleModification`.
pub(crate) fn check_grantable(catalog: &Catalog, roles: &[Name], to: Option<&Name>) -> Result<()> {
    for role in roles {
        if *role == reserved_role() {
            return Err(refused(format!("{role} is for the members of a cluster and cannot be granted")));
        }
        if find_role(catalog, role)?.is_none() {
            return Err(Failure::new(ErrorCode::ROLE_NOT_FOUND, format!("Could not find role: {role}")));
        }
    }
    let Some(to) = to else { return Ok(()) };
    if let Some(role) = roles.iter().find(|role| to.database != "admin" && role.database != to.database) {
        return Err(refused(format!(
            "Roles on the '{}' database cannot be granted roles from other databases, such as {role}",
            to.database
        )));
    }
    if all_inherited(catalog, roles)?.iter().any(|role| role.name == *to) || roles.contains(to) {
        let names: Vec<_> = roles.iter().map(ToString::to_string).collect();
        return Err(refused(format!(
            "Granting {} to {to} would introduce a cycle in the role graph",
            names.join(", ")
        )));
    }
    Ok(())
}

/// Refuses privileges that a role may not have.
/// # Errors
/// `InvalidRoleModification`.
pub(crate) fn check_privileges_grantable(privileges: &[Privilege], to: &Name) -> Result<()> {
    if to.database == "admin" || privileges.iter().all(|privilege| privilege.resource.is_within(&to.database)) {
        return Ok(());
    }
    Err(refused(format!(
        "Roles on the '{}' database cannot be granted privileges that target other databases or the cluster",
        to.database
    )))
}

fn refused(message: String) -> Failure {
    Failure::new(ErrorCode::INVALID_ROLE_MODIFICATION, message)
}

/// The name that a command's first value gives to a user or a role of its database.
/// # Errors
/// `TypeMismatch`, `BadValue`.
pub(crate) fn name_of_argument(fields: &Fields<'_>, kind: &str, database: &str) -> Result<Name> {
    let argument = fields.body.first().map_or(ValueRef::Null, |first| first.value);
    match argument {
        ValueRef::String("") => {
            Err(Failure::bad_value(format!("{kind} document needs '{}' field to be non-empty", kind.to_lowercase())))
        }
        ValueRef::String(name) if name.contains('\0') => {
            Err(Failure::bad_value(format!("the name of a {} must not contain null characters", kind.to_lowercase())))
        }
        ValueRef::String(name) => Ok(Name::new(name, database)),
        other => Err(fields.mismatch(fields.command, other, "type 'string'")),
    }
}
