//! Passes over everything that may expire.
//!
//! Each pass takes the rules in turn and deletes one batch for each, until none has anything left, so a collection with
//! much to delete does not keep the others waiting. After a batch it rests as long as the batch took, which leaves at
//! least half of a core to other writers.
//! Source: MongoDB manual, "TTL Indexes".

use crate::expiry_option;
use crate::service::Service;
use bunko_bson::{DocumentBuf, ObjectId, ValueRef};
use bunko_catalog::stored_document::Stamps;
use bunko_catalog::{Collection, Index, IndexState};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;
use bunko_query::write::{Expiring, Writes};
use bunko_query::{Hint, QueryScope};
use bunko_timeseries::TimeSeries;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Documents that are deleted before the next index has its turn.
const BATCH_COUNT_MAX: u64 = 1_000;
/// A search starts again after this many documents, or after [`SEARCH_TIME_MAX`]: until then the store keeps deleted
/// documents for it.
const SEARCH_COUNT_MAX: u64 = 50_000;
const SEARCH_TIME_MAX: Duration = Duration::from_secs(5);
/// How often the thread checks whether it must stop or whether parameters have changed.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// The rule by which documents of a collection expire.
enum Rule {
    /// A TTL index, by the dates in its keys.
    Index(Arc<Index>),
    /// The collection's options, by the date in `_id`.
    Clustered,
    /// The options of a collection of buckets. Each bucket expires as a whole.
    Buckets(TimeSeries),
}

/// A collection and rule to work through, with its progress in this pass.
struct Task {
    collection: Arc<Collection>,
    rule: Rule,
    search: Option<(Expiring, Instant)>,
}

/// Outcome of a batch.
#[derive(Default)]
struct Batch {
    deleted: u64,
    has_more: bool,
}

/// Called when an index fails to delete anything: with the namespace, the index's name and the failure.
pub type OnFailure<'f> = dyn Fn(&str, &str, &Failure) + 'f;

/// Makes passes until the server stops.
pub fn delete_expired_until_stopped(service: &Service, on_failure: &OnFailure<'_>) {
    let (operation, clock) = (service.own_operation(), &service.world.clock);
    let mut last_pass = clock.now();
    while operation.check().is_ok() {
        std::thread::sleep(LOOK_INTERVAL);
        if goes_on(service) && clock.since(last_pass) >= service.parameters.expiry_sleep() {
            delete_expired(service, &operation, on_failure);
            last_pass = clock.now();
        }
    }
}

/// Whether documents expire: an operator may switch that off, and a secondary waits for its primary.
fn goes_on(service: &Service) -> bool {
    service.parameters.deletes_expired() && service.may_write()
}

/// One pass: deletes everything that is expired now, in batches, taking the rules in turn.
pub fn delete_expired(service: &Service, operation: &Arc<OperationContext>, on_failure: &OnFailure<'_>) {
    let state = &service.time_to_live;
    let mut expiring = tasks(service);
    while !expiring.is_empty() && operation.check().is_ok() && goes_on(service) {
        expiring.retain_mut(|task| {
            let began = service.world.clock.now();
            // A thread that closes the write lock sees this flag, or this thread sees the lock closed.
            state.is_deleting.store(true, Ordering::SeqCst);
            let is_held_back = service.write_lock.is_closed();
            let outcome = if is_held_back { Ok(Batch::default()) } else { delete_batch(service, task, operation) };
            state.is_deleting.store(false, Ordering::SeqCst);
            let batch = outcome.unwrap_or_else(|failure| {
                if operation.check().is_ok() && service.may_write() {
                    let namespace = task.collection.namespace();
                    on_failure(namespace.as_str(), &task.rule.index(&task.collection).name, &failure);
                }
                Batch::default()
            });
            state.deleted_documents.fetch_add(batch.deleted, Ordering::Relaxed);
            if batch.has_more {
                std::thread::sleep(service.world.clock.since(began));
            }
            batch.has_more && operation.check().is_ok() && service.may_write()
        });
        state.sub_passes.fetch_add(1, Ordering::Relaxed);
    }
    state.passes.fetch_add(1, Ordering::Relaxed);
}

impl Rule {
    /// The index that finds the documents.
    fn index(&self, collection: &Collection) -> Arc<Index> {
        match self {
            Self::Index(index) => Arc::clone(index),
            Self::Clustered | Self::Buckets(_) => collection.id_index(),
        }
    }
}

/// All expiry rules. An index is skipped while it is incomplete, or if its kind does not keep values in their order.
fn tasks(service: &Service) -> Vec<Task> {
    let mut found = Vec::new();
    let mut add = |collection: &Arc<Collection>, rule| {
        found.push(Task { collection: Arc::clone(collection), rule, search: None });
    };
    for database in service.catalog.databases() {
        for collection in service.catalog.collections(&database) {
            for index in collection.indexes().iter() {
                let is_expiring = index.expire_after_seconds.is_some() && index.kind.name().is_empty();
                if is_expiring && index.state() == IndexState::Ready {
                    add(&collection, Rule::Index(Arc::clone(index)));
                }
            }
            if expiry_option::seconds_of(&collection).is_none() {
                continue;
            }
            let options = collection.options();
            match (*options).as_ref().get("timeseries").and_then(ValueRef::as_document) {
                Some(series) => {
                    add(&collection, Rule::Buckets(TimeSeries::of_document(series)));
                }
                None => add(&collection, Rule::Clustered),
            }
        }
    }
    found
}

fn delete_batch(service: &Service, task: &mut Task, operation: &Arc<OperationContext>) -> Result<Batch> {
    let Task { collection, rule, search } = task;
    let seconds = match rule {
        Rule::Index(index) => index.expire_after_seconds.map(i64::from),
        Rule::Clustered | Rule::Buckets(_) => expiry_option::seconds_of(collection),
    };
    let Some(seconds) = seconds else { return Ok(Batch::default()) };
    // The index may have been dropped or replaced since the pass began.
    let index = rule.index(collection);
    if collection.is_dropped() || !collection.indexes().iter().any(|other| Arc::ptr_eq(other, &index)) {
        return Ok(Batch::default());
    }
    let now_ms = service.world.now_ms();
    let until_ms = now_ms - seconds * 1_000;
    let scope = Arc::new(QueryScope::new(now_ms, Arc::clone(operation)));
    let namespace = collection.namespace();
    let stamps: &dyn Stamps = &service.world;
    let mut writes = Writes::new(&service.catalog, &namespace, stamps, scope);
    match rule {
        Rule::Index(_) | Rule::Clustered => {
            let is_spent = |(expiring, begun): &mut (Expiring, Instant)| {
                expiring.deleted() >= SEARCH_COUNT_MAX || service.world.clock.since(*begun) >= SEARCH_TIME_MAX
            };
            if search.as_mut().is_none_or(is_spent) {
                *search = Some((writes.search_expired(collection, &index, until_ms)?, service.world.clock.now()));
            }
            let (expiring, _) = search.as_mut().expect("it has begun");
            let deleted = writes.delete_expired(expiring, BATCH_COUNT_MAX)?;
            Ok(Batch { deleted, has_more: !expiring.is_over() })
        }
        Rule::Buckets(series) => {
            let mut deleted = 0;
            for filter in expired_buckets(series, until_ms) {
                deleted +=
                    writes.delete_some(&filter, Some(Hint::Name(index.name.clone())), BATCH_COUNT_MAX - deleted)?;
                if deleted == BATCH_COUNT_MAX {
                    break;
                }
            }
            Ok(Batch { deleted, has_more: deleted == BATCH_COUNT_MAX })
        }
    }
}

/// Filters for buckets whose newest measurement has expired. A bucket's id begins with the seconds of its first
/// measurement in 32 bits, so buckets from before 1970 and after 2038 are searched separately.
fn expired_buckets(series: &TimeSeries, until_ms: i64) -> [DocumentBuf; 2] {
    let id = |seconds: u32| ObjectId::from_parts(seconds, [0; 5], 0);
    let newest = format!("control.max.{}", series.time_field);
    let too_old = DocumentBuf::new().with("$lte", ValueRef::DateTime(until_ms));
    let within = |bound: &str, seconds: u32| {
        let ids = DocumentBuf::new().with(bound, id(seconds));
        DocumentBuf::new().with("_id", &ids).with(&newest, &too_old)
    };
    let until_seconds = u32::try_from(until_ms.div_euclid(1_000) + 1).unwrap_or(0);
    [within("$lt", until_seconds.min(1 << 31)), within("$gte", 1 << 31)]
}
