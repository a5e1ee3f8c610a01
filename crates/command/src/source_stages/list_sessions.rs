//! `$listLocalSessions` and `$listSessions`: the sessions that clients use. Sessions have no state of their own here, so
//! what is known are those under which open connections ran their last command.

use super::{SourceStage, Subject};
use crate::fields::{Fields, wrong_type};
use crate::invocation::Invocation;
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use std::collections::BTreeMap;

pub(super) const LOCAL: SourceStage =
    SourceStage { name: "$listLocalSessions", subject: Subject::Database, documents: local };

pub(super) const ALL: SourceStage =
    SourceStage { name: "$listSessions", subject: Subject::Collection, documents: of_collection };

/// The SHA-256 of nothing: whose sessions they are while there are no users.
/// Source: MongoDB manual, "Server Sessions".
const UID: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

fn local(invocation: &Invocation<'_>, _: &Namespace, specification: ValueRef<'_>) -> Result<Vec<DocumentBuf>> {
    documents("$listLocalSessions", invocation, specification)
}

fn of_collection(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    specification: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>> {
    if namespace.as_str() != "config.system.sessions" {
        let message = "$listSessions may only be run against config.system.sessions";
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    documents("$listSessions", invocation, specification)
}

fn documents(
    stage: &'static str,
    invocation: &Invocation<'_>,
    specification: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>> {
    let options = specification.as_document().ok_or_else(|| wrong_type(stage, specification, "object"))?;
    if names_users(stage, options)? {
        // There are none.
        return Ok(Vec::new());
    }
    let now_ms = invocation.service.world.now_ms();
    let mut last_uses = BTreeMap::new();
    for observed in invocation.service.operations.observe() {
        let used_ms = now_ms - observed.running_for.as_millis() as i64;
        if let Some(session) = observed.session {
            let last_use = last_uses.entry(session).or_insert(used_ms);
            *last_use = used_ms.max(*last_use);
        }
    }
    let describe = |(session, last_use): ([u8; 16], i64)| {
        let id = DocumentBuf::new()
            .with("id", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &session })
            .with("uid", ValueRef::Binary { subtype: BinarySubtype::GENERIC, bytes: &UID });
        DocumentBuf::new().with("_id", &id).with("lastUse", ValueRef::DateTime(last_use))
    };
    Ok(last_uses.into_iter().map(describe).collect())
}

/// Whether somebody's sessions are asked for.
fn names_users(stage: &'static str, options: DocumentRef<'_>) -> Result<bool> {
    check_known(stage, options, &["users", "allUsers"])?;
    let fields = Fields::new(stage, options);
    let wants_all = match fields.field("allUsers") {
        None => false,
        Some(ValueRef::Boolean(all)) => all,
        Some(other) => return Err(fields.mismatch("allUsers", other, "type 'bool'")),
    };
    let mut count = 0;
    if let Some(users) = fields.array("users")? {
        for (index, user) in users.iter().enumerate().filter(|(_, user)| !user.is_nullish()) {
            let place = format!("{stage}.users.{index}");
            check_user(&place, user.as_document().ok_or_else(|| wrong_type(&place, user, "object"))?)?;
            count += 1;
        }
    }
    if wants_all && count > 0 {
        let message = format!("{stage} may not specify {{allUsers:true}} and {{users:[...]}} at the same time");
        return Err(Failure::new(ErrorCode::UNSUPPORTED_FORMAT, message));
    }
    Ok(count > 0)
}

fn check_user(place: &str, user: DocumentRef<'_>) -> Result<()> {
    check_known(place, user, &["user", "db"])?;
    for name in ["user", "db"] {
        match user.get(name).filter(|value| !value.is_nullish()) {
            Some(ValueRef::String(_)) => {}
            Some(other) => return Err(wrong_type(&format!("{place}.{name}"), other, "string")),
            None => {
                let message = format!("BSON field '{place}.{name}' is missing but a required field");
                return Err(Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message));
            }
        }
    }
    Ok(())
}

fn check_known(place: &str, document: DocumentRef<'_>, known: &[&str]) -> Result<()> {
    match document.iter().find(|field| !known.contains(&field.name)) {
        None => Ok(()),
        Some(unknown) => {
            let message = format!("BSON field '{place}.{}' is an unknown field.", unknown.name);
            Err(Failure::new(ErrorCode::IDL_UNKNOWN_FIELD, message))
        }
    }
}
