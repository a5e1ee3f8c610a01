//! `$listClusterCatalog`: the collections and views of a database, or of all databases on `admin`, as a sharded cluster
//! would list them.
//!
//! Errors: 9621301 with the name of a collection, 9621302 unless the specification is an object, `IDLUnknownField`,
//! `TypeMismatch`, `InvalidOptions` for a read concern other than `local`.

use super::{Source, SourceStage};
use crate::context::StageClient;
use bunko_access::Action;
use bunko_authority::Asker;
use bunko_authority::privileges::pipelines::{PipelinePlace, StagePrivileges};
use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, ValueRef};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::wrong_type;

pub(super) const STAGE: SourceStage = SourceStage {
    facts: &bunko_stages::LIST_CLUSTER_CATALOG,
    privileges: StagePrivileges::By(may_begin),
    source: Source::Client(documents),
};

/// Whether the client may list all databases (on `admin`), or the collections of one database.
fn may_begin(asker: &Asker<'_>, place: &PipelinePlace<'_>) -> bool {
    if place.database == "admin" {
        asker.on_cluster(Action::ListClusterCatalog)
    } else {
        place.allows(asker, Action::ListCollections)
    }
}

fn documents(client: &dyn StageClient, namespace: &Namespace, specification: ValueRef<'_>) -> Result<Vec<DocumentBuf>> {
    let shards = parse(specification)?;
    if client.request().argument().as_str().is_some() {
        let message = format!("$listClusterCatalog must be run against a database, not the collection {namespace}");
        return Err(Failure::new(ErrorCode(9_621_301), message));
    }
    let concern = client.request().body.get("readConcern").and_then(ValueRef::as_document);
    let level = concern.and_then(|concern| concern.get("level"));
    if let Some(level) = level.and_then(ValueRef::as_str).filter(|level| *level != "local") {
        let message = format!("$listClusterCatalog does not support the read concern '{level}'");
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    let catalog = &client.surroundings().catalog;
    let databases = match namespace.database() {
        "admin" => catalog.databases(),
        database => vec![database.to_owned()],
    };
    let mut described = Vec::new();
    for database in &databases {
        let named = catalog.named_collections(database);
        described.extend(named.iter().map(|(name, collection)| describe(name, collection, shards)));
        for (namespace, view) in catalog.views(database)? {
            let series = bunko_series::described_options(catalog, &namespace)?;
            let (kind, options) = series.map_or_else(|| ("view", view.options()), |options| ("timeseries", options));
            described.push(describe_view(&namespace, kind, &options, shards));
        }
    }
    Ok(described)
}

/// A view or a time series. These have no UUID and no index on `_id`.
fn describe_view(namespace: &Namespace, kind: &str, options: &DocumentBuf, shards: Shards) -> DocumentBuf {
    let info = DocumentBuf::new().with("readOnly", kind == "view");
    let described = DocumentBuf::new()
        .with("ns", namespace.as_str())
        .with("db", namespace.database())
        .with("type", kind)
        .with("options", options)
        .with("info", &info);
    with_sharding(described, shards)
}

fn with_sharding(described: DocumentBuf, shards: Shards) -> DocumentBuf {
    let mut described = described.with("sharded", false);
    if shards == Shards::Told {
        described.append("shards", &ArrayBuf::new());
    }
    // Only sharded collections have a balancing configuration, and there are none.
    described
}

/// Whether `shards` is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shards {
    Omitted,
    Told,
}

fn parse(specification: ValueRef<'_>) -> Result<Shards> {
    let Some(given) = specification.as_document() else {
        let kind = specification.kind().alias();
        let message = format!("$listClusterCatalog must take a nested object but found: {kind}");
        return Err(Failure::new(ErrorCode(9_621_302), message));
    };
    let mut shards = Shards::Omitted;
    for option in given {
        if !matches!(option.name, "shards" | "balancingConfiguration") {
            return Err(Failure::unknown_field(format_args!("$listClusterCatalog.{}", option.name)));
        }
        let ValueRef::Boolean(is_wanted) = option.value else {
            return Err(wrong_type(&format!("$listClusterCatalog.{}", option.name), option.value, "bool"));
        };
        if option.name == "shards" && is_wanted {
            shards = Shards::Told;
        }
    }
    Ok(shards)
}

fn describe(namespace: &Namespace, collection: &Collection, shards: Shards) -> DocumentBuf {
    let uuid = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &collection.uuid };
    let info = DocumentBuf::new().with("readOnly", false).with("uuid", uuid);
    let mut described =
        DocumentBuf::new().with("ns", namespace.as_str()).with("db", namespace.database()).with("type", "collection");
    if !collection.is_clustered() {
        described.append("idIndex", &collection.id_index().document);
    }
    with_sharding(described.with("options", &*collection.options()).with("info", &info), shards)
}
