//! Which operations are noted when they are over: in the log, and in a database's `system.profile`.
//!
//! `system.profile` is capped at [`PROFILE_BYTES_MAX`]: it always has the newest operations, and loses the oldest. MongoDB notes operations that work with a collection, among them reads of `system.profile` itself, and
//! each statement of a command by itself.

use crate::capped_options;
use crate::invocation::Invocation;
use crate::lock_modes::Locking;
use crate::observation::Observation;
use crate::profile_entry;
use crate::service::Service;
use crate::slow_operation;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_catalog::stored_document::{EmptyTimestamps, for_insert};
use bunko_catalog::{Catalog, Collection, CreateOptions, Namespace, Order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_matcher::Filter;
use bunko_operation::OperationContext;
use foldhash::HashMap;
use parking_lot::{Mutex, RwLock};
use std::cell::LazyCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// As much as `MongoDB` keeps.
/// Source: MongoDB manual, "Database Profiler".
const PROFILE_BYTES_MAX: u64 = 1024 * 1024;
/// The collection's name.
pub(crate) const PROFILE: &str = Namespace::PROFILE_COLLECTION;

/// What `profile` sets.
#[derive(Debug)]
pub(crate) struct Profiler {
    /// Operations that take that long are slow; below zero all are.
    slow_ms: AtomicI32,
    /// The bits of a double: the part of slow operations that is noted.
    sample_rate: AtomicU64,
    databases: RwLock<HashMap<Box<str>, Arc<DatabaseProfile>>>,
    /// Setting of each database for which a client has set nothing.
    default: RwLock<Arc<DatabaseProfile>>,
    /// Whether a database has a level or a filter; asked for each operation.
    is_any_on: AtomicBool,
    /// One thread begins a collection anew.
    beginning_anew: Mutex<()>,
}

/// Makes a database's `system.profile`, if it is not there: capped, so that the newest operations are always in it.
/// # Errors
/// As [`Catalog::create`].
pub(crate) fn make_profile(catalog: &Catalog, namespace: &Namespace) -> Result<()> {
    if catalog.collection(namespace).is_some() {
        return Ok(());
    }
    let options = capped_options::put_into(DocumentRef::EMPTY, Some(PROFILE_BYTES_MAX as i64), None);
    let create = CreateOptions { options, ..CreateOptions::default() };
    match catalog.create(namespace, create, &*OperationContext::unlimited()) {
        // Another thread was first.
        Err(failure) if failure.code() == ErrorCode::NAMESPACE_EXISTS => Ok(()),
        made => made.map(drop),
    }
}

/// What is set for one database.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatabaseProfile {
    pub level: Level,
    /// As it was given, and as it is asked.
    pub filter: Option<(DocumentBuf, Filter)>,
}

/// Which operations `system.profile` has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Level {
    #[default]
    None = 0,
    Slow = 1,
    All = 2,
}

impl Level {
    /// The level that a number stands for, as the command `profile` takes it.
    pub fn of_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Slow),
            2 => Some(Self::All),
            _ => None,
        }
    }
}

/// An operation that is over, as it is told.
pub(crate) struct Entry<'e> {
    /// `op` of the profiler.
    pub op: &'static str,
    /// `type` of a line in the log, and the line's component.
    pub log_type: &'static str,
    pub component: &'static str,
    /// The database whose settings count.
    pub database: &'e str,
    pub namespace: String,
    /// The command or the statement, without secrets.
    pub command: DocumentBuf,
    pub observation: &'e Observation,
    pub outcome: Outcome<'e>,
    pub locking: Locking,
    /// Whether `system.profile` may have it: MongoDB leaves out operations that work with no collection.
    pub is_profiled: bool,
}

/// What came of an operation.
pub(crate) struct Outcome<'a> {
    pub elapsed: Duration,
    pub failure: Option<&'a Failure>,
    /// Unknown of a statement, whose result is a part of a reply.
    pub reply_bytes: Option<usize>,
}

impl Profiler {
    /// One for which operations are slow from that duration on.
    pub fn new(slow: Duration) -> Self {
        Self {
            slow_ms: AtomicI32::new(i32::try_from(slow.as_millis()).unwrap_or(i32::MAX)),
            sample_rate: AtomicU64::new(1.0_f64.to_bits()),
            databases: RwLock::default(),
            default: RwLock::default(),
            is_any_on: AtomicBool::new(false),
            beginning_anew: Mutex::default(),
        }
    }

    pub fn slow_ms(&self) -> i32 {
        self.slow_ms.load(Ordering::Relaxed)
    }

    pub fn set_slow_ms(&self, milliseconds: i32) {
        self.slow_ms.store(milliseconds, Ordering::Relaxed);
    }

    pub fn sample_rate(&self) -> f64 {
        f64::from_bits(self.sample_rate.load(Ordering::Relaxed))
    }

    pub fn set_sample_rate(&self, rate: f64) {
        self.sample_rate.store(rate.to_bits(), Ordering::Relaxed);
    }

    /// What is set for a database.
    pub fn database(&self, name: &str) -> Arc<DatabaseProfile> {
        self.databases.read().get(name).cloned().unwrap_or_else(|| Arc::clone(&self.default.read()))
    }

    /// Sets the level of databases that a client sets nothing for.
    pub fn set_default(&self, level: Level) {
        *self.default.write() = Arc::new(DatabaseProfile { level, filter: None });
        self.is_any_on.store(level != Level::None || !self.databases.read().is_empty(), Ordering::Relaxed);
    }

    /// Sets it.
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

    /// Whether [`Self::note`] has anything to look at.
    pub fn may_note(&self, elapsed: Duration) -> bool {
        self.is_any_on.load(Ordering::Relaxed) || self.is_slow(elapsed)
    }

    /// Whether any database has a level or a filter.
    pub fn is_any_on(&self) -> bool {
        self.is_any_on.load(Ordering::Relaxed)
    }

    /// Notes an operation that is over, where it is to be noted.
    pub fn note(&self, invocation: &Invocation<'_>, entry: &Entry<'_>) {
        let profile = self.database(entry.database);
        let logs_all = invocation.service.parameters.verbosity.logs_all_commands();
        let described = LazyCell::new(|| profile_entry::describe(invocation, entry));
        let (is_logged, is_profiled) = match &profile.filter {
            Some((_, filter)) => {
                // A filter that cannot be asked chooses nothing.
                let is_chosen = filter.try_matches(described.as_ref()).unwrap_or(false);
                (is_chosen || logs_all, is_chosen && profile.level != Level::None)
            }
            None => {
                let is_slow = self.is_slow(entry.outcome.elapsed) && self.is_sampled(invocation);
                (is_slow || logs_all, profile.level == Level::All || is_slow && profile.level == Level::Slow)
            }
        };
        if is_logged {
            slow_operation::log(invocation, entry);
        }
        if is_profiled
            && entry.is_profiled
            && let Err(failure) = self.keep(invocation, entry.database, &described)
        {
            tracing::warn!(target: "COMMAND", id = 20703, ctx = "profiler", error = %failure, "Cannot write to system.profile");
        }
    }

    fn is_sampled(&self, invocation: &Invocation<'_>) -> bool {
        let rate = self.sample_rate();
        rate >= 1.0 || ((invocation.service.world.random)() as f64) < rate * u64::MAX as f64
    }

    fn keep(&self, invocation: &Invocation<'_>, database: &str, described: &DocumentBuf) -> Result<()> {
        // Files stay as they are while somebody copies them.
        if invocation.service.write_lock.is_closed() {
            return Ok(());
        }
        let catalog = &invocation.service.catalog;
        let namespace = Namespace::new(database, PROFILE)?;
        self.begin_anew_where_full(catalog, &namespace)?;
        make_profile(catalog, &namespace)?;
        let document = for_insert(described.as_ref(), EmptyTimestamps::Kept, &invocation.service.world)?;
        let inserted = catalog.insert(&namespace, &[document], Order::Ordered, &*OperationContext::unlimited())?;
        inserted.failures.into_iter().map(|(_, failure)| failure).chain(inserted.stopped_by).next().map_or(Ok(()), Err)
    }

    /// A collection that is not capped, as earlier versions made it, would grow without end.
    fn begin_anew_where_full(&self, catalog: &Catalog, namespace: &Namespace) -> Result<()> {
        let has_no_end = |kept: &Collection| !capped_options::is_capped(kept) && kept.data_bytes() >= PROFILE_BYTES_MAX;
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

impl Service {
    /// Sets what is profiled of databases that no client has set a level for, as the command `profile` takes it, and the part of slow
    /// operations that is noted. A level that there is not profiles nothing.
    pub fn set_profiling_defaults(&self, level: i32, sample_rate: f64) {
        self.profiler.set_default(Level::of_number(level.into()).unwrap_or_default());
        self.profiler.set_sample_rate(sample_rate);
    }
}
