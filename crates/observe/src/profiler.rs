//! Decides which finished operations are recorded: in the log, as spans, and in a database's `system.profile`.
//!
//! `system.profile` is capped at `PROFILE_BYTES_MAX`: it always has the newest operations, and loses the oldest.
//! MongoDB records operations that work with a collection, among them reads of `system.profile` itself, and each
//! statement of a command separately.

use crate::entry::Entry;
use crate::operation_span;
use crate::profile_entry;
use crate::slow_operation;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::stored_document::{EmptyTimestamps, Stamps, for_insert};
use bunko_catalog::{Catalog, Collection, CreateOptions, Namespace, Order};
use bunko_errors::{ErrorCode, Result};
use bunko_matcher::Filter;
use bunko_operation::OperationContext;
use bunko_traces::{SpanCounts, SpanQueue};
use foldhash::HashMap;
use parking_lot::{Mutex, RwLock};
use std::cell::LazyCell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// MongoDB's size of the collection, in bytes.
/// Source: MongoDB manual, "Database Profiler".
const PROFILE_BYTES_MAX: i32 = 1024 * 1024;
/// The collection's name.
pub const PROFILE: &str = Namespace::PROFILE_COLLECTION;

/// The settings of the command `profile`.
#[derive(Debug)]
pub struct Profiler {
    /// Operations that take at least this many milliseconds are slow; if it is negative, all are.
    slow_ms: AtomicI32,
    /// The fraction of slow operations that is recorded, as the bits of a double.
    sample_rate: AtomicU64,
    databases: RwLock<HashMap<Box<str>, Arc<DatabaseProfile>>>,
    /// The profile of databases for which no client has set one.
    default: RwLock<Arc<DatabaseProfile>>,
    /// Whether any database has a level or a filter; kept as a flag, because each operation reads it.
    is_any_on: AtomicBool,
    /// Held by the thread that drops a full `system.profile` that is not capped.
    beginning_anew: Mutex<()>,
    /// The queue for spans of slow operations, if they are sent to a collector.
    spans: OnceLock<Arc<SpanQueue>>,
}

/// Creates a database's `system.profile` if it does not exist: capped, so that the newest operations are always in it.
/// # Errors
/// As [`Catalog::create`].
pub fn make_profile(catalog: &Catalog, namespace: &Namespace) -> Result<()> {
    if catalog.collection(namespace).is_some() {
        return Ok(());
    }
    let options = DocumentBuf::new().with("capped", true).with("size", PROFILE_BYTES_MAX);
    let create = CreateOptions { options, ..CreateOptions::default() };
    match catalog.create(namespace, create, &*OperationContext::unlimited()) {
        // Another thread created it first.
        Err(failure) if failure.code() == ErrorCode::NAMESPACE_EXISTS => Ok(()),
        made => made.map(drop),
    }
}

/// The profile settings of one database.
#[derive(Clone, Debug, Default)]
pub struct DatabaseProfile {
    /// The operations that are recorded.
    pub level: Level,
    /// The filter as the client gave it, and parsed.
    pub filter: Option<(DocumentBuf, Filter)>,
}

/// The operations that `system.profile` records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// No operation is recorded.
    #[default]
    None = 0,
    /// Slow operations are recorded.
    Slow = 1,
    /// All operations are recorded.
    All = 2,
}

impl Level {
    /// The level for a number, as the command `profile` takes it; `None` for any other number.
    pub fn of_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Slow),
            2 => Some(Self::All),
            _ => None,
        }
    }
}

/// The parts of the server that the profiler works with.
pub struct ProfilerContext<'a> {
    /// Keeps the profiles.
    pub catalog: &'a Catalog,
    /// Gives a profile's documents their ids.
    pub stamps: &'a dyn Stamps,
    /// Random bits, by which slow operations are sampled.
    pub random: &'a dyn Fn() -> u64,
    /// Whether every command is logged.
    pub logs_all_commands: bool,
    /// Whether the server may write: it is not a secondary, and its files are not being copied.
    pub may_write: bool,
}

impl Profiler {
    /// A profiler for which operations are slow from that duration on.
    pub fn new(slow: Duration) -> Self {
        Self {
            slow_ms: AtomicI32::new(i32::try_from(slow.as_millis()).unwrap_or(i32::MAX)),
            sample_rate: AtomicU64::new(1.0_f64.to_bits()),
            databases: RwLock::default(),
            default: RwLock::default(),
            is_any_on: AtomicBool::new(false),
            beginning_anew: Mutex::default(),
            spans: OnceLock::new(),
        }
    }

    /// Operations that take at least this many milliseconds are slow; if it is negative, all are.
    pub fn slow_ms(&self) -> i32 {
        self.slow_ms.load(Ordering::Relaxed)
    }

    /// Sets [`Self::slow_ms`].
    pub fn set_slow_ms(&self, milliseconds: i32) {
        self.slow_ms.store(milliseconds, Ordering::Relaxed);
    }

    /// The fraction of slow operations that is recorded.
    pub fn sample_rate(&self) -> f64 {
        f64::from_bits(self.sample_rate.load(Ordering::Relaxed))
    }

    /// Sets [`Self::sample_rate`].
    pub fn set_sample_rate(&self, rate: f64) {
        self.sample_rate.store(rate.to_bits(), Ordering::Relaxed);
    }

    /// The profile settings of a database.
    pub fn database(&self, name: &str) -> Arc<DatabaseProfile> {
        self.databases.read().get(name).cloned().unwrap_or_else(|| Arc::clone(&self.default.read()))
    }

    /// Sets the level, as the command `profile` takes it, for databases without one from a client, and the fraction of
    /// slow operations that is recorded. An unknown level records nothing.
    pub fn set_defaults(&self, level: i32, sample_rate: f64) {
        self.set_sample_rate(sample_rate);
        let level = Level::of_number(level.into()).unwrap_or_default();
        *self.default.write() = Arc::new(DatabaseProfile { level, filter: None });
        self.is_any_on.store(level != Level::None || !self.databases.read().is_empty(), Ordering::Relaxed);
    }

    /// Sets the profile of a database.
    pub fn set_database(&self, name: &str, profile: DatabaseProfile) {
        let mut databases = self.databases.write();
        let default = self.default.read().level;
        if profile.level == default && profile.filter.is_none() {
            databases.remove(name);
        } else {
            databases.insert(name.into(), Arc::new(profile));
        }
        self.is_any_on.store(default != Level::None || !databases.is_empty(), Ordering::Relaxed);
    }

    fn is_slow(&self, elapsed: Duration) -> bool {
        u64::try_from(self.slow_ms()).is_ok_and(|slow_ms| elapsed >= Duration::from_millis(slow_ms))
            || self.slow_ms() < 0
    }

    /// Whether [`Self::note`] may have something to record.
    pub fn may_note(&self, elapsed: Duration) -> bool {
        self.is_any_on.load(Ordering::Relaxed) || self.is_slow(elapsed)
    }

    /// Whether any database has a level or a filter.
    pub fn is_any_on(&self) -> bool {
        self.is_any_on.load(Ordering::Relaxed)
    }

    /// Sends slow operations as spans from now on. Later calls change nothing.
    pub fn send_spans_to(&self, queue: Arc<SpanQueue>) {
        let _ = self.spans.set(queue);
    }

    /// The counts of spans, if slow operations are sent as spans.
    pub fn span_counts(&self) -> Option<SpanCounts> {
        self.spans.get().map(|spans| spans.counts())
    }

    /// Records a finished operation where the settings ask for it.
    pub fn note(&self, context: &ProfilerContext<'_>, entry: &Entry<'_>) {
        let profile = self.database(entry.database);
        let described = LazyCell::new(|| profile_entry::describe(entry));
        let (is_chosen, is_profiled) = match &profile.filter {
            Some((_, filter)) => {
                // A filter whose evaluation fails does not choose the operation.
                let is_chosen = filter.try_matches(described.as_ref()).unwrap_or(false);
                (is_chosen, is_chosen && profile.level != Level::None)
            }
            None => {
                let is_slow = self.is_slow(entry.outcome.elapsed) && self.is_sampled(context);
                (is_slow, profile.level == Level::All || is_slow && profile.level == Level::Slow)
            }
        };
        if is_chosen || context.logs_all_commands {
            slow_operation::log(entry);
        }
        if is_chosen && let Some(spans) = self.spans.get() {
            spans.put(operation_span::of(entry, context.random));
        }
        if is_profiled
            && entry.is_profiled
            && context.may_write
            && let Err(failure) = self.keep(context, entry.database, &described)
        {
            tracing::warn!(target: "COMMAND", id = 20703, ctx = "profiler", error = %failure, "Cannot write to system.profile");
        }
    }

    fn is_sampled(&self, context: &ProfilerContext<'_>) -> bool {
        let rate = self.sample_rate();
        rate >= 1.0 || ((context.random)() as f64) < rate * u64::MAX as f64
    }

    fn keep(&self, context: &ProfilerContext<'_>, database: &str, described: &DocumentBuf) -> Result<()> {
        let catalog = context.catalog;
        let namespace = Namespace::new(database, PROFILE)?;
        self.begin_anew_where_full(catalog, &namespace)?;
        make_profile(catalog, &namespace)?;
        let document = for_insert(described.as_ref(), EmptyTimestamps::Kept, context.stamps)?;
        let inserted = catalog.insert(&namespace, &[document], Order::Ordered, &*OperationContext::unlimited())?;
        inserted.failures.into_iter().map(|(_, failure)| failure).chain(inserted.stopped_by).next().map_or(Ok(()), Err)
    }

    /// Drops a full collection that is not capped, as earlier versions created it: it would grow without limit.
    fn begin_anew_where_full(&self, catalog: &Catalog, namespace: &Namespace) -> Result<()> {
        let is_capped =
            |kept: &Collection| matches!((*kept.options()).as_ref().get("capped"), Some(ValueRef::Boolean(true)));
        let has_no_end = |kept: &Collection| !is_capped(kept) && kept.data_bytes() >= PROFILE_BYTES_MAX as u64;
        let is_full = || catalog.collection(namespace).is_some_and(|kept| has_no_end(&kept));
        if is_full() {
            let _only_one = self.beginning_anew.lock();
            if is_full() {
                catalog.drop_collection(namespace, &*OperationContext::unlimited())?;
            }
        }
        Ok(())
    }
}
