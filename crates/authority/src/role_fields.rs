//! Fields that several commands about users and roles have.

use crate::roles::{all_inherited, find_role, reserved_role};
use bunko_access::{Name, Privilege, Restrictions, add};
use bunko_bson::number::Number;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_catalog::Catalog;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::{Fields, elements};

/// Maximum number of roles, privileges or restrictions that one command may name.
const NAMED_MAX: usize = 10_000;

/// The role names in a field, each once.
/// # Errors
/// `TypeMismatch`, `BadValue`.
pub fn role_names(fields: &Fields<'_>, field: &str, database: &str) -> Result<Option<Vec<Name>>> {
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

/// The field `privileges`, with each resource once.
/// # Errors
/// `TypeMismatch`, `IDLFailedToParse`, `BadValue`.
pub fn privileges(fields: &Fields<'_>) -> Result<Option<Vec<Privilege>>> {
    let Some(array) = fields.array("privileges")? else { return Ok(None) };
    check_count("privileges", array)?;
    let mut privileges = Vec::new();
    for (index, value) in elements(array) {
        let place = format!("privileges.{index}");
        let document = value.as_document().ok_or_else(|| fields.mismatch(&place, value, "type 'object'"))?;
        check_privilege_types(fields, &place, document)?;
        add(&mut privileges, Privilege::parse(document).map_err(|error| invalid(fields, &place, &error))?);
    }
    Ok(Some(privileges))
}

/// Refuses a privilege with a missing part, or with a part of a type that MongoDB refuses.
fn check_privilege_types(fields: &Fields<'_>, place: &str, privilege: DocumentRef<'_>) -> Result<()> {
    let resource_place = format!("{place}.resource");
    refuse_repeated(fields, place, privilege, &["resource", "actions"])?;
    let resource = required(fields, place, privilege, "resource")?;
    let resource = resource.as_document().ok_or_else(|| fields.mismatch(&resource_place, resource, "type 'object'"))?;
    for field in resource.iter().filter(|field| !field.value.is_nullish()) {
        let is_number = Number::of(field.value).is_some();
        let expected = match field.name {
            "cluster" | "anyResource" if is_number || matches!(field.value, ValueRef::Boolean(_)) => continue,
            "cluster" | "anyResource" => "types '[bool, long, int, decimal, double]'",
            "db" | "collection" | "system_buckets" if field.value.as_str().is_none() => "type 'string'",
            _ => continue,
        };
        return Err(fields.mismatch(&format!("{resource_place}.{}", field.name), field.value, expected));
    }
    refuse_repeated(
        fields,
        &resource_place,
        resource,
        &["cluster", "anyResource", "db", "collection", "system_buckets"],
    )?;
    let actions_place = format!("{place}.actions");
    let actions = required(fields, place, privilege, "actions")?;
    let actions = actions.as_array().ok_or_else(|| fields.mismatch(&actions_place, actions, "type 'array'"))?;
    fields.texts(&actions_place, actions).map(drop)
}

/// Refuses a document that has one of these fields twice. Nulls and other fields are ignored.
fn refuse_repeated(fields: &Fields<'_>, place: &str, document: DocumentRef<'_>, names: &[&str]) -> Result<()> {
    let has_twice =
        |name: &&&str| document.iter().filter(|field| field.name == **name && !field.value.is_nullish()).count() > 1;
    let Some(name) = names.iter().find(has_twice) else { return Ok(()) };
    let message = format!("BSON field '{}.{place}.{name}' is a duplicate field", fields.command);
    Err(Failure::new(ErrorCode::IDL_DUPLICATE_FIELD, message))
}

fn required<'a>(fields: &Fields<'_>, place: &str, document: DocumentRef<'a>, name: &str) -> Result<ValueRef<'a>> {
    document
        .get(name)
        .filter(|value| !value.is_nullish())
        .ok_or_else(|| Failure::missing_field(format_args!("{}.{place}.{name}", fields.command)))
}

/// Refuses a restriction with an unknown field, or with a type that MongoDB refuses.
fn check_restriction_types(fields: &Fields<'_>, place: &str, value: ValueRef<'_>) -> Result<()> {
    let restriction = value.as_document().ok_or_else(|| fields.mismatch(place, value, "type 'object'"))?;
    for field in restriction {
        let field_place = format!("{place}.{}", field.name);
        if !["clientSource", "serverAddress"].contains(&field.name) {
            return Err(Failure::unknown_field(format_args!("{}.{field_place}", fields.command)));
        }
        let array = field.value.as_array();
        let array = array.ok_or_else(|| fields.mismatch(&field_place, field.value, "type 'array'"))?;
        fields.texts(&field_place, array)?;
    }
    Ok(())
}

/// The field `authenticationRestrictions`; `None` if it is missing.
/// # Errors
/// `TypeMismatch`, `IDLUnknownField`, `BadValue`; `CommandNotSupported` for addresses of the server.
pub fn restrictions<'a>(fields: &Fields<'a>) -> Result<Option<ArrayRef<'a>>> {
    const FIELD: &str = "authenticationRestrictions";
    let Some(array) = fields.array(FIELD)? else { return Ok(None) };
    check_count(FIELD, array)?;
    for (index, value) in array.iter().enumerate() {
        check_restriction_types(fields, &format!("{FIELD}.{index}"), value)?;
    }
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

/// Refuses roles that do not exist.
/// # Errors
/// `RoleNotFound`.
pub fn check_exist(catalog: &Catalog, roles: &[Name]) -> Result<()> {
    for role in roles {
        if find_role(catalog, role)?.is_none() {
            return Err(Failure::new(ErrorCode::ROLE_NOT_FOUND, format!("Could not find role: {role}")));
        }
    }
    Ok(())
}

/// Refuses roles that do not exist, and the reserved role. With `to`, also refuses roles that this role may not
/// inherit.
/// # Errors
/// `RoleNotFound`, `InvalidRoleModification`.
pub fn check_grantable(catalog: &Catalog, roles: &[Name], to: Option<&Name>) -> Result<()> {
    if let Some(role) = roles.iter().find(|role| **role == reserved_role()) {
        return Err(refused(format!("{role} is for the members of a cluster and cannot be granted")));
    }
    check_exist(catalog, roles)?;
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

/// Refuses privileges that the role `to` may not have.
/// # Errors
/// `InvalidRoleModification`.
pub fn check_privileges_grantable(privileges: &[Privilege], to: &Name) -> Result<()> {
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

/// The name of a user or role of `database`, from the command's first value.
/// # Errors
/// `TypeMismatch`, `IDLFailedToParse`.
pub fn name_of_argument(fields: &Fields<'_>, database: &str) -> Result<Name> {
    let argument = fields.body.first().map_or(ValueRef::Null, |first| first.value);
    if argument.is_nullish() {
        return Err(Failure::missing_field(format_args!("{0}.{0}", fields.command)));
    }
    let name = argument.as_str().ok_or_else(|| fields.mismatch(fields.command, argument, "type 'string'"))?;
    Ok(Name::new(name, database))
}

/// The name of the `User` or `Role` that a command creates.
/// # Errors
/// As [`name_of_argument`]; `BadValue` if it is empty or contains null characters.
pub fn name_to_create(fields: &Fields<'_>, kind: &str, database: &str) -> Result<Name> {
    let name = name_of_argument(fields, database)?;
    let lower = kind.to_lowercase();
    if name.name.is_empty() {
        return Err(Failure::bad_value(format!("{kind} document needs '{lower}' field to be non-empty")));
    }
    if name.name.contains('\0') {
        return Err(Failure::bad_value(format!("the name of a {lower} must not contain null characters")));
    }
    Ok(name)
}
