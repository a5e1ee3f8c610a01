//! The best plans found by trial, by query shape. They are kept in memory: a restart, a drop and any change of the
//! indexes removes them.

use bunko_bson::DocumentBuf;
use bunko_store::KeyspaceId;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of plans of one collection; a further one replaces the oldest.
const PLANS_MAX: usize = 1_000;

/// The estimated cost of a cached plan, from the time when it was chosen.
#[derive(Clone, Copy, Debug)]
pub struct CachedEstimate {
    /// Version of the sample of the plan's index.
    pub version: u64,
    /// Cost, in units of one key.
    pub cost: f64,
}

/// The indexes of a cached plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedWay {
    /// One index, by its keyspace.
    Index(KeyspaceId),
    /// A geospatial index by the keys of a region, by its keyspace.
    Region(KeyspaceId),
    /// An index for each branch of an `$or`. Queries of one shape may have their conditions in different orders.
    Branches {
        /// A hash of the paths and operators in the `$or`.
        name: u64,
        /// Number of earlier `$or`s with that name.
        before: usize,
        /// Whether the branches are merged in the order of the sort.
        is_merged: bool,
    },
}

/// The plan of one shape.
#[derive(Clone, Debug)]
pub struct CachedPlan {
    /// The indexes.
    pub way: CachedWay,
    /// Units of work that the plan did in its trial.
    pub works: u64,
    /// The plan's estimate; `None` if its index was not sampled.
    pub estimate: Option<CachedEstimate>,
    /// Whether queries use the plan without another trial; a second trial must first confirm the first.
    pub is_active: bool,
    /// When the plan was made, in milliseconds since 1970.
    pub created_ms: i64,
    /// The query shape without its collation; `planCacheClear` finds plans by it.
    pub shape: Arc<[u8]>,
    /// Further facts that `$planCacheStats` shows.
    pub facts: Arc<DocumentBuf>,
}

/// The plans of a collection, by the bytes of their shapes.
#[derive(Debug, Default)]
pub struct PlanCache(RwLock<BTreeMap<Vec<u8>, CachedPlan>>);

impl PlanCache {
    /// The plan for a shape; `None` if none is cached.
    pub fn get(&self, key: &[u8]) -> Option<CachedPlan> {
        self.0.read().get(key).cloned()
    }

    /// Replaces the plan for a shape with the result of a trial.
    pub fn put(&self, key: &[u8], plan: CachedPlan) {
        let mut plans = self.0.write();
        if plans.len() >= PLANS_MAX && !plans.contains_key(key) {
            let oldest = plans.iter().min_by_key(|(_, plan)| plan.created_ms).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| plans.remove(&oldest));
        }
        plans.insert(key.to_vec(), plan);
    }

    /// Removes a plan.
    pub fn remove(&self, key: &[u8]) {
        self.0.write().remove(key);
    }

    /// Removes the plans of a shape under any collation; all plans for `None`.
    pub fn clear(&self, shape: Option<&[u8]>) {
        self.0.write().retain(|_, plan| shape.is_some_and(|shape| *plan.shape != *shape));
    }

    /// All plans, in order of their shapes.
    pub fn all(&self) -> Vec<CachedPlan> {
        self.0.read().values().cloned().collect()
    }
}
