//! Plans that were found best by trial, by shape of query. Kept in memory: a restart, a drop and any change of the indexes
//! forget them.

use bunko_bson::DocumentBuf;
use bunko_store::KeyspaceId;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most plans that are kept for one collection; a further one takes the place of the oldest.
const PLANS_MAX: usize = 1_000;

/// What is known of one shape.
#[derive(Clone, Debug)]
pub struct CachedPlan {
    /// Where the keys of the index are that served best.
    pub index: KeyspaceId,
    /// How much the plan did in its trial.
    pub works: u64,
    /// Whether queries use it without another trial: the second trial has to confirm the first.
    pub is_active: bool,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
    /// The shape without the order of its strings, by which it is cleared.
    pub shape: Arc<[u8]>,
    /// What else `$planCacheStats` shows of it.
    pub facts: Arc<DocumentBuf>,
}

/// The plans of a collection by the bytes of their shapes.
#[derive(Debug, Default)]
pub struct PlanCache(RwLock<BTreeMap<Vec<u8>, CachedPlan>>);

impl PlanCache {
    /// What is known of a shape.
    pub fn get(&self, key: &[u8]) -> Option<CachedPlan> {
        self.0.read().get(key).cloned()
    }

    /// Puts what a trial has found in the place of what was known.
    pub fn put(&self, key: &[u8], plan: CachedPlan) {
        let mut plans = self.0.write();
        if plans.len() >= PLANS_MAX && !plans.contains_key(key) {
            let oldest = plans.iter().min_by_key(|(_, plan)| plan.created_ms).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| plans.remove(&oldest));
        }
        plans.insert(key.to_vec(), plan);
    }

    /// Forgets a plan.
    pub fn remove(&self, key: &[u8]) {
        self.0.write().remove(key);
    }

    /// Forgets the plans of a shape, in whatever order strings are, or all.
    pub fn clear(&self, shape: Option<&[u8]>) {
        self.0.write().retain(|_, plan| shape.is_some_and(|shape| *plan.shape != *shape));
    }

    /// All that is known, in order of the shapes.
    pub fn all(&self) -> Vec<CachedPlan> {
        self.0.read().values().cloned().collect()
    }
}
