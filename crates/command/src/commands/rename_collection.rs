//! `renameCollection`: gives a collection another name, in any database.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use crate::system_namespace::check_creatable;
use bunko_bson::{ValueRef, Writer};
use bunko_catalog::{Namespace, RenameTarget};
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command =
    Command { name: "renameCollection", aliases: &[], fields: &["to", "dropTarget"], databases: Databases::Admin, run };

fn run(invocation: &mut Invocation<'_>, _reply: &mut Writer<'_>) -> Result<(), Halt> {
    let ValueRef::String(from) = invocation.argument() else {
        return Err(invocation.mismatch("renameCollection", invocation.argument(), "type 'string'").into());
    };
    let to = invocation.string("to")?.ok_or_else(|| {
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, "BSON field 'renameCollection.to' is missing but a required field")
    })?;
    let replace = if invocation.boolean("dropTarget", false)? { RenameTarget::Drop } else { RenameTarget::Keep };
    let from = parse("source", from)?;
    let to = parse("target", to)?;
    check_allowed("source", &from)?;
    check_allowed("target", &to)?;
    let lsn = invocation.service.catalog.rename(&from, &to, replace, invocation)?;
    invocation.note_written(Some(lsn));
    Ok(())
}

fn parse(side: &str, name: &str) -> Result<Namespace, Failure> {
    Namespace::parse(name)
        .map_err(|_| Failure::new(ErrorCode::INVALID_NAMESPACE, format!("Invalid {side} namespace: {name}")))
}

fn check_allowed(side: &str, namespace: &Namespace) -> Result<(), Failure> {
    check_creatable(namespace).map_err(|failure| {
        Failure::new(ErrorCode::ILLEGAL_OPERATION, format!("error with {side} namespace: {}", failure.message()))
    })
}
