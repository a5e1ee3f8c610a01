//! Chooses the best of several indexes for a query: by estimates, by trial, and by the results of earlier trials.
//!
//! If no rule proves a winner and none is clearly the cheapest by its estimate, each candidate runs for a number of
//! works. The candidate with the most results wins; a candidate that reached the end of its results beats all that did
//! not. Winners are cached by query shape. A cached plan that does many times the works of its trial without a result
//! is replaced after another trial, and one whose estimate has changed by a factor with a new sample of its index gets
//! another trial.

use crate::cached_way;
use crate::estimates;
use crate::execution::Execution;
use crate::explain::{Facts, Room, all_trials, sort_document, tree_of};
use crate::find_query::FindQuery;
use crate::plan::{Asked, Chosen, Contender, Contest, DecidedBy, Plan, PlanChoice, PlanEstimate, Trial};
use crate::planner;
use crate::run::ExecutionStatistics;
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_catalog::{CachedEstimate, CachedPlan, Index, PlanCache};
use bunko_errors::Result;
use bunko_store::{KeyspaceId, Snapshot};
use std::sync::Arc;

/// Works of each candidate per round; rounds go on until a candidate has enough results. Each round starts the plans
/// again, which costs less than keeping a candidate open.
const WORKS_BY_ROUND: [u64; 3] = [256, 2_048, 10_000];
/// Results that end a trial.
const RESULTS_MAX: u64 = 101;
/// A cached plan may do this many times the works of its trial. Source: MongoDB manual, "Query Plans".
const WORKS_FACTOR: u64 = 10;
/// A cached plan has another trial if its estimate has changed by this factor.
const ESTIMATE_FACTOR: f64 = 10.0;

/// Memory for building the shape of a filter, as a multiple of the filter document's size.
const SHAPE_PARTS: usize = 6;

/// The key of a cached plan.
struct Key {
    shape: Arc<[u8]>,
    whole: Vec<u8>,
}

impl Key {
    fn of(query: &FindQuery) -> Result<Self> {
        query.scope.operation.will_take(SHAPE_PARTS * query.filter_document.as_ref().len_bytes())?;
        let shape: Arc<[u8]> = query.shape().as_bytes().into();
        let mut whole = with_collation(&shape, query);
        if let Some(settings) = &query.scope.settings {
            whole.extend_from_slice(settings.document.as_ref().as_bytes());
        }
        Ok(Self { shape, whole })
    }
}

/// A query's shape together with its collation.
fn with_collation(shape: &[u8], query: &FindQuery) -> Vec<u8> {
    let mut whole = shape.to_vec();
    if let Some(collator) = query.scope.strings.collator() {
        whole.extend_from_slice(collator.specification().as_bytes());
    }
    whole
}

/// Chooses among a plan and its rivals. Returns the plan to run, and the works that it may do before its first result.
/// # Errors
/// Errors of the operation.
pub(crate) fn settle(plan: Plan, snapshot: &Arc<Snapshot>) -> Result<(Plan, u64, PlanChoice)> {
    if plan.parts().contenders.is_empty() || plan.contest().is_some() {
        return Ok((plan, u64::MAX, PlanChoice::Rules));
    }
    let estimates = estimates::for_choice(&plan)?.unwrap_or_default();
    if let Some(clear) = estimates::clear_choice_of(&plan, &estimates)
        && let Some(chosen) = by_chosen(&plan, clear.chosen)?
    {
        return Ok((chosen.kept_for(plan), clear.works_max(), PlanChoice::Estimates));
    }
    let key = Key::of(plan.query())?;
    let cache = plan.collection().plan_cache();
    let predicates = plan.query().filter.root().conjuncts();
    let known = cache.get(&key.whole);
    let way = known.as_ref().and_then(|known| cached_way::chosen(known.way, predicates));
    let known = known.filter(|known| !way.is_some_and(|way| has_moved((cache, &key), (known, way), &estimates)));
    if let Some(known) = known.as_ref().filter(|known| known.is_active)
        && let Some(way) = way
        && let Some(kept) = by_chosen(&plan, way)?
    {
        return Ok((kept.kept_for(plan), known.works.saturating_mul(WORKS_FACTOR), PlanChoice::Cache));
    }
    let trials = run(&plan, snapshot)?;
    let winner = trials[0].plan.clone();
    keep((cache, &key), entry(&key, &trials, &estimates), &trials, known.as_ref());
    Ok((winner, u64::MAX, PlanChoice::Trial))
}

/// Whether a new sample of a cached plan's index has changed the plan's estimate by a factor. Otherwise the cache notes
/// the estimate by the new sample.
fn has_moved(
    (cache, key): (&PlanCache, &Key),
    (known, way): (&CachedPlan, Chosen),
    estimates: &[PlanEstimate],
) -> bool {
    let (Some(then), Some(now)) = (known.estimate, cached_estimate(way, estimates)) else {
        return false;
    };
    if then.version == now.version {
        return false;
    }
    let factor = (then.cost.max(1.0) / now.cost.max(1.0)).ln().abs();
    let has_moved = factor > ESTIMATE_FACTOR.ln();
    if !has_moved {
        cache.put(&key.whole, CachedPlan { estimate: Some(now), ..known.clone() });
    }
    has_moved
}

fn cached_estimate(chosen: Chosen, estimates: &[PlanEstimate]) -> Option<CachedEstimate> {
    let own = estimates.iter().find(|estimate| estimate.chosen == chosen)?;
    Some(CachedEstimate { version: own.version, cost: own.cost.likely })
}

/// Chooses again after the cached plan did too much.
/// # Errors
/// As [`settle`].
pub(crate) fn settle_anew(plan: &Plan, snapshot: &Arc<Snapshot>) -> Result<Plan> {
    let key = Key::of(plan.query())?;
    let cache = plan.collection().plan_cache();
    cache.remove(&key.whole);
    // The rivals come from the original plan. An index finished since may lack keys that the snapshot shows.
    let trials = run(plan.origin(), snapshot)?;
    let estimates = estimates::for_choice(plan.origin())?.unwrap_or_default();
    let new = entry(&key, &trials, &estimates);
    // This trial counts as the second, so the new winner is cached for use at once.
    let before = CachedPlan { works: u64::MAX, ..new.clone() };
    keep((cache, &key), new, &trials, Some(&before));
    Ok(trials[0].plan.clone())
}

impl Plan {
    /// The plan for explain: if neither rules nor estimates prove the best index, the candidates run against each other.
    /// The cache is neither used nor changed.
    /// # Errors
    /// Errors of the operation.
    pub fn contested(&self) -> Result<Self> {
        if self.parts().contenders.is_empty() {
            return Ok(self.clone());
        }
        let estimates = estimates::of_contenders(self)?.unwrap_or_default();
        let clear = estimates::clear_choice_of(self, &estimates).filter(|_| estimates::may_choose(self.collection()));
        let chosen = clear.map(|clear| by_chosen(self, clear.chosen)).transpose()?.flatten();
        let (mut trials, decided_by) = match chosen {
            Some(chosen) => (untried(self, chosen)?, DecidedBy::Estimates),
            None => {
                let snapshot = Arc::new(self.collection().snapshot_for(&*self.query().scope.operation)?);
                (run(self, &snapshot)?, DecidedBy::Trial)
            }
        };
        for trial in &mut trials {
            let estimate = estimates.iter().chain(&clear).find(|estimate| trial.plan.chosen() == Some(estimate.chosen));
            trial.plan = trial.plan.clone().estimated(estimate.copied());
        }
        let winner = trials[0].plan.clone();
        let known = self.collection().plan_cache().get(&Key::of(self.query())?.whole);
        let is_cached = decided_by == DecidedBy::Trial
            && known.is_some_and(|known| {
                let predicates = self.query().filter.root().conjuncts();
                known.is_active && winner.chosen() == cached_way::chosen(known.way, predicates)
            });
        Ok(winner.after(Contest { trials, decided_by, is_cached }))
    }

    /// A plan for each candidate, whatever it costs: other ways to the same answer.
    /// # Errors
    /// As [`crate::plan`].
    pub fn rivals(&self) -> Result<Vec<Self>> {
        candidates(self)
    }

    /// A plan for each pair of candidates whose intersection can be read, whatever it costs: another way to the same
    /// answer.
    /// # Errors
    /// As [`crate::plan`].
    pub fn intersections(&self) -> Result<Vec<Self>> {
        let bounds = self.parts().contenders.iter().filter_map(Contender::bounds);
        let contenders: Vec<KeyspaceId> = bounds.map(|bounds| bounds.index.keyspace).collect();
        let mut found = Vec::new();
        for (position, one) in contenders.iter().enumerate() {
            for other in &contenders[..position] {
                let asked = Asked { chosen: Chosen::Both(*one, *other), union: None };
                found.extend(planner::plan_by(self.collection(), self.query(), asked)?);
            }
        }
        Ok(found)
    }
}

/// The chosen plan and the other candidates, without a run.
fn untried(plan: &Plan, chosen: Plan) -> Result<Vec<Trial>> {
    let mut others = candidates(plan)?;
    others.retain(|other| other.chosen() != chosen.chosen());
    let trials = std::iter::once(chosen).chain(others);
    Ok(trials
        .map(|plan| Trial {
            plan,
            stages: Vec::new(),
            totals: ExecutionStatistics::default(),
            works: 0,
            score: 0.0,
            is_enough: false,
        })
        .collect())
}

/// The plan that reads the chosen index, or the chosen two indexes.
fn by_chosen(plan: &Plan, chosen: Chosen) -> Result<Option<Plan>> {
    if plan.chosen() == Some(chosen) {
        return Ok(Some(plan.clone()));
    }
    let contender = plan.parts().contenders.iter().find(|contender| contender.chosen == chosen);
    match contender {
        Some(contender) => planner::plan_by(plan.collection(), plan.query(), contender.asked()),
        None if matches!(chosen, Chosen::Both(..)) => {
            planner::plan_by(plan.collection(), plan.query(), Asked { chosen, union: None })
        }
        None => Ok(None),
    }
}

/// A plan for each candidate. The first one is the plan that the rules prefer.
fn candidates(plan: &Plan) -> Result<Vec<Plan>> {
    let mut candidates = vec![plan.clone()];
    for rival in plan.parts().contenders.iter().skip(1) {
        candidates.extend(planner::plan_by(plan.collection(), plan.query(), rival.asked())?);
    }
    Ok(candidates)
}

/// Runs all candidates; winner first. On a tie the candidate that the rules prefer wins.
fn run(plan: &Plan, snapshot: &Arc<Snapshot>) -> Result<Vec<Trial>> {
    let candidates = candidates(plan)?;
    let enough = plan.query().wanted().unwrap_or(RESULTS_MAX).min(RESULTS_MAX);
    let mut trials = Vec::new();
    for works in WORKS_BY_ROUND {
        let round = candidates.iter().map(|candidate| trial(candidate, snapshot, works, enough));
        trials = round.collect::<Result<Vec<_>>>()?;
        if trials.iter().any(|trial| trial.is_enough) {
            break;
        }
    }
    trials.sort_by(|one, other| other.score.total_cmp(&one.score));
    Ok(trials)
}

/// Runs one candidate. A candidate that fails loses; if all fail, running the plan returns the error.
fn trial(plan: &Plan, snapshot: &Arc<Snapshot>, works_max: u64, enough: u64) -> Result<Trial> {
    let mut execution = Execution::new(plan.clone(), Arc::clone(snapshot));
    let (mut found, mut is_at_end, mut has_failed) = (0, false, false);
    execution.limit_works(works_max);
    while found < enough && !is_at_end && !has_failed && !execution.is_exhausted() {
        match execution.next_record().map(|row| row.is_some()) {
            Ok(true) => found += 1,
            Ok(false) => is_at_end = true,
            Err(_) => has_failed = !execution.is_exhausted(),
        }
    }
    let works = execution.works() + u64::from(is_at_end);
    let (stages, totals) = (execution.all_statistics().to_vec(), execution.statistics());
    // The next candidate gets the memory of this one, so it may succeed though this one held more than is allowed.
    drop(execution);
    if has_failed {
        plan.query().scope.operation.check()?;
    }
    let score = if has_failed { 0.0 } else { score(plan, found, works, is_at_end) };
    let is_enough = is_at_end || found >= enough;
    Ok(Trial { plan: plan.clone(), stages, totals, works, score, is_enough })
}

/// Score of a run; on a tie a plan without a sort beats a plan with one.
fn score(plan: &Plan, found: u64, works: u64, is_at_end: bool) -> f64 {
    let works = works.max(1) as f64;
    let productivity = found as f64 / works;
    let needs_no_sort = if plan.query().sort.is_some() && !plan.sorts() { (0.1 / works).min(0.0001) } else { 0.0 };
    1.0 + productivity + needs_no_sort + if is_at_end { 1.0 } else { 0.0 }
}

/// Caches the winner: inactive at first, and active from the second time on unless it did more works.
fn keep((cache, key): (&PlanCache, &Key), new: CachedPlan, trials: &[Trial], known: Option<&CachedPlan>) {
    if trials.len() < 2 || trials[0].score == 0.0 {
        return;
    }
    let new = match known {
        None => new,
        Some(known) if new.works <= known.works => CachedPlan { is_active: true, ..new },
        Some(known) => CachedPlan { works: known.works.saturating_mul(2), ..new },
    };
    cache.put(&key.whole, new);
}

/// Maximum size of the facts that `$planCacheStats` shows of a cached plan: its stages and those of its trial.
const FACTS_BYTES_MAX: usize = 64 * 1024;

fn entry(key: &Key, trials: &[Trial], estimates: &[PlanEstimate]) -> CachedPlan {
    let winner = &trials[0];
    let query = winner.plan.query();
    let sort = query.sort.as_ref().map(sort_document).unwrap_or_default();
    let room = Room::new(FACTS_BYTES_MAX);
    let mut created_from = Facts::new(DocumentBuf::new(), &room);
    created_from.append_large("query", &query.filter_document);
    let mut created_from = created_from.into_document();
    created_from.append("sort", &sort).append("projection", &query.projection_document);
    if let Some(collator) = query.scope.strings.collator() {
        created_from.append("collation", collator.specification());
    }
    let scores: ArrayBuf = trials.iter().map(|trial| trial.score).collect();
    let mut facts = DocumentBuf::new().with("version", "1");
    append_hashes(&mut facts, &winner.plan);
    facts
        .append("createdFromQuery", &created_from)
        .append("cachedPlan", &tree_of(&winner.plan, &room))
        .append("creationExecStats", &all_trials(trials, &room))
        .append("candidatePlanScores", &scores)
        .append("indexFilterSet", winner.plan.is_filtered());
    let chosen = winner.plan.chosen().unwrap_or(Chosen::One(KeyspaceId(0)));
    CachedPlan {
        way: cached_way::of(chosen, query.filter.root().conjuncts()),
        estimate: cached_estimate(chosen, estimates),
        works: winner.works,
        is_active: false,
        created_ms: query.scope.now_ms,
        shape: Arc::clone(&key.shape),
        facts: Arc::new(facts),
    }
}

/// Adds the hash of the query's shape, and the hash of the shape with the present indexes.
pub(crate) fn append_hashes(facts: &mut DocumentBuf, plan: &Plan) {
    append_hashes_of(facts, plan.query(), &plan.collection().indexes());
}

/// As [`append_hashes`], without a plan.
pub(crate) fn append_hashes_of(facts: &mut DocumentBuf, query: &FindQuery, indexes: &[Arc<Index>]) {
    let shape = hash(HASH_START, &with_collation(query.shape().as_bytes(), query));
    let with_indexes = indexes.iter().fold(shape, |before, index| hash(before, index.document.as_ref().as_bytes()));
    let shape = format!("{shape:08X}");
    facts
        .append("queryHash", shape.as_str())
        .append("planCacheShapeHash", shape.as_str())
        .append("planCacheKey", format!("{with_indexes:08X}").as_str());
}

const HASH_START: u32 = 0x811c_9dc5;

/// FNV-1a: short, and equal in every process.
fn hash(start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_catalog::{CachedWay, Estimate};

    const INDEX: KeyspaceId = KeyspaceId(7);

    fn estimate(version: u64, cost: f64) -> PlanEstimate {
        let exactly = |number| Estimate { low: number, likely: number, high: number };
        PlanEstimate {
            chosen: Chosen::One(INDEX),
            keys: exactly(cost),
            documents: exactly(0.0),
            results: exactly(cost),
            cost: exactly(cost),
            version,
        }
    }

    #[test]
    fn a_cached_plan_ages_when_a_new_sample_moves_its_estimate() {
        let (cache, shape) = (PlanCache::default(), Arc::from(*b"shape"));
        let key = Key { shape: Arc::clone(&shape), whole: b"whole".to_vec() };
        let known = CachedPlan {
            way: CachedWay::Index(INDEX),
            works: 1,
            estimate: Some(CachedEstimate { version: 1, cost: 100.0 }),
            is_active: true,
            created_ms: 0,
            shape,
            facts: Arc::default(),
        };
        let moves = |known: &CachedPlan, estimates: &[PlanEstimate]| {
            has_moved((&cache, &key), (known, Chosen::One(INDEX)), estimates)
        };
        // With the same sample, only the values in the query can have changed the estimate.
        assert!(!moves(&known, &[estimate(1, 90_000.0)]));
        assert!(!moves(&known, &[]));
        assert!(!moves(&CachedPlan { estimate: None, ..known.clone() }, &[estimate(2, 1.0)]));
        assert!(cache.all().is_empty());

        assert!(!moves(&known, &[estimate(2, 900.0)]));
        assert_eq!(cache.all()[0].estimate.map(|noted| noted.version), Some(2), "the new sample is noted");
        assert!(moves(&known, &[estimate(2, 1_100.0)]));
        assert!(moves(&known, &[estimate(2, 9.0)]));
    }
}
