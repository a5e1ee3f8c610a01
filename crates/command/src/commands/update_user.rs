//! `updateUser`: changes some fields of a user.
//! Source: MongoDB manual 8.2, "updateUser".

use super::create_user::USER_FIELDS;
use crate::access_control::{begin_change, with_field};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_authority::audit::{Account, AuditEvent, PasswordNote};
use bunko_authority::privileges::users;
use bunko_authority::{
    DATABASE, USERS, UserFields, check_grantable, documents_of, find_user, mechanisms_of, name_of_argument,
    user_not_found,
};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_errors::{Failure, Result};
use bunko_request::facts::{Changes, CommandFacts, Compression, Secrets, WriteConcernUse};
use bunko_session::Halt;

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "updateUser",
        fields: USER_FIELDS,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        compression: Compression::Never,
        secrets: Secrets::Fields(&["pwd"]),
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::update_user),
    audit: AuditEvent::Account(Account {
        kind: "user",
        shows: &["customData"],
        password: PasswordNote::WhetherChanged,
    }),
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let name = name_of_argument(invocation, invocation.request.database)?;
    let fields = UserFields::parse(invocation, &name.database)?;
    if fields.are_missing() {
        return Err(Failure::bad_value("Must specify at least one field to update in updateUser").into());
    }
    let _only_one = begin_change(invocation)?;
    let catalog = &invocation.service.catalog;
    let mut document = find_user(catalog, &name)?.ok_or_else(|| user_not_found(&name))?;
    let mut set = |field: &str, value: Option<ValueRef<'_>>| document = with_field(document.as_ref(), field, value);
    if let Some(roles) = &fields.roles {
        check_grantable(catalog, roles, None)?;
        set("roles", Some((&documents_of(roles)).into()));
    }
    if let Some(data) = fields.custom_data {
        set("customData", Some(data.into()));
    }
    if let Some(restrictions) = fields.restrictions {
        set("authenticationRestrictions", Some(restrictions.into()).filter(|_| !restrictions.is_empty()));
    }
    if let Some(credentials) = fields.credentials(&invocation.service.authority, &name.name)? {
        set("credentials", Some((&credentials).into()));
    } else if fields.mechanisms.is_some() {
        let credentials = narrowed(document.as_ref(), &fields)?;
        document = with_field(document.as_ref(), "credentials", Some((&credentials).into()));
    }
    stored_settings::keep(invocation, DATABASE, USERS, &document)
}

/// The user's credentials for the given mechanisms, which must be among the present ones.
fn narrowed(user: DocumentRef<'_>, fields: &UserFields<'_>) -> Result<DocumentBuf> {
    let kept = user.get("credentials").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let asked = fields.mechanisms.as_deref().unwrap_or_default();
    if asked.iter().any(|mechanism| !mechanisms_of(user).contains(&mechanism.name())) {
        return Err(Failure::bad_value("mechanisms field must be a subset of previously set mechanisms"));
    }
    let mut credentials = DocumentBuf::new();
    for credential in kept.iter().filter(|kept| asked.iter().any(|mechanism| mechanism.name() == kept.name)) {
        credentials.append(credential.name, credential.value);
    }
    Ok(credentials)
}
