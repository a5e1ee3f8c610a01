//! `dbHash`: a hash of each collection's documents in `_id` order, and a hash of all.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef, Writer, hexadecimal};
use bunko_catalog::Collection;
use bunko_errors::Failure;
use bunko_query::{FindQuery, Hint, plan};
use bunko_request::facts::{ANY_FIELDS, CommandFacts, TimeLimit};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use md5::{Digest, Md5};
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "dbHash",
        aliases: &["dbhash"],
        fields: ANY_FIELDS,
        time_limit: TimeLimit::OfReads,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnDatabase(Action::DbHash),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let wanted = parse(invocation)?;
    invocation.refuse_if_long(true)?;
    let is_wanted = |name: &str| wanted.is_empty() || wanted.contains(&name);
    let mut collections = invocation.service.catalog.named_collections(invocation.request.database);
    collections.retain(|(namespace, collection)| is_wanted(namespace.collection()) && is_hashed(collection));
    let mut hashes = DocumentBuf::new();
    let mut uuids = DocumentBuf::new();
    let mut capped = Vec::new();
    let mut all = Md5::new();
    for (namespace, collection) in &collections {
        let name = namespace.collection();
        let hash = hash(invocation, collection)?;
        all.update(&hash);
        hashes.append(name, &hash);
        uuids.append(name, ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &collection.uuid });
        if matches!((*collection.options()).as_ref().get("capped"), Some(ValueRef::Boolean(true))) {
            capped.push(name.to_owned());
        }
    }
    reply.append("host", &*invocation.service.facts.host).append("collections", &hashes).begin_array("capped");
    for (index, name) in capped.iter().enumerate() {
        reply.push(index, name.as_str());
    }
    let elapsed_ms = invocation.running_for().as_millis() as i64;
    reply
        .end()
        .append("uuids", &uuids)
        .append("md5", &hexadecimal::small(&all.finalize()))
        .append("timeMillis", elapsed_ms);
    Ok(())
}

/// The named collections; none if `collections` is not an array, and then all are hashed.
fn parse<'a>(fields: &Fields<'a>) -> Result<Vec<&'a str>, Failure> {
    let Some(names) = fields.field("collections").and_then(ValueRef::as_array) else { return Ok(Vec::new()) };
    let name = |name: ValueRef<'a>| {
        name.as_str().ok_or_else(|| {
            Failure::bad_value(format!("collections entries have to be strings, found {}", name.kind().alias()))
        })
    };
    names.iter().map(name).collect()
}

/// Whether a collection is hashed. Each server writes a profile of its own, so `system.profile` would differ.
fn is_hashed(collection: &Collection) -> bool {
    collection.namespace().collection() != "system.profile"
}

fn hash(invocation: &Invocation<'_>, collection: &Arc<Collection>) -> Result<String, Failure> {
    let mut query = FindQuery::new(DocumentRef::EMPTY, invocation.scope())?;
    query.hint = Some(Hint::Name("_id_".into()));
    let mut execution = plan(collection, Arc::new(query))?.open()?;
    let mut hash = Md5::new();
    while let Some(document) = execution.next()? {
        hash.update(document.as_bytes());
    }
    Ok(hexadecimal::small(&hash.finalize()))
}
