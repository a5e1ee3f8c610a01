//! `createUser`: creates a user with a password and roles; in `$external`, one that a certificate names.
//! Source: MongoDB manual 8.2, "createUser".

use crate::access_control::{begin_change, insert_user};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::{Name, random_uuid};
use bunko_authority::audit::{Account, AuditEvent, PasswordNote};
use bunko_authority::privileges::users;
use bunko_authority::{
    EXTERNAL, EXTERNAL_DATABASE, UserFields, check_grantable, check_no_member, documents_of, find_user, name_to_create,
};
use bunko_bson::{BinarySubtype, DocumentBuf, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::facts::{Changes, CommandFacts, Compression, Secrets, WriteConcernUse};
use bunko_request::field_kinds::{Field, Kind, field};
use bunko_session::Halt;

/// Fields of `createUser` and `updateUser`.
pub(super) const USER_FIELDS: &[Field] = &[
    field("pwd", Kind::Text),
    field("customData", Kind::Object),
    field("roles", Kind::Array),
    field("digestPassword", Kind::BooleanLike),
    field("authenticationRestrictions", Kind::Array),
    field("mechanisms", Kind::Texts),
];

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "createUser",
        fields: USER_FIELDS,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        compression: Compression::Never,
        secrets: Secrets::Fields(&["pwd"]),
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::create_user),
    audit: AuditEvent::Account(Account { kind: "user", shows: &["customData"], password: PasswordNote::None }),
    run,
};

/// MongoDB's code for a user name that is taken.
const USER_EXISTS: ErrorCode = ErrorCode(51003);

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let name = name_to_create(invocation, "User", invocation.request.database)?;
    check_database(&name)?;
    check_no_member(&invocation.service.authority, &name)?;
    let fields = UserFields::parse(invocation, &name.database)?;
    let Some(roles) = &fields.roles else { return Err(missing("roles").into()) };
    if !fields.has_password() && name.database != EXTERNAL_DATABASE {
        let message =
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db";
        return Err(Failure::bad_value(message).into());
    }
    let _only_one = begin_change(invocation)?;
    check_exception(invocation)?;
    check_grantable(&invocation.service.catalog, roles, None)?;
    if find_user(&invocation.service.catalog, &name)?.is_some() {
        return Err(Failure::new(USER_EXISTS, format!("User \"{name}\" already exists")).into());
    }
    let id = random_uuid(&*invocation.service.world.random);
    let credentials = match name.database.as_str() {
        EXTERNAL_DATABASE => DocumentBuf::new().with(EXTERNAL, true),
        _ => fields.credentials(&invocation.service.authority, &name.name)?.unwrap_or_default(),
    };
    let mut document = DocumentBuf::new()
        .with("_id", &name.id())
        .with("userId", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &id })
        .with("user", &name.name)
        .with("db", &name.database)
        .with("credentials", &credentials);
    if let Some(restrictions) = fields.restrictions.filter(|restrictions| !restrictions.is_empty()) {
        document.append("authenticationRestrictions", restrictions);
    }
    if let Some(data) = fields.custom_data {
        document.append("customData", data);
    }
    insert_user(invocation, &document.with("roles", &documents_of(roles)))
}

/// Refuses a client that is not logged in, unless this is the first user. Checked under the lock: another request may
/// have created the first user since the privileges were checked.
fn check_exception(invocation: &Invocation<'_>) -> Result<()> {
    let service = invocation.service;
    if !service.authority.asks_for_login(invocation.connection) || service.authority.waits_for_first_user() {
        return Ok(());
    }
    Err(Failure::new(ErrorCode::UNAUTHORIZED, "Command createUser requires authentication"))
}

fn missing(field: &str) -> Failure {
    Failure::missing_field(format_args!("createUser.{field}"))
}

fn check_database(name: &Name) -> Result<()> {
    match name.database.as_str() {
        "local" => Err(Failure::bad_value("Cannot create users in the local database")),
        _ => Ok(()),
    }
}
