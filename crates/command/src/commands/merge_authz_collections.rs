//! `_mergeAuthzCollections`: takes over users and roles of a dump, which a tool has stored in temporary collections.
//! Users and roles of an equal name are replaced. With `drop`, all others are dropped, in the database `db` or in all.
//! Source: requests that mongorestore sends; its documentation, "--restoreDbUsersAndRoles".

use super::{create_role, create_user, drop_role, drop_user, update_user};
use crate::access_control::{begin_change, documents_in, documents_where, keep_document};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::Name;
use bunko_authority::audit::{Event, note_merged};
use bunko_authority::privileges::users;
use bunko_authority::{DATABASE, ROLES, USERS, find_document};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::facts::{Changes, CommandFacts, Databases, WriteConcernUse};
use bunko_request::field_kinds::{self, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use std::collections::HashSet;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "_mergeAuthzCollections",
        fields: &[
            field("tempUsersCollection", field_kinds::Kind::Text),
            field("tempRolesCollection", field_kinds::Kind::Text),
            field("drop", field_kinds::Kind::BooleanLike),
            field("db", field_kinds::Kind::Text),
        ],
        databases: Databases::Admin,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::merge),
    run,
    ..Command::PLAIN
};

/// Describes how to merge users, or roles.
struct Kind {
    /// The field that has the name.
    key: &'static str,
    collection: &'static str,
    /// The option that names the temporary collection.
    option: &'static str,
    created: &'static str,
    updated: &'static str,
    dropped: &'static str,
}

/// Roles come first, so that a user who logs in meanwhile has the rights of the new roles.
const KINDS: [Kind; 2] = [
    Kind {
        key: "role",
        collection: ROLES,
        option: "tempRolesCollection",
        created: create_role::COMMAND.facts.name,
        updated: create_role::UPDATE.facts.name,
        dropped: drop_role::COMMAND.facts.name,
    },
    Kind {
        key: "user",
        collection: USERS,
        option: "tempUsersCollection",
        created: create_user::COMMAND.facts.name,
        updated: update_user::COMMAND.facts.name,
        dropped: drop_user::COMMAND.facts.name,
    },
];

struct Merge<'a> {
    /// The only database whose users and roles are merged; empty for all.
    database: &'a str,
    drops: bool,
    /// The collections to merge from.
    waiting: Vec<(&'static Kind, Namespace)>,
}

impl<'a> Merge<'a> {
    fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
        let mut waiting = Vec::new();
        for kind in &KINDS {
            if let Some(from) = fields.string(kind.option)?.filter(|from| !from.is_empty()) {
                waiting.push((kind, Namespace::parse(from)?));
            }
        }
        let database = fields.string("db")?.unwrap_or_default();
        Ok(Self { database, drops: fields.boolean("drop", false)?, waiting })
    }
}

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let Merge { database, drops, waiting } = Merge::parse(invocation)?;
    if waiting.is_empty() {
        let message = "Must provide at least one of \"tempUsersCollection\" and \"tempRolesCollection\"";
        return Err(Failure::bad_value(message).into());
    }
    let _only_one = begin_change(invocation)?;
    for (kind, from) in waiting {
        merge(invocation, kind, &from, database, drops)?;
    }
    Ok(())
}

fn merge(
    invocation: &mut Invocation<'_>,
    kind: &Kind,
    from: &Namespace,
    database: &str,
    drops: bool,
) -> Result<(), Halt> {
    let mut merged = HashSet::new();
    for document in documents_in(invocation, from, &DocumentBuf::new())? {
        let name = name_of(kind, document.as_ref())?;
        if !database.is_empty() && name.database != database {
            continue;
        }
        let is_there = find_document(&invocation.service.catalog, kind.collection, kind.key, &name)?.is_some();
        keep_document(invocation, kind.collection, &document)?;
        let event = if is_there { kind.updated } else { kind.created };
        note(invocation, kind, event, &name, document.as_ref());
        merged.insert(name.id());
    }
    if !drops {
        return Ok(());
    }
    let all = if database.is_empty() { DocumentBuf::new() } else { DocumentBuf::new().with("db", database) };
    for document in documents_where(invocation, kind.collection, &all)? {
        let name = name_of(kind, document.as_ref())?;
        if !merged.contains(&name.id()) {
            stored_settings::delete(
                invocation,
                DATABASE,
                kind.collection,
                &DocumentBuf::new().with("_id", &name.id()),
            )?;
            note(invocation, kind, kind.dropped, &name, DocumentRef::EMPTY);
        }
    }
    Ok(())
}

/// The name of the user or role of a document.
/// # Errors
/// `UnsupportedFormat` if it is missing, or if the document's `_id` is not the one of that name.
fn name_of(kind: &Kind, document: DocumentRef<'_>) -> Result<Name> {
    let refused = |message: String| Failure::new(ErrorCode::UNSUPPORTED_FORMAT, message);
    let part = |field: &str| match document.get(field) {
        Some(ValueRef::String(part)) if !part.is_empty() => Ok(part),
        _ => Err(refused(format!("a document of a {} needs '{field}' to be a string that is not empty", kind.key))),
    };
    let name = Name::new(part(kind.key)?, part("db")?);
    if name.database.contains('.') {
        return Err(refused(format!("the {} '{name}' belongs to a database that cannot be", kind.key)));
    }
    match document.get("_id") {
        Some(ValueRef::String(id)) if id == name.id() => Ok(name),
        _ => Err(refused(format!("the document of the {} '{name}' needs the _id '{}'", kind.key, name.id()))),
    }
}

/// Writes the audit event of a merged user or role.
fn note(invocation: &Invocation<'_>, kind: &Kind, event: &'static str, name: &Name, document: DocumentRef<'_>) {
    let authority = &invocation.service.authority;
    if authority.audit.is_on() {
        let mut event = Event::of_account(event, kind.key, name);
        if event.name == update_user::COMMAND.name {
            event.param.append("passwordChanged", true);
        }
        note_merged(authority, invocation.connection, event, document);
    }
}
