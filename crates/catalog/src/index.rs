//! One index of a collection.

use crate::building::IndexBuild;
use crate::{IndexSpec, KeySample, KeyTypes, Multikey};
use arc_swap::{ArcSwap, ArcSwapOption};
use bunko_store::KeyspaceId;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// Whether an index is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// Maintained by writers, but not complete yet.
    Building,
    /// Complete.
    Ready,
}

/// An index: its specification, through which it can be read, and its keyspace.
#[derive(Debug)]
pub struct Index {
    spec: IndexSpec,
    /// The keyspace of the index's keys.
    pub keyspace: KeyspaceId,
    /// The index's build, if the index was not complete when this process first saw it.
    pub(crate) build: Option<Arc<IndexBuild>>,
    is_ready: AtomicBool,
    /// Shared with the versions of the index under other specifications: a writer may still hold an older one.
    multikey: Arc<ArcSwap<Multikey>>,
    /// The types in `multikey` again, for writers, which check them for each key.
    types: Arc<AtomicU64>,
    /// A sample of the keys, made when a query first has to choose between this index and another one.
    sample: Arc<ArcSwapOption<KeySample>>,
    uses: AtomicU64,
    /// When counting of uses began, in milliseconds since 1970; 0 stands for the start of the server.
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
        // With the commonest types preset, most collections need not record them.
        let types = if spec.is_id() && spec.tells_types { KeyTypes::COMMON_IDS } else { KeyTypes::default() };
        let index = Self {
            spec,
            keyspace,
            build: None,
            is_ready: AtomicBool::new(false),
            multikey: Arc::default(),
            types: Arc::default(),
            sample: Arc::default(),
            uses: AtomicU64::new(0),
            counted_since_ms: AtomicI64::new(0),
        };
        index.set_multikey(Multikey::of_types(types));
        index
    }

    /// The index's specification.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// The index under another specification, complete. If it becomes hidden or visible, its uses are counted from
    /// zero.
    pub(crate) fn respecified(&self, spec: IndexSpec) -> Self {
        let is_same = spec.is_hidden == self.is_hidden;
        let uses = AtomicU64::new(if is_same { self.uses() } else { 0 });
        let counted_since_ms = AtomicI64::new(if is_same { self.counted_since_ms().unwrap_or(0) } else { 0 });
        Self {
            multikey: Arc::clone(&self.multikey),
            types: Arc::clone(&self.types),
            sample: Arc::clone(&self.sample),
            uses,
            counted_since_ms,
            ..Self::new(spec, self.keyspace)
        }
    }

    pub(crate) fn built_by(self, build: Arc<IndexBuild>) -> Self {
        Self { build: Some(build), ..self }
    }

    /// The index's build; `None` once the index is complete.
    pub(crate) fn build(&self) -> Option<&Arc<IndexBuild>> {
        self.build.as_ref().filter(|_| self.state() == IndexState::Building)
    }

    /// While the index is being built: the number of records done, and how many there were when the build began. `None`
    /// once the index is complete.
    pub fn build_progress(&self) -> Option<(u64, u64)> {
        self.build().map(|build| build.progress())
    }

    /// Whether the index's build waits for other builds.
    pub fn is_build_waiting(&self) -> bool {
        self.build().is_some_and(|build| build.is_waiting())
    }

    pub(crate) fn with_state(self, state: IndexState, multikey: Multikey) -> Self {
        self.set_state(state);
        self.set_multikey(multikey);
        self
    }

    /// Whether the index is complete; queries may use it only then.
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

    /// The arrays that documents had on the index's paths so far.
    pub fn multikey(&self) -> Arc<Multikey> {
        self.multikey.load_full()
    }

    /// The types of values in the index's keys so far.
    #[inline]
    pub(crate) fn key_types(&self) -> KeyTypes {
        KeyTypes::from_bits(self.types.load(Ordering::Acquire))
    }

    pub(crate) fn set_multikey(&self, multikey: impl Into<Arc<Multikey>>) {
        let multikey = multikey.into();
        let types = multikey.types().bits();
        self.multikey.store(multikey);
        // Stored last: a writer that finds the types here puts keys of them, and by then plans must see the types in
        // `multikey`.
        self.types.store(types, Ordering::Release);
    }

    /// Adds arrays and types. The caller holds the lock of the catalog's record.
    pub(crate) fn add_multikey(&self, more: &Multikey) {
        self.set_multikey(self.multikey().with(more));
    }

    /// The sample of the index's keys; `None` before one was drawn.
    pub fn sample(&self) -> Option<Arc<KeySample>> {
        self.sample.load_full()
    }

    /// Replaces the sample of its keys.
    pub fn set_sample(&self, sample: Arc<KeySample>) {
        self.sample.store(Some(sample));
    }

    /// Counts one plan that used the index, for `$indexStats`.
    pub fn note_use(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets when counting of uses began, in milliseconds since 1970, for an index that was created, hidden or shown
    /// now.
    pub fn note_counted_since(&self, now_ms: i64) {
        self.counted_since_ms.store(now_ms, Ordering::Relaxed);
    }

    /// When counting of uses began, in milliseconds since 1970; `None` for the start of the server.
    pub fn counted_since_ms(&self) -> Option<i64> {
        Some(self.counted_since_ms.load(Ordering::Relaxed)).filter(|since| *since != 0)
    }

    /// Number of plans that have used it since then.
    pub fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }
}
