//! `convertToCapped`: turns a collection into a capped one with its newest documents and without its indexes.

use crate::authorization::Privileges;
use crate::capped_options;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::system_namespace::{Creation, check_removable, check_writable};
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_catalog::{CappedCopy, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::facts::{ANY_FIELDS, Changes, CommandFacts, WriteConcernUse};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "convertToCapped",
        // MongoDB accepts any field, and ignores unknown ones.
        fields: ANY_FIELDS,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::ConvertToCapped),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let size = capped_options::parse_size_of_copy(invocation)?;
    check_writable(&invocation.service.catalog, &namespace, Creation::None)?;
    check_removable("cap", &namespace)?;
    check_source(&namespace)?;
    copy(invocation, &namespace, &namespace, size)
}

/// Refuses the buckets of a time series.
/// # Errors
/// `IllegalOperation`.
pub(super) fn check_source(from: &Namespace) -> Result<()> {
    if !from.collection().starts_with("system.buckets.") {
        return Ok(());
    }
    let message = format!("cannot convert to a capped collection what holds the buckets of a time series: {from}");
    Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message))
}

/// Makes a capped copy of `from` under the name `to`, which may be the same name.
/// # Errors
/// `NamespaceNotFound`, `NamespaceExists`, `CommandNotSupportedOnView`.
pub(super) fn copy(invocation: &mut Invocation<'_>, from: &Namespace, to: &Namespace, size: i64) -> Result<(), Halt> {
    let Some(source) = invocation.collection_not_view(from)? else {
        let message = format!("source collection {from} does not exist");
        return Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message).into());
    };
    if source.encrypted_fields().is_some() {
        let message = format!("Encrypted collections cannot be capped: {from}");
        return Err(Failure::new(ErrorCode(6_367_301), message).into());
    }
    invocation.service.catalog.refuse_view(to)?;
    invocation.refuse_if_long(true)?;
    let random = (invocation.service.world.random)();
    let temporary = Namespace::new(from.database(), &format!("tmp{random:016x}.convertToCapped"))?;
    let options = capped_options::of_copy((*source.options()).as_ref(), size);
    let copy = CappedCopy { from, to, temporary: &temporary, options };
    let own = invocation.service.own_operation();
    let lsn = invocation.service.catalog.copy_capped(&copy, &*invocation, &*own)?;
    invocation.note_written(Some(lsn));
    Ok(())
}
