//! `$listCatalog`: the catalog's entry for a collection; with `{aggregate: 1}` on `admin`, the entries of all
//! collections, views and time series of the server.
//!
//! Identifiers of files are the numbers of keyspaces. Errors: 6200600 unless the specification is an empty object,
//! `InvalidNamespace` without a collection on another database, 40602 on a view, whose own stages come first.

use super::{Source, SourceStage};
use crate::oplog;
use crate::session_collections;
use crate::surroundings::Surroundings;
use bunko_access::Action;
use bunko_authority::Asker;
use bunko_authority::privileges::pipelines::StagePrivileges;
use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Answers, Catalog, Collection, Index, IndexState, Namespace, ViewDefinition};
use bunko_errors::{ErrorCode, Failure, Result};
use std::collections::BTreeSet;

pub(super) const STAGE: SourceStage = SourceStage {
    facts: &bunko_stages::LIST_CATALOG,
    privileges: StagePrivileges::ActionsOr {
        actions: &[Action::ListCollections, Action::ListIndexes],
        without_collection: may_list_all,
    },
    source: Source::Collection { check, documents },
};

fn may_list_all(asker: &Asker<'_>) -> bool {
    asker.on_cluster(Action::ListDatabases)
        && asker.on_all_databases(Action::ListCollections)
        && asker.on_all_databases(Action::ListIndexes)
}

fn check(specification: ValueRef<'_>) -> Result<()> {
    if specification.as_document().is_some_and(DocumentRef::is_empty) {
        return Ok(());
    }
    let message = "The $listCatalog stage specification must be an empty object";
    Err(Failure::new(ErrorCode(6_200_600), message))
}

/// Whether the stage is on the whole server instead of a collection.
/// # Errors
/// `InvalidNamespace` if it is without a collection on a database other than `admin`.
pub(super) fn is_of_server(namespace: &Namespace) -> Result<bool> {
    let is_of_server = namespace.collection() == "$cmd.aggregate";
    if is_of_server && namespace.database() != "admin" {
        let message = "Collectionless $listCatalog must be run against the 'admin' database with {aggregate: 1}";
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    Ok(is_of_server)
}

fn documents(surroundings: &Surroundings, namespace: &Namespace, _: ValueRef<'_>) -> Result<Vec<DocumentBuf>> {
    let catalog = &surroundings.catalog;
    if is_of_server(namespace)? {
        // The oplog and the session collections are shown even in databases with no other collection.
        let own = [Namespace::OPLOG_DATABASE, session_collections::database()].map(str::to_owned);
        let databases: BTreeSet<String> = catalog.databases().into_iter().chain(own).collect();
        let mut described = Vec::new();
        for database in databases {
            describe_database(catalog, &database, &mut described)?;
        }
        return Ok(described);
    }
    if namespace.is_oplog()
        && let Some(oplog) = describe_oplog(catalog)
    {
        return Ok(vec![oplog]);
    }
    match catalog.collection(namespace) {
        Some(collection) => Ok(vec![describe_collection(&collection.namespace(), &collection)]),
        None if catalog.view(namespace)?.is_some() => {
            let message = "$listCatalog is only valid as the first stage in a pipeline.";
            Err(Failure::new(ErrorCode(40602), message))
        }
        None => Ok(Vec::new()),
    }
}

fn describe_database(catalog: &Catalog, database: &str, described: &mut Vec<DocumentBuf>) -> Result<()> {
    let named = catalog.named_collections(database);
    described.extend(named.iter().map(|(name, collection)| describe_collection(name, collection)));
    for (namespace, view) in catalog.views(database)? {
        let is_series = bunko_series::find(catalog, &namespace)?.is_some();
        described.push(describe_view(&namespace, &view, if is_series { "timeseries" } else { "view" }));
    }
    if database == Namespace::OPLOG_DATABASE {
        described.extend(describe_oplog(catalog));
    }
    for namespace in session_collections::in_database(catalog, database) {
        described.push(describe_unstored(&namespace, DocumentRef::EMPTY));
    }
    Ok(())
}

fn names(namespace: &Namespace, kind: &str) -> DocumentBuf {
    DocumentBuf::new().with("db", namespace.database()).with("name", namespace.collection()).with("type", kind)
}

fn describe_collection(namespace: &Namespace, collection: &Collection) -> DocumentBuf {
    let uuid = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &collection.uuid };
    let mut options = DocumentBuf::new().with("uuid", uuid);
    options.extend(collection.options().as_ref().as_ref());
    let (mut indexes, mut identifiers) = (ArrayBuf::new(), DocumentBuf::new());
    for index in collection.indexes().iter().filter(|index| !index.is_clustered) {
        indexes.push(&describe_index(index));
        identifiers.append(&index.name, format!("index-{}", index.keyspace.0).as_str());
    }
    let metadata =
        DocumentBuf::new().with("ns", namespace.as_str()).with("options", &options).with("indexes", &indexes);
    names(namespace, "collection")
        .with("md", &metadata)
        .with("idxIdent", &identifiers)
        .with("ns", namespace.as_str())
        .with("ident", format!("collection-{}", collection.records().0).as_str())
}

fn describe_index(index: &Index) -> DocumentBuf {
    let multikey = index.multikey();
    let described = DocumentBuf::new()
        .with("spec", &index.document)
        .with("ready", index.state() == IndexState::Ready)
        .with("multikey", !multikey.is_empty());
    let described = if index.kind.answers() == Answers::ByField {
        let mut paths = DocumentBuf::new();
        for (position, field) in index.key_pattern().iter().enumerate() {
            let components = 0..field.name.split('.').count();
            let flags: Vec<u8> =
                components.map(|component| u8::from(multikey.has_array_at(position, component))).collect();
            paths.append(field.name, ValueRef::Binary { subtype: 0, bytes: &flags });
        }
        described.with("multikeyPaths", &paths)
    } else {
        described
    };
    described.with("head", 0_i64).with("backgroundSecondary", false)
}

/// The oplog's entry. The oplog is a view of the log.
fn describe_oplog(catalog: &Catalog) -> Option<DocumentBuf> {
    let listed = oplog::description(catalog, Namespace::OPLOG_DATABASE)?;
    let options = listed.as_ref().get("options").and_then(ValueRef::as_document)?;
    let namespace = Namespace::new(Namespace::OPLOG_DATABASE, Namespace::OPLOG_COLLECTION).ok()?;
    Some(describe_unstored(&namespace, options))
}

/// The entry of a collection that has no records of its own.
fn describe_unstored(namespace: &Namespace, options: DocumentRef<'_>) -> DocumentBuf {
    let metadata =
        DocumentBuf::new().with("ns", namespace.as_str()).with("options", options).with("indexes", &ArrayBuf::new());
    names(namespace, "collection").with("md", &metadata).with("ns", namespace.as_str())
}

fn describe_view(namespace: &Namespace, view: &ViewDefinition, kind: &str) -> DocumentBuf {
    let mut described = names(namespace, kind).with("ns", namespace.as_str());
    described.extend(view.document.as_ref());
    described
}
