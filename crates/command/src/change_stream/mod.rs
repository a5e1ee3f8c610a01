//! `$changeStream`: returns changes as events once they are durable.
//!
//! A stream reads the log's history from its position on (`Feed` of `oplog`), and makes events of the entries that
//! concern it. A `getMore` that finds no event waits, without a thread, for a bell that rings for its collections
//! (`Following` of `store`). A stream that no client reads keeps nothing, and a server without streams pays nothing for
//! them. Streams with the same options read the end of the log together (`tail.rs`).
//!
//! An update leaves its delta in the log as a note: update operators write it beside the document (`delta.rs` of
//! `update`), and for a pipeline both versions are compared (`delta.rs` of `catalog`). A collection with pre-images
//! leaves another note with the document before the change. Once readers see a record, its commit looks for followers
//! that the notes concern and asks for a sync, after which their bells ring (`followers.rs` of `store`). So a writer
//! pays only for streams that follow its own collection.

mod delta;
mod event;
mod explain;
mod options;
mod reading;
mod source;
mod split;
mod tail;
mod token;
mod token_key;

pub(crate) use explain::explain;
pub(crate) use source::{StreamRequest, open};
pub(crate) use tail::Tails;

use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_authority::Asker;
use bunko_authority::privileges::has_on;
use bunko_authority::privileges::pipelines::PipelinePlace;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};

/// The stage's name, including `$`.
pub(crate) const STAGE: &str = bunko_stages::CHANGE_STREAM.name;

/// Whether a stream may be opened there: on the whole cluster, or on its collection or database.
pub(crate) fn may_open(asker: &Asker<'_>, place: &PipelinePlace<'_>) -> bool {
    [Action::Find, Action::ChangeStream].into_iter().all(|action| {
        if has_on(place.options, "allChangesForCluster") {
            asker.on_all_databases(action)
        } else {
            place.allows(asker, action)
        }
    })
}

/// The part of the server that a stream watches.
#[derive(Clone, Debug)]
enum Target {
    Collection { full: String, commands: String },
    Database { prefix: String },
    Cluster,
}

/// The collection with a database's view definitions.
const SYSTEM_VIEWS: &str = "system.views";

/// Whether a pipeline begins with `$changeStream`.
/// # Errors
/// 40602 if the stage is not the first, 6188500 if its specification is not an object, 40323 if it has other fields.
pub(crate) fn begins(stages: ArrayRef<'_>) -> Result<bool> {
    let is_it = |stage: &DocumentRef<'_>| stage.first().is_some_and(|first| first.name == STAGE);
    for stage in stages.iter().filter_map(ValueRef::as_document).filter(is_it) {
        if stage.count() != 1 {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(Failure::new(ErrorCode(40323), message));
        }
        options::checked_object(stage.get(STAGE).unwrap_or(ValueRef::Null))?;
    }
    let is_it = |stage: ValueRef<'_>| stage.as_document().is_some_and(|stage| is_it(&stage));
    let is_split = |stage: ValueRef<'_>| {
        stage.as_document().and_then(DocumentRef::first).is_some_and(|first| first.name == split::STAGE)
    };
    if stages.iter().take_while(|stage| !is_it(*stage)).any(is_split) {
        // Parsing the pipeline refuses it.
        return Ok(false);
    }
    if stages.iter().skip(1).any(is_it) {
        let message = format!("{STAGE} is only valid as the first stage in a pipeline.");
        return Err(Failure::new(ErrorCode(40602), message));
    }
    Ok(stages.iter().next().is_some_and(is_it))
}

impl Target {
    /// The target that the command names.
    /// # Errors
    /// `InvalidNamespace` for the server's own databases and collections; `InvalidOptions` for the whole cluster,
    /// except on `admin`.
    fn of(namespace: &Namespace, is_whole: bool, all_changes: bool) -> Result<Self> {
        let database = namespace.database();
        if all_changes {
            if is_whole && database == "admin" {
                return Ok(Self::Cluster);
            }
            let message = format!(
                "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no \
                 collection name; found {namespace}"
            );
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        if matches!(database, "admin" | "local" | "config") {
            let message = format!("$changeStream may not be opened on the internal {database} database");
            return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
        }
        if is_whole {
            return Ok(Self::Database { prefix: format!("{database}.") });
        }
        if namespace.collection().starts_with("system.") {
            let message = format!("$changeStream may not be opened on the internal {namespace} collection");
            return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
        }
        Ok(Self::Collection { full: namespace.as_str().to_owned(), commands: format!("{database}.$cmd") })
    }

    /// The prefix of the namespaces that the stream follows.
    fn scope(&self) -> &str {
        match self {
            Self::Collection { full, .. } => full,
            Self::Database { prefix } => prefix,
            Self::Cluster => "",
        }
    }

    /// Whether entries of that namespace may concern the stream.
    fn wants(&self, namespace: &str) -> bool {
        match self {
            Self::Collection { full, commands } => namespace == full || namespace == commands,
            Self::Database { prefix } => namespace.strip_prefix(prefix.as_str()).is_some_and(is_told),
            Self::Cluster => namespace.split_once('.').is_some_and(|(database, collection)| {
                !matches!(database, "admin" | "local" | "config") && is_told(collection)
            }),
        }
    }

    /// Whether the stream watches that collection.
    fn watches(&self, full: &str) -> bool {
        !matches!(full.split_once('.'), Some((_, "$cmd" | SYSTEM_VIEWS))) && self.wants(full)
    }
}

/// The server's own collections have no events. Writes to `system.views` are events of the views.
fn is_told(collection: &str) -> bool {
    collection == SYSTEM_VIEWS || !collection.starts_with("system.")
}

/// Refuses a stream on a server that keeps no history.
/// # Errors
/// 40573.
pub(crate) fn check_server(invocation: &Invocation<'_>) -> Result<()> {
    bunko_pipelines::oplog::check_server(&invocation.service.catalog)
}
