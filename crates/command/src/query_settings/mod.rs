//! Query settings: what an operator set for all commands of one shape. One document keeps them all, as a cluster
//! parameter.
//!
//! `Invocation::scope_in` looks up the settings for the shape of the command, refuses a rejected shape, and puts the
//! settings into the `QueryScope`. There the planner finds them for each collection that the command reads. A `find` of
//! one document by its `_id` has no scope, so it never looks settings up.

mod expression_shape;
mod filter_shape;
mod pipeline_shape;
mod projection_shape;
mod settings;
mod shape;

pub(crate) use settings::Settings;
pub(crate) use shape::{NoHash, ShapeHash, of as shape_of};

use crate::cluster_parameters::{COLLECTION, DATABASE};
use crate::commands;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::scope_options::ScopeOptions;
use crate::stored_settings;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Catalog;
use bunko_catalog::stored_document::Stamps;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::QuerySettings;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The `_id` of the document that keeps them.
const PARAMETER: &str = "querySettings";

/// Most bytes of that document: with its wrapping it must fit into 16 MiB.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024 - 4096;

/// All settings.
pub(crate) struct AllQuerySettings {
    /// Whether there are any settings. Most servers have none, and skip the lookup then.
    are_some: AtomicBool,
    by_shape: RwLock<Arc<BTreeMap<ShapeHash, Arc<Set>>>>,
    /// Held while the settings change.
    changing: Mutex<()>,
}

/// The settings of one shape.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    /// As the operator gave them.
    pub settings: Settings,
    /// As the planner uses them.
    pub for_planner: Arc<QuerySettings>,
    /// A command of that shape, with its `$db`, if the operator named one.
    pub query: Option<DocumentBuf>,
}

impl Set {
    pub fn new(settings: Settings, query: Option<DocumentBuf>) -> Self {
        let for_planner = Arc::new(settings.for_planner());
        Self { settings, for_planner, query }
    }

    /// The document that is stored and shown.
    pub fn to_document(&self, hash: ShapeHash) -> DocumentBuf {
        let mut document = DocumentBuf::new()
            .with("queryShapeHash", hash.to_string().as_str())
            .with("settings", &self.settings.to_document());
        if let Some(query) = &self.query {
            document.append("representativeQuery", query);
        }
        document
    }

    /// The shape of the named command, if there is one.
    pub fn shape(&self) -> Option<DocumentBuf> {
        let query = self.query.as_ref()?.as_ref();
        let database = query.get("$db")?.as_str()?;
        Some(shape_of(commands::find(query.first()?.name)?, database, query))
    }
}

impl AllQuerySettings {
    /// The settings that the catalog stores. Entries that cannot be read are skipped.
    pub fn kept(catalog: &Catalog) -> Self {
        let kept = stored_settings::find(catalog, DATABASE, COLLECTION, PARAMETER).ok().flatten();
        let array = kept.as_ref().and_then(|kept| kept.as_ref().get("settingsArray")?.as_array());
        let sets = array.into_iter().flat_map(ArrayRef::iter).filter_map(read);
        let by_shape: BTreeMap<_, _> = sets.collect();
        Self {
            are_some: AtomicBool::new(!by_shape.is_empty()),
            by_shape: RwLock::new(Arc::new(by_shape)),
            changing: Mutex::default(),
        }
    }

    /// All settings, by shape.
    pub fn all(&self) -> Arc<BTreeMap<ShapeHash, Arc<Set>>> {
        Arc::clone(&self.by_shape.read())
    }

    /// The settings for commands of this one's shape.
    fn of_command(&self, options: &ScopeOptions<'_>, database: &str) -> Option<Arc<Set>> {
        if !self.are_some.load(Ordering::Relaxed) {
            return None;
        }
        let command = commands::find(options.command).filter(|command| command.has_query_shape())?;
        let hash = ShapeHash::of(&shape_of(command, database, options.body));
        self.by_shape.read().get(&hash).cloned()
    }

    fn publish(&self, by_shape: BTreeMap<ShapeHash, Arc<Set>>) {
        let are_some = !by_shape.is_empty();
        *self.by_shape.write() = Arc::new(by_shape);
        self.are_some.store(are_some, Ordering::Relaxed);
    }
}

/// Parses one entry of the stored document.
fn read(entry: ValueRef<'_>) -> Option<(ShapeHash, Arc<Set>)> {
    let entry = entry.as_document()?;
    let hash = ShapeHash::parse(entry.get("queryShapeHash")?.as_str()?).ok()?;
    let settings = Settings::parse(entry.get("settings")?.as_document()?).ok()?;
    let query = entry.get("representativeQuery").and_then(ValueRef::as_document).map(DocumentRef::to_owned);
    Some((hash, Arc::new(Set::new(settings, query))))
}

/// The settings for the shape of the command that runs or is explained.
/// # Errors
/// `QueryRejectedBySettings` if the settings reject the shape; such commands may still be explained.
pub(crate) fn applied(invocation: &Invocation<'_>, options: &ScopeOptions<'_>) -> Result<Option<Arc<QuerySettings>>> {
    let Some(set) = invocation.service.query_settings.of_command(options, invocation.request.database) else {
        return Ok(None);
    };
    let is_explained = invocation.command.is_explain() || options.is_explained;
    if set.settings.rejects() && !is_explained {
        return Err(Failure::new(ErrorCode::QUERY_REJECTED_BY_SETTINGS, "Query rejected by admin query settings"));
    }
    Ok(Some(Arc::clone(&set.for_planner)))
}

/// Changes the settings of a shape durably, and returns the new ones.
/// # Errors
/// Errors of `change`; `BSONObjectTooLarge` if all settings do not fit into one document; errors of the write.
pub(crate) fn change(
    invocation: &mut Invocation<'_>,
    hash: ShapeHash,
    change: &dyn Fn(Option<&Set>) -> Result<Option<Set>>,
) -> Result<Option<Arc<Set>>, Halt> {
    let service = invocation.service;
    let _alone = service.query_settings.changing.lock();
    let mut by_shape = BTreeMap::clone(&service.query_settings.all());
    let before = by_shape.remove(&hash);
    let after = change(before.as_deref())?.map(Arc::new);
    if before.is_none() && after.is_none() {
        return Ok(None);
    }
    if let Some(after) = &after {
        by_shape.insert(hash, Arc::clone(after));
    }
    let mut array = ArrayBuf::new();
    for (hash, set) in &by_shape {
        array.push(&set.to_document(*hash));
    }
    let kept = DocumentBuf::new()
        .with("_id", PARAMETER)
        .with("settingsArray", &array)
        .with("clusterParameterTime", ValueRef::Timestamp(service.world.timestamp()));
    if kept.len_bytes() > KEPT_BYTES_MAX {
        let message = format!("all query settings together may have {KEPT_BYTES_MAX} bytes");
        return Err(Failure::new(ErrorCode::BSON_OBJECT_TOO_LARGE, message).into());
    }
    stored_settings::keep(invocation, DATABASE, COLLECTION, &kept)?;
    service.query_settings.publish(by_shape);
    Ok(after)
}
