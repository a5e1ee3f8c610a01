//! `killSessions`: stops the operations of sessions and closes their cursors.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::{BinarySubtype, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command =
    Command { name: "killSessions", aliases: &[], fields: &[], databases: Databases::Any, run };

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let killed = sessions(invocation)?;
    // An empty list means all sessions of the user, and without users all are the asker's.
    kill(invocation, |session| killed.is_empty() || killed.contains(&session));
    Ok(())
}

/// Stops what the chosen sessions do and closes what they left open.
pub(super) fn kill(invocation: &Invocation<'_>, is_chosen: impl Fn([u8; 16]) -> bool) {
    invocation.service.operations.kill_sessions(&is_chosen, invocation.opid());
    invocation.service.cursors.end_sessions(is_chosen);
}

/// The sessions that the command's first value lists.
/// # Errors
/// `TypeMismatch`, `IDLFailedToParse` and `IDLUnknownField` name the place.
pub(super) fn sessions(invocation: &Invocation<'_>) -> Result<Vec<[u8; 16]>, Failure> {
    let name = invocation.command.name;
    let argument = invocation.argument();
    let array = argument.as_array().ok_or_else(|| wrong_type(&format!("{name}.{name}"), argument, "array"))?;
    array.iter().enumerate().map(|(index, value)| session(&format!("{name}.{name}.{index}"), value)).collect()
}

fn wrong_type(place: &str, value: ValueRef<'_>, expected: &str) -> Failure {
    Failure::type_mismatch(format!(
        "BSON field '{place}' is the wrong type '{}', expected type '{expected}'",
        value.kind().alias()
    ))
}

fn session(place: &str, value: ValueRef<'_>) -> Result<[u8; 16], Failure> {
    let lsid = value.as_document().ok_or_else(|| wrong_type(place, value, "object"))?;
    for element in lsid {
        if !matches!(element.name, "id" | "uid" | "txnNumber" | "txnUUID") {
            return Err(Failure::new(
                ErrorCode::IDL_UNKNOWN_FIELD,
                format!("BSON field '{place}.{}' is an unknown field.", element.name),
            ));
        }
    }
    let id = lsid.get("id").ok_or_else(|| {
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, format!("BSON field '{place}.id' is missing but a required field"))
    })?;
    match id {
        ValueRef::Binary { subtype: BinarySubtype::UUID, bytes } => bytes.try_into().map_err(|_| {
            Failure::new(ErrorCode::INVALID_UUID, format!("BSON field '{place}.id' must be a UUID of 16 bytes"))
        }),
        _ => Err(wrong_type(&format!("{place}.id"), id, "binData")),
    }
}
