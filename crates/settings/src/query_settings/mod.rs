//! Query settings: what an operator set for all commands of one shape. One document keeps them all, as a cluster
//! parameter.

mod expression_shape;
mod filter_shape;
mod hidden_names;
mod pipeline_shape;
mod projection_shape;
mod settings;
mod shape;

pub use expression_shape::placeholder;
pub use hidden_names::{HiddenNames, sha256};
pub use settings::Settings;
pub use shape::{NoHash, ShapeHash, of as shape_of};

use crate::cluster_parameters::{COLLECTION, DATABASE};
use crate::stored::find_stored;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_catalog::Catalog;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::QuerySettings;
use bunko_request::facts::CommandFacts;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The `_id` of the document that keeps the settings.
const PARAMETER: &str = "querySettings";

/// Maximum number of bytes of that document: with its wrapping it must fit into 16 MiB.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024 - 4096;

/// All settings.
pub struct AllQuerySettings {
    /// Whether there are any settings. Most servers have none, and skip the lookup then.
    are_some: AtomicBool,
    by_shape: RwLock<Arc<BTreeMap<ShapeHash, Arc<Set>>>>,
    /// Held while the settings change.
    changing: Mutex<()>,
}

/// The settings of one shape.
#[derive(Clone, Debug)]
pub struct Set {
    /// The settings as the operator gave them.
    pub settings: Settings,
    /// The settings as the planner uses them.
    pub for_planner: Arc<QuerySettings>,
    /// A command of that shape, with its `$db`, if the operator named one.
    pub query: Option<DocumentBuf>,
}

impl Set {
    /// Settings, and a command of their shape.
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

    /// The shape of the named command, if there is one. `find` finds a command's facts by its name.
    pub fn shape(&self, find: impl FnOnce(&str) -> Option<&'static CommandFacts>) -> Option<DocumentBuf> {
        let query = self.query.as_ref()?.as_ref();
        let database = query.get("$db")?.as_str()?;
        Some(shape_of(find(query.first()?.name)?, database, query))
    }
}

impl AllQuerySettings {
    /// Reads the settings that the catalog stores. Entries that cannot be parsed are skipped.
    pub fn kept(catalog: &Catalog) -> Self {
        let kept = find_stored(catalog, DATABASE, COLLECTION, PARAMETER).ok().flatten();
        let array = kept.as_ref().and_then(|kept| kept.as_ref().get("settingsArray")?.as_array());
        let sets = array.into_iter().flat_map(ArrayRef::iter).filter_map(read);
        let by_shape: BTreeMap<_, _> = sets.collect();
        Self {
            are_some: AtomicBool::new(!by_shape.is_empty()),
            by_shape: RwLock::new(Arc::new(by_shape)),
            changing: Mutex::default(),
        }
    }

    /// Reads the stored settings again, after another member has written them.
    pub fn renew(&self, catalog: &Catalog) {
        let renewed = Self::kept(catalog).all();
        self.are_some.store(!renewed.is_empty(), Ordering::Relaxed);
        *self.by_shape.write() = renewed;
    }

    /// All settings, by shape.
    pub fn all(&self) -> Arc<BTreeMap<ShapeHash, Arc<Set>>> {
        Arc::clone(&self.by_shape.read())
    }

    /// The settings of a shape; `None` if there are none. `shape` is called only if there are any settings at all.
    pub fn of_shape(&self, shape: impl FnOnce() -> Option<DocumentBuf>) -> Option<Arc<Set>> {
        if !self.are_some.load(Ordering::Relaxed) {
            return None;
        }
        let hash = ShapeHash::of(&shape()?);
        self.by_shape.read().get(&hash).cloned()
    }

    /// Begins a change, once no other change is in progress.
    pub fn change(&self) -> Changing<'_> {
        let alone = self.changing.lock();
        Changing { by_shape: BTreeMap::clone(&self.all()), settings: self, _alone: alone }
    }
}

/// A change of the settings, which excludes all others.
pub struct Changing<'s> {
    by_shape: BTreeMap<ShapeHash, Arc<Set>>,
    settings: &'s AllQuerySettings,
    _alone: MutexGuard<'s, ()>,
}

impl Changing<'_> {
    /// Replaces the settings of a shape. Returns the settings before and after; `None` stands for no settings.
    /// # Errors
    /// Errors of `change`.
    pub fn replace(
        &mut self,
        hash: ShapeHash,
        change: &dyn Fn(Option<&Set>) -> Result<Option<Set>>,
    ) -> Result<[Option<Arc<Set>>; 2]> {
        let before = self.by_shape.remove(&hash);
        let after = change(before.as_deref())?.map(Arc::new);
        if let Some(after) = &after {
            self.by_shape.insert(hash, Arc::clone(after));
        }
        Ok([before, after])
    }

    /// The document that keeps all settings.
    /// # Errors
    /// `BSONObjectTooLarge` if they do not fit into one document.
    pub fn to_document(&self, time: Timestamp) -> Result<DocumentBuf> {
        let mut array = ArrayBuf::new();
        for (hash, set) in &self.by_shape {
            array.push(&set.to_document(*hash));
        }
        let kept = DocumentBuf::new()
            .with("_id", PARAMETER)
            .with("settingsArray", &array)
            .with("clusterParameterTime", ValueRef::Timestamp(time));
        if kept.len_bytes() > KEPT_BYTES_MAX {
            let message = format!("all query settings together may have {KEPT_BYTES_MAX} bytes");
            return Err(Failure::new(ErrorCode::BSON_OBJECT_TOO_LARGE, message));
        }
        Ok(kept)
    }

    /// Applies settings that have been stored, and ends the change.
    pub fn publish(self) {
        let are_some = !self.by_shape.is_empty();
        *self.settings.by_shape.write() = Arc::new(self.by_shape);
        self.settings.are_some.store(are_some, Ordering::Relaxed);
    }
}

/// Parses one entry of the stored document; `None` if it is malformed.
fn read(entry: ValueRef<'_>) -> Option<(ShapeHash, Arc<Set>)> {
    let entry = entry.as_document()?;
    let hash = ShapeHash::parse(entry.get("queryShapeHash")?.as_str()?).ok()?;
    let settings = Settings::parse(entry.get("settings")?.as_document()?).ok()?;
    let query = entry.get("representativeQuery").and_then(ValueRef::as_document).map(DocumentRef::to_owned);
    Some((hash, Arc::new(Set::new(settings, query))))
}
