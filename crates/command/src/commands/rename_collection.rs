//! `renameCollection`: gives a collection another name, also in another database.

use crate::authorization::Privileges;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::system_namespace::{check_creatable, check_removable};
use bunko_authority::audit::{AuditEvent, Event};
use bunko_authority::privileges::collections;
use bunko_bson::{DocumentBuf, Type, ValueRef, Writer};
use bunko_catalog::{Move, Namespace, RenameTarget, check_database};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::Request;
use bunko_request::facts::{Changes, CommandFacts, Databases, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::{Fields, truth};
use bunko_request::statement::required_value;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "renameCollection",
        fields: &[
            field("to", Kind::Text), // `dropTarget`: a UUID, which the target must have, counts as true.
            field("dropTarget", Kind::OneOf(&[Type::Boolean, Type::Binary])),
            // `stayTemp` concerns temporary collections, which only the server itself makes.
            field("stayTemp", Kind::Boolean),
            field("collectionUUID", Kind::Uuid),
        ],
        databases: Databases::Admin,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(collections::rename),
    audit: AuditEvent::Of(events),
    run,
};

fn events(request: &Request<'_>) -> Vec<Event> {
    let new = request.body.get("to").and_then(ValueRef::as_str).unwrap_or_default();
    let old = request.argument().as_str().unwrap_or_default();
    vec![Event { name: COMMAND.name, param: DocumentBuf::new().with("old", old).with("new", new) }]
}

struct Rename<'a> {
    to: &'a str,
    /// The expected UUID of the source.
    uuid: Option<[u8; 16]>,
    replace: RenameTarget,
    /// The expected UUID of the collection that is replaced.
    replaced_uuid: Option<[u8; 16]>,
}

impl<'a> Rename<'a> {
    fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
        let to = required_value(fields, "to")?.as_str().unwrap_or_default();
        let uuid = collection_uuid::parse(fields)?;
        let dropped = fields.value("dropTarget").filter(|dropped| truth(*dropped));
        let replace = if dropped.is_some() { RenameTarget::Drop } else { RenameTarget::Keep };
        let replaced_uuid = match dropped {
            Some(ValueRef::Boolean(_)) | None => None,
            Some(uuid) => Some(collection_uuid::required(fields, "dropTarget", uuid)?),
        };
        Ok(Self { to, uuid, replace, replaced_uuid })
    }
}

fn run(invocation: &mut Invocation<'_>, _reply: &mut Writer<'_>) -> Result<(), Halt> {
    let from = invocation.argument_of(Kind::Text)?.as_str().unwrap_or_default();
    let Rename { to, uuid, replace, replaced_uuid } = Rename::parse(invocation)?;
    let from = side("source", from)?;
    let to = side("target", to)?;
    check_oplog(invocation, &from, &to)?;
    check_allowed("source", &from)?;
    check_allowed("target", &to)?;
    check_removable("rename", &from)?;
    check_removable("replace", &to)?;
    if [&from, &to].iter().any(|side| side.collection() == "system.js") {
        let message = "renaming system.js collection or renaming to system.js is not allowed";
        return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message).into());
    }
    let is_local = |side: &Namespace| side.database() == Namespace::OPLOG_DATABASE;
    if invocation.service.replica_set.is_some() && is_local(&from) != is_local(&to) {
        let message = "Cannot rename collections between a replicated and an unreplicated database";
        return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message).into());
    }
    collection_uuid::check(&invocation.service.catalog, &from, uuid)?;
    collection_uuid::check(&invocation.service.catalog, &to, replaced_uuid)?;
    for side in [&from, &to] {
        if invocation.collection(side).is_some_and(|collection| collection.encrypted_fields().is_some()) {
            return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, "Cannot rename an encrypted collection").into());
        }
    }
    let catalog = &invocation.service.catalog;
    let lsn = if catalog.moves_by_copy(&from, &to) {
        invocation.refuse_if_long(true)?;
        let random = (invocation.service.world.random)();
        let temporary = Namespace::new(to.database(), &format!("tmp{random:016x}.renameCollection"))?;
        let moved = Move { from: &from, to: &to, temporary: &temporary, replace };
        let own = invocation.service.own_operation();
        catalog.move_across(&moved, invocation, &*own)?
    } else {
        catalog.rename(&from, &to, replace, invocation)?
    };
    invocation.note_written(Some(lsn));
    invocation.service.counters.forget_namespace(from.database(), Some(from.collection()));
    Ok(())
}

/// Reads a namespace. The error is `IllegalOperation` for a dollar sign or a name that is too long, and otherwise
/// `InvalidNamespace`.
fn side(side: &str, name: &str) -> Result<Namespace, Failure> {
    Namespace::parse(name).map_err(|failure| {
        let (database, collection) = name.split_once('.').unwrap_or((name, ""));
        let is_sound = check_database(&database.replace('$', "s")).is_ok()
            && !collection.is_empty()
            && !collection.starts_with('.')
            && !collection.contains('\0');
        let code = if is_sound { ErrorCode::ILLEGAL_OPERATION } else { ErrorCode::INVALID_NAMESPACE };
        Failure::new(code, format!("Invalid {side} namespace: {name}: {}", failure.message()))
    })
}

/// Refuses a rename from or to an oplog name: on a member of a set always, elsewhere unless both names are oplog names.
fn check_oplog(invocation: &Invocation<'_>, from: &Namespace, to: &Namespace) -> Result<(), Failure> {
    let is_oplog =
        |side: &Namespace| side.database() == Namespace::OPLOG_DATABASE && side.collection().starts_with("oplog.");
    let message = match (is_oplog(from), is_oplog(to)) {
        (false, false) => return Ok(()),
        (true, _) if invocation.service.replica_set.is_some() => "can't rename live oplog while replicating",
        (_, true) if invocation.service.replica_set.is_some() => "can't rename to live oplog while replicating",
        (true, true) => return Ok(()),
        _ => "If either the source or target of a rename is an oplog name, both must be",
    };
    Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message))
}

fn check_allowed(side: &str, namespace: &Namespace) -> Result<(), Failure> {
    check_creatable(namespace).and_then(|()| namespace.check_length()).map_err(|failure| {
        Failure::new(ErrorCode::ILLEGAL_OPERATION, format!("error with {side} namespace: {}", failure.message()))
    })
}
