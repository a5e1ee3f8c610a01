//! One index of a collection.

use crate::building::IndexBuild;
use crate::{IndexSpec, KeyForm, KeyTypes, Multikey};
use arc_swap::ArcSwap;
use bunko_bson::key_string::Direction;
use bunko_store::KeyspaceId;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// The name of the index that every collection has.
pub const ID_INDEX: &str = "_id_";

/// A field of an index and its direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexField {
    /// The dotted path.
    pub path: String,
    /// The order of its values.
    pub direction: Direction,
    /// What stands in the keys for its values.
    pub form: KeyForm,
}

/// Whether queries may use an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// Maintained by writers, not yet complete.
    Building,
    /// Complete.
    Ready,
}

/// An index: its specification, which it is read as, and where its keys are.
#[derive(Debug)]
pub struct Index {
    spec: IndexSpec,
    /// Where its keys are.
    pub keyspace: KeyspaceId,
    /// What makes it, where it was not complete when this process first saw it.
    pub(crate) build: Option<Arc<IndexBuild>>,
    is_ready: AtomicBool,
    /// Shared with what the index was before its specification was changed: a writer may still hold that.
    multikey: Arc<ArcSwap<Multikey>>,
    /// The types in it once more, for writers: they look at them for each key.
    types: Arc<AtomicU64>,
    uses: AtomicU64,
    /// In milliseconds since 1970; 0 is the start of the server.
    counted_since_ms: AtomicI64,
}

impl Deref for Index {
    type Target = IndexSpec;

    #[inline]
    fn deref(&self) -> &IndexSpec {
        &self.spec
    }
}

impl Index {
    pub(crate) fn new(spec: IndexSpec, keyspace: KeyspaceId) -> Self {
        // So that a collection with the commonest ones needs no record that it has got some.
        let types = if spec.is_id() && spec.tells_types { KeyTypes::COMMON_IDS } else { KeyTypes::default() };
        let index = Self {
            spec,
            keyspace,
            build: None,
            is_ready: AtomicBool::new(false),
            multikey: Arc::default(),
            types: Arc::default(),
            uses: AtomicU64::new(0),
            counted_since_ms: AtomicI64::new(0),
        };
        index.set_multikey(Multikey::of_types(types));
        index
    }

    /// Its specification.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// The same index, complete, under another specification.
    /// Uses are counted anew once it is hidden or shown again.
    pub(crate) fn respecified(&self, spec: IndexSpec) -> Self {
        let is_same = spec.is_hidden == self.is_hidden;
        let uses = AtomicU64::new(if is_same { self.uses() } else { 0 });
        let counted_since_ms = AtomicI64::new(if is_same { self.counted_since_ms().unwrap_or(0) } else { 0 });
        Self {
            multikey: Arc::clone(&self.multikey),
            types: Arc::clone(&self.types),
            uses,
            counted_since_ms,
            ..Self::new(spec, self.keyspace)
        }
    }

    pub(crate) fn built_by(self, build: Arc<IndexBuild>) -> Self {
        Self { build: Some(build), ..self }
    }

    /// What makes it, until it is complete.
    pub(crate) fn build(&self) -> Option<&Arc<IndexBuild>> {
        self.build.as_ref().filter(|_| self.state() == IndexState::Building)
    }

    /// While it is being built: records that the build is done with, and how many there were when it began.
    pub fn build_progress(&self) -> Option<(u64, u64)> {
        self.build().map(|build| build.progress())
    }

    /// Whether it is to be built, and others are built before.
    pub fn is_build_waiting(&self) -> bool {
        self.build().is_some_and(|build| build.is_waiting())
    }

    pub(crate) fn with_state(self, state: IndexState, multikey: Multikey) -> Self {
        self.set_state(state);
        self.set_multikey(multikey);
        self
    }

    /// Whether queries may use it.
    pub fn state(&self) -> IndexState {
        if self.is_ready.load(Ordering::Acquire) { IndexState::Ready } else { IndexState::Building }
    }

    pub(crate) fn set_state(&self, state: IndexState) {
        self.is_ready.store(state == IndexState::Ready, Ordering::Release);
    }

    /// Whether some document has an array on the path of the field at `position`.
    pub fn is_multikey_at(&self, position: usize) -> bool {
        self.multikey.load().is_multikey_at(position)
    }

    /// Where on its paths documents have arrays, as of now.
    pub fn multikey(&self) -> Arc<Multikey> {
        self.multikey.load_full()
    }

    /// The types of the values in its keys, as of now.
    #[inline]
    pub(crate) fn key_types(&self) -> KeyTypes {
        KeyTypes::from_bits(self.types.load(Ordering::Acquire))
    }

    pub(crate) fn set_multikey(&self, multikey: impl Into<Arc<Multikey>>) {
        let multikey = multikey.into();
        let types = multikey.types().bits();
        self.multikey.store(multikey);
        // Whoever sees them writes keys that plans have to know of.
        self.types.store(types, Ordering::Release);
    }

    /// Adds arrays and types. One caller at a time: whoever holds the lock of the catalog's record.
    pub(crate) fn add_multikey(&self, more: &Multikey) {
        self.set_multikey(self.multikey().with(more));
    }

    /// Counts one plan that used it, for `$indexStats`.
    pub fn note_use(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// Says since when uses are counted, in milliseconds since 1970: for an index that was made, hidden or shown again now.
    pub fn note_counted_since(&self, now_ms: i64) {
        self.counted_since_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Since when uses are counted, in milliseconds since 1970; `None` where that is the start of the server.
    pub fn counted_since_ms(&self) -> Option<i64> {
        Some(self.counted_since_ms.load(Ordering::Relaxed)).filter(|since| *since != 0)
    }

    /// Plans that used it since then.
    pub fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }
}
