//! Which operations are noted when they are over: in the log, and in a database's `system.profile`.
//!
//! `system.profile` begins anew when it has [`PROFILE_BYTES_MAX`]: the newest operations are always there, and what came
//! long before them is not.

use crate::invocation::Invocation;
use crate::operation_description::operation_name;
use crate::service::Service;
use crate::slow_operation;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_catalog::stored_document::{EmptyTimestamps, for_insert};
use bunko_catalog::{Catalog, Namespace, Order};
use bunko_errors::{Failure, Result};
use bunko_matcher::Filter;
use bunko_operation::OperationContext;
use foldhash::HashMap;
use parking_lot::{Mutex, RwLock};
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
    /// What is set for each database that a client has set nothing for.
    default: RwLock<Arc<DatabaseProfile>>,
    /// Whether a database has a level or a filter; asked for each operation.
    is_any_on: AtomicBool,
    /// One thread begins a collection anew.
    beginning_anew: Mutex<()>,
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

/// What came of an operation.
pub(crate) struct Outcome<'a> {
    pub elapsed: Duration,
    pub failure: Option<&'a Failure>,
    pub reply_bytes: usize,
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

    /// Notes an operation that is over, where it is to be noted.
    pub fn note(&self, invocation: &Invocation<'_>, outcome: &Outcome<'_>) {
        let profile = self.database(invocation.request.database);
        let logs_all = invocation.service.parameters.verbosity.logs_all_commands();
        let (is_logged, is_profiled) = match &profile.filter {
            Some((_, filter)) => {
                // A filter that cannot be asked chooses nothing.
                let is_chosen = filter.try_matches(describe(invocation, outcome).as_ref()).unwrap_or(false);
                (is_chosen || logs_all, is_chosen && profile.level != Level::None)
            }
            None => {
                let is_slow = self.is_slow(outcome.elapsed) && self.is_sampled(invocation);
                (is_slow || logs_all, profile.level == Level::All || is_slow && profile.level == Level::Slow)
            }
        };
        if is_logged {
            slow_operation::log(invocation, outcome.elapsed, outcome.failure.map(Failure::code));
        }
        if is_profiled && let Err(failure) = self.keep(invocation, outcome) {
            tracing::warn!(target: "COMMAND", id = 20703, ctx = "profiler", error = %failure, "Cannot write to system.profile");
        }
    }

    fn is_sampled(&self, invocation: &Invocation<'_>) -> bool {
        let rate = self.sample_rate();
        rate >= 1.0 || ((invocation.service.world.random)() as f64) < rate * u64::MAX as f64
    }

    fn keep(&self, invocation: &Invocation<'_>, outcome: &Outcome<'_>) -> Result<()> {
        let of_profile = invocation.namespace_noted().is_some_and(|(_, collection)| collection == PROFILE);
        // Files stay as they are while somebody copies them.
        if of_profile || invocation.service.write_lock.is_closed() {
            return Ok(());
        }
        let catalog = &invocation.service.catalog;
        let namespace = Namespace::new(invocation.request.database, PROFILE)?;
        self.begin_anew_where_full(catalog, &namespace)?;
        let described = describe(invocation, outcome);
        let document = for_insert(described.as_ref(), EmptyTimestamps::Kept, &invocation.service.world)?;
        let inserted = catalog.insert(&namespace, &[document], Order::Ordered, &*OperationContext::unlimited())?;
        inserted.failures.into_iter().map(|(_, failure)| failure).chain(inserted.stopped_by).next().map_or(Ok(()), Err)
    }

    fn begin_anew_where_full(&self, catalog: &Catalog, namespace: &Namespace) -> Result<()> {
        let is_full = || catalog.collection(namespace).is_some_and(|kept| kept.data_bytes() >= PROFILE_BYTES_MAX);
        if is_full() {
            let _only_one = self.beginning_anew.lock();
            if is_full() {
                catalog.drop_collection(namespace, &*OperationContext::unlimited())?;
            }
        }
        Ok(())
    }
}

/// The document of an operation in `system.profile`, which filters are asked of too.
fn describe(invocation: &Invocation<'_>, outcome: &Outcome<'_>) -> DocumentBuf {
    let connection = &*invocation.connection;
    let command = invocation.command_kept();
    let mut described = DocumentBuf::new()
        .with("op", operation_name(invocation.command.name))
        .with("ns", &invocation.namespace_shown())
        .with("command", &command);
    if let Some(examined) = invocation.examined() {
        described.append("keysExamined", examined.keys as i64).append("docsExamined", examined.documents as i64);
    }
    described.append("numYield", 0);
    if let Some(failure) = outcome.failure {
        described
            .append("errMsg", failure.message())
            .append("errName", failure.code().name().as_str())
            .append("errCode", failure.code().0);
    }
    described
        .append("responseLength", outcome.reply_bytes as i32)
        .append("protocol", if invocation.request.message.is_some() { "op_msg" } else { "op_query" })
        .append("millis", outcome.elapsed.as_millis() as i32)
        .append("ts", ValueRef::DateTime(invocation.service.world.now_ms()))
        .append("client", &connection.peer.to_string());
    if let Some(name) = connection.application() {
        described.append("appName", name);
    }
    described.append("allUsers", &ArrayBuf::new()).append("user", "");
    described
}

impl Service {
    /// Sets what is profiled of databases that no client has set a level for, as the command `profile` takes it, and the part of slow
    /// operations that is noted. A level that there is not profiles nothing.
    pub fn set_profiling_defaults(&self, level: i32, sample_rate: f64) {
        self.profiler.set_default(Level::of_number(level.into()).unwrap_or_default());
        self.profiler.set_sample_rate(sample_rate);
    }
}
