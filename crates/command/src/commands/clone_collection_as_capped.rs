//! `cloneCollectionAsCapped`: creates a capped collection with the newest documents of another collection.

use super::convert_to_capped::{check_source, copy};
use crate::authorization::Privileges;
use crate::capped_options;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::system_namespace::check_creatable_by_name;
use bunko_authority::privileges::collections;
use bunko_bson::{ValueRef, Writer};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_pipelines::unstored;
use bunko_request::facts::{ANY_FIELDS, Changes, CommandFacts, WriteConcernUse};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "cloneCollectionAsCapped",
        // MongoDB accepts any field, and ignores unknown ones.
        fields: ANY_FIELDS,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(collections::clone_as_capped),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _reply: &mut Writer<'_>) -> Result<(), Halt> {
    let name = "cloneCollectionAsCapped";
    let from_name = string(name, Some(invocation.argument()))?;
    let (to_name, size) = parse(invocation)?;
    let from = Namespace::new(invocation.request.database, from_name)?;
    let to = Namespace::new(invocation.request.database, to_name)?;
    unstored::refuse(&invocation.service.catalog, &from, name)?;
    invocation.note_collection(from_name);
    check_source(&from)?;
    if from == to && invocation.collection(&to).is_some() {
        let message = format!("cloneCollectionAsCapped failed - destination collection {to} already exists");
        return Err(Failure::new(ErrorCode::NAMESPACE_EXISTS, message).into());
    }
    // A copy named `system.views` is a set of view definitions. Invalid ones are found when views are listed.
    if invocation.collection(&to).is_none() && to_name != "system.views" {
        check_creatable_by_name(&to)?;
    }
    copy(invocation, &from, &to, size)
}

/// The name and the size of the copy.
fn parse<'a>(fields: &Fields<'a>) -> Result<(&'a str, i64)> {
    Ok((string("toCollection", fields.field("toCollection"))?, capped_options::parse_size_of_copy(fields)?))
}

/// Reads a string. The error for another type does not name the command.
fn string<'a>(field: &str, value: Option<ValueRef<'a>>) -> Result<&'a str> {
    let value = value.unwrap_or(ValueRef::Null);
    value.as_str().ok_or_else(|| {
        let kind = value.kind().alias();
        Failure::type_mismatch(format!("\"{field}\" had the wrong type. Expected string, found {kind}"))
    })
}
