//! `listCollections`: names, options and UUIDs of a database's collections.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::document_list::{parse_batch_size, write_document_list};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_authority::privileges::administration;
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::Failure;
use bunko_pipelines::{oplog, session_collections};
use bunko_query::parse_filter;
use bunko_request::facts::{CommandFacts, Queueing, Stability};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "listCollections",
        // MongoDB accepts `includePendingDrops`, but has ignored it since 4.2.
        fields: &[
            field("filter", Kind::Object),
            field("nameOnly", Kind::Boolean),
            field("authorizedCollections", Kind::Boolean),
            field("cursor", Kind::Object),
            field("includePendingDrops", Kind::BooleanLike),
        ],
        stable_api: Stability::Version1 { fields_outside: &["includePendingDrops"] },
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(administration::list_collections),
    run,
    ..Command::PLAIN
};

/// How much the reply has of each collection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    NameAndType,
    All,
}

struct ListCollections<'a> {
    filter: Option<DocumentRef<'a>>,
    detail: Detail,
    /// Whether only collections are listed on which the client has privileges.
    only_own: bool,
    batch_size: Option<u64>,
}

impl<'a> ListCollections<'a> {
    fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
        Ok(Self {
            filter: fields.document("filter")?,
            detail: if fields.strict_boolean("nameOnly", false)? { Detail::NameAndType } else { Detail::All },
            only_own: fields.strict_boolean("authorizedCollections", false)?,
            batch_size: parse_batch_size(fields)?,
        })
    }
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let ListCollections { filter, detail, only_own, batch_size } = ListCollections::parse(invocation)?;
    let scope = Arc::new(invocation.scope().without_builtins());
    let filter = filter.map(|filter| parse_filter(filter, &scope)).transpose()?;
    let database = invocation.request.database;
    let asker = invocation.asker().filter(|asker| only_own || !asker.on_database(database, Action::ListCollections));
    let is_known = |document: &DocumentBuf| {
        let name = document.as_ref().get("name").and_then(ValueRef::as_str).unwrap_or_default();
        asker.as_ref().is_none_or(|asker| asker.knows_collection(database, name))
    };
    let namespace = Namespace::of_cursor(database, "$cmd.listCollections")?;
    let mut listed = Vec::new();
    let catalog = &invocation.service.catalog;
    let described =
        catalog.named_collections(database).into_iter().map(|(name, collection)| describe(&name, &collection, detail));
    let views = catalog.views(database)?;
    let mut described_views = Vec::with_capacity(views.len());
    for (namespace, view) in &views {
        let series = bunko_series::described_options(catalog, namespace)?;
        let (kind, options) = series.map_or_else(|| ("view", view.options()), |options| ("timeseries", options));
        described_views.push(describe_without_uuid(namespace, kind, &options, detail));
    }
    let of_sessions = session_collections::in_database(catalog, database)
        .map(|namespace| describe_without_uuid(&namespace, "collection", &DocumentBuf::new(), detail));
    let described = described.chain(described_views).chain(oplog::description(catalog, database));
    for document in described.chain(of_sessions) {
        let is_listed = match &filter {
            Some(filter) => filter.try_matches(document.as_ref())?,
            None => true,
        };
        if is_listed && is_known(&document) {
            listed.push(document);
        }
    }
    Ok(write_document_list(invocation, reply, &namespace, listed, batch_size)?)
}

/// Describes a namespace that has no UUID, such as a view.
fn describe_without_uuid(namespace: &Namespace, kind: &str, options: &DocumentBuf, detail: Detail) -> DocumentBuf {
    match detail {
        Detail::NameAndType => DocumentBuf::new().with("name", namespace.collection()).with("type", kind),
        Detail::All => describe_view(namespace, kind, options),
    }
}

fn describe(namespace: &Namespace, collection: &Collection, detail: Detail) -> DocumentBuf {
    let document = DocumentBuf::new().with("name", namespace.collection()).with("type", "collection");
    if detail == Detail::NameAndType {
        return document;
    }
    let uuid = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &collection.uuid };
    let info = DocumentBuf::new().with("readOnly", false).with("uuid", uuid);
    let options = bunko_series::shown_options(collection);
    let document = document.with("options", &options).with("info", &info);
    if collection.is_clustered() || options.as_ref().get("clusteredIndex").is_some() {
        document
    } else {
        document.with("idIndex", &collection.id_index().document)
    }
}

/// An entry in the list of collections: for a view, a time series (a view that can be written to), or a collection of
/// sessions (listed as read-only).
fn describe_view(namespace: &Namespace, kind: &str, options: &DocumentBuf) -> DocumentBuf {
    let info = DocumentBuf::new().with("readOnly", ValueRef::Boolean(kind != "timeseries"));
    DocumentBuf::new()
        .with("name", namespace.collection())
        .with("type", kind)
        .with("options", options)
        .with("info", &info)
}
