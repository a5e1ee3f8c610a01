//! Query settings: what an operator set for all commands of one shape. They are kept as a cluster parameter, in one document.

mod expression_shape;
mod filter_shape;
mod pipeline_shape;
mod projection_shape;
mod settings;
mod shape;

pub(crate) use settings::Settings;
pub(crate) use shape::{COMMANDS, NoHash, ShapeHash, of as shape_of};

use crate::cluster_parameters::{COLLECTION, DATABASE};
use crate::dispatch::Halt;
use crate::fields::Fields;
use crate::invocation::Invocation;
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

/// The `_id` of the document that they are kept in.
const PARAMETER: &str = "querySettings";

/// Most bytes of that document: it must fit into a document of 16 MiB, with what is written around it.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024 - 4096;

/// All settings.
pub(crate) struct AllQuerySettings {
    /// Whether there are any: most servers have none, and ask for nothing else.
    are_some: AtomicBool,
    by_shape: RwLock<Arc<BTreeMap<ShapeHash, Arc<Set>>>>,
    /// Held while they are changed.
    changing: Mutex<()>,
}

/// What was set for one shape.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    /// What was set.
    pub settings: Settings,
    /// The same for the planner.
    pub for_planner: Arc<QuerySettings>,
    /// A command of that shape, with its `$db`, where one was named.
    pub query: Option<DocumentBuf>,
}

impl Set {
    /// What was set for a shape.
    pub fn new(settings: Settings, query: Option<DocumentBuf>) -> Self {
        let for_planner = Arc::new(settings.for_planner());
        Self { settings, for_planner, query }
    }

    /// As it is kept and shown.
    pub fn to_document(&self, hash: ShapeHash) -> DocumentBuf {
        let mut document = DocumentBuf::new()
            .with("queryShapeHash", hash.to_string().as_str())
            .with("settings", &self.settings.to_document());
        if let Some(query) = &self.query {
            document.append("representativeQuery", query);
        }
        document
    }

    /// The shape of the command that was named.
    pub fn shape(&self) -> Option<DocumentBuf> {
        let query = self.query.as_ref()?.as_ref();
        let database = query.get("$db")?.as_str()?;
        Some(shape_of(query.first()?.name, database, query))
    }
}

impl AllQuerySettings {
    /// Those that the catalog keeps. What cannot be read is passed over.
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

    /// All of them.
    pub fn all(&self) -> Arc<BTreeMap<ShapeHash, Arc<Set>>> {
        Arc::clone(&self.by_shape.read())
    }

    /// What was set for commands like this one.
    fn of_command(&self, fields: &Fields<'_>, database: &str) -> Option<Arc<Set>> {
        if !self.are_some.load(Ordering::Relaxed) || !COMMANDS.contains(&fields.command) {
            return None;
        }
        let hash = ShapeHash::of(&shape_of(fields.command, database, fields.body));
        self.by_shape.read().get(&hash).cloned()
    }

    fn publish(&self, by_shape: BTreeMap<ShapeHash, Arc<Set>>) {
        let are_some = !by_shape.is_empty();
        *self.by_shape.write() = Arc::new(by_shape);
        self.are_some.store(are_some, Ordering::Relaxed);
    }
}

/// One entry of the document that is kept.
fn read(entry: ValueRef<'_>) -> Option<(ShapeHash, Arc<Set>)> {
    let entry = entry.as_document()?;
    let hash = ShapeHash::parse(entry.get("queryShapeHash")?.as_str()?).ok()?;
    let settings = Settings::parse(entry.get("settings")?.as_document()?).ok()?;
    let query = entry.get("representativeQuery").and_then(ValueRef::as_document).map(DocumentRef::to_owned);
    Some((hash, Arc::new(Set::new(settings, query))))
}

/// What was set for commands like the one that runs, or that is explained.
/// # Errors
/// `QueryRejectedBySettings` where they are refused; they may be explained all the same.
pub(crate) fn applied(invocation: &Invocation<'_>, fields: &Fields<'_>) -> Result<Option<Arc<QuerySettings>>> {
    let Some(set) = invocation.service.query_settings.of_command(fields, invocation.request.database) else {
        return Ok(None);
    };
    let is_explained = invocation.command.name == "explain" || fields.truth("explain");
    if set.settings.rejects() && !is_explained {
        return Err(Failure::new(ErrorCode::QUERY_REJECTED_BY_SETTINGS, "Query rejected by admin query settings"));
    }
    Ok(Some(Arc::clone(&set.for_planner)))
}

/// Changes what is set for a shape, durably, and says what is set then.
/// # Errors
/// Those of `change`; `BSONObjectTooLarge` where all settings do not fit into one document; those of the write.
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
