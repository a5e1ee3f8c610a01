//! Estimates the cost of each candidate for a query, by samples of its index's keys.
//!
//! A candidate that is clearly the cheapest is chosen without a trial: its highest cost, with a factor, is below the
//! lowest cost of every other. The bounds of a cost come from the number of sampled keys, from keys added since, and
//! for a limit from the number of results: in the best case they are spread evenly, in the worst they come last. A
//! wrong estimate makes a query slower and never changes its answer; a plan that was chosen by one and finds nothing
//! for long is replaced by the winner of a trial.
//!
//! Where the others cost little too, the candidates run against each other as on MongoDB, and the winner is cached.

use crate::find_query::FindQuery;
use crate::plan::{Chosen, Contender, Plan, PlanEstimate};
use crate::planner::{BranchScan, IndexBounds, KEYS_BEFORE_SEEK, KeyCheck, KeyRanges, RangeRef};
use bunko_catalog::{Collection, Counted, Estimate, KeySpan, SampledIndex};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::sync::Arc;

/// Costs, in units of one key that is read in order.
const SEEK_COST: f64 = 2.0;
/// Cost of a document, and the size in bytes above which it grows with the document.
const DOCUMENT_COST: f64 = 4.0;
const DOCUMENT_BYTES: f64 = 512.0;
/// Cost of one comparison of a sort.
const COMPARISON_COST: f64 = 0.5;
/// Cost of putting a record into a hash table, or of looking it up.
const HASH_COST: f64 = 0.5;
/// A candidate is clearly cheaper than another if it costs at most this part of the other's cost.
const CLEAR_PART: f64 = 1.0 / 3.0;
/// Minimum cost of the other candidates for a choice without a trial: if they cost less, a trial costs little.
const COST_MIN: f64 = 2_000.0;
/// A collection of fewer documents has no choice by estimates, and no samples unless explain asks for them.
const DOCUMENTS_MIN: u64 = 1_000;
/// Maximum number of ranges that are looked up in a sample. If there are more, some of them stand for all.
const RANGES_MAX: usize = 256;
/// Maximum number of sampled keys that are checked against the bounds of later fields.
const CHECKED_MAX: usize = 64;
/// Cost of the keys between two that are found, with the seeks before and after the second.
const READ_PER_SEEK: f64 = 2.0 * (KEYS_BEFORE_SEEK as f64 + SEEK_COST);
/// Entries that a chosen plan may examine before its first result: this many times its highest estimate.
const WORKS_FACTOR: f64 = 10.0;

impl PlanEstimate {
    /// Entries that the plan may examine before its first result.
    pub fn works_max(&self) -> u64 {
        (WORKS_FACTOR * (COST_MIN + self.keys.high + self.documents.high)) as u64
    }
}

/// Candidates to be estimated, with the parts of the query that are not in their bounds.
pub(crate) struct Choice<'a> {
    pub collection: &'a Arc<Collection>,
    pub operation: &'a OperationContext,
    pub contenders: &'a [Contender],
    pub demand: Demand,
}

/// A way to find the records that two scans have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intersected {
    /// Both scans are in the order of records, and are walked side by side.
    Sorted,
    /// The records of one scan are looked up among those of the other.
    Hashed,
}

impl Intersected {
    fn serves(self, bounds: &IndexBounds) -> bool {
        match self {
            Self::Sorted => bounds.are_in_record_order(),
            Self::Hashed => bounds.can_be_intersected(),
        }
    }

    /// Number of keys that both scans read, if they have as many.
    fn keys(self, fewest: f64, other: f64) -> f64 {
        match self {
            // A scan that is far behind the other seeks.
            Self::Sorted => fewest + other.min(fewest * (SEEK_COST + 1.0)),
            Self::Hashed => fewest + other,
        }
    }
}

/// The order and the number of results that a query asks for.
#[derive(Clone, Copy)]
pub(crate) struct Demand {
    pub is_sorted: bool,
    pub wanted: Option<u64>,
}

impl Demand {
    pub fn of(query: &FindQuery) -> Self {
        Self { is_sorted: query.sort.is_some(), wanted: query.wanted() }
    }
}

/// The contenders of a plan.
fn choice_of(plan: &Plan) -> Choice<'_> {
    let (collection, query) = (plan.collection(), plan.query());
    let (operation, contenders) = (&*query.scope.operation, plan.parts().contenders.as_slice());
    Choice { collection, operation, contenders, demand: Demand::of(query) }
}

/// The estimates of a plan's contenders, in their order; `None` if some index has no sample.
/// # Errors
/// Errors of the operation.
pub(crate) fn of_contenders(plan: &Plan) -> Result<Option<Vec<PlanEstimate>>> {
    choice_of(plan).estimates()
}

/// The clearly cheapest way by these estimates: one of the plan's contenders, or the intersection of two of them.
pub(crate) fn clear_choice_of(plan: &Plan, estimates: &[PlanEstimate]) -> Option<PlanEstimate> {
    clear_choice(estimates).copied().or_else(|| choice_of(plan).intersection(estimates))
}

impl Choice<'_> {
    /// The estimates of the candidates, in their order; `None` if some index has no sample.
    /// # Errors
    /// Errors of the operation.
    pub fn estimates(&self) -> Result<Option<Vec<PlanEstimate>>> {
        let mut reads = Vec::with_capacity(self.contenders.len());
        for contender in self.contenders {
            let Some((read, version)) = self.read(contender)? else { return Ok(None) };
            reads.push((contender, read, version));
        }
        let results = results(&reads, self.collection.count() as f64);
        let estimate = |(contender, read, version): &(&Contender, Read, u64)| PlanEstimate {
            chosen: contender.chosen,
            keys: read.keys,
            documents: if contender.reads_documents { read.found } else { Estimate::default() },
            results,
            cost: self.cost(contender, read, results),
            version: *version,
        };
        Ok(Some(reads.iter().map(estimate).collect()))
    }

    /// The part of its indexes that a candidate reads, and the version of the samples; `None` if some index has no sample.
    fn read(&self, contender: &Contender) -> Result<Option<(Read, u64)>> {
        let (mut all, mut version) = (Read::default(), 0_u64);
        for scan in &contender.scans {
            let index = scan.index();
            let Some(sampled) = self.collection.index_sample(index, self.operation)? else { return Ok(None) };
            all.add(&match scan {
                BranchScan::Keys(bounds, _) => Read::of(bounds, &sampled, self.operation)?,
                BranchScan::Region(_, spans) => Read::of_spans(spans, &sampled),
            });
            version = version.wrapping_add(sampled.sample.version());
        }
        let documents = self.collection.count() as f64;
        let part = contender.scans_count as f64 / contender.scans.len().max(1) as f64;
        // A record that several branches find counts once.
        let found = if contender.scans_count > 1 { documents } else { f64::INFINITY };
        Ok(Some((
            Read {
                ranges: (all.ranges as f64 * part) as usize,
                keys: all.keys.map(|keys| keys * part),
                found: all.found.map(|keys| (keys * part).min(found)),
            },
            version,
        )))
    }

    /// The cheapest candidate, if it is clearly cheaper than a scan of the collection, which reads documents for the price
    /// of keys.
    /// # Errors
    /// Errors of the operation.
    pub fn cheaper_than_scan(&self) -> Result<Option<Chosen>> {
        let estimates = self.estimates()?.unwrap_or_default();
        let cheapest = estimates.iter().min_by(|one, other| one.cost.likely.total_cmp(&other.cost.likely));
        let is_clear = |cheapest: &&PlanEstimate| cheapest.cost.high <= self.collection.count() as f64 * CLEAR_PART;
        Ok(cheapest.filter(is_clear).map(|cheapest| cheapest.chosen))
    }

    /// The intersection of two candidates with conditions on different fields, if it is clearly cheaper than each candidate
    /// alone. The values are taken to be independent. If they always occur together, the keys of the second candidate are
    /// read for nothing: these cost at most a third of the cheapest candidate.
    pub fn intersection(&self, estimates: &[PlanEstimate]) -> Option<PlanEstimate> {
        let cheapest = estimates.iter().map(|estimate| estimate.cost.likely).min_by(f64::total_cmp)?;
        let ways = [Intersected::Sorted, Intersected::Hashed].into_iter();
        let all = ways.filter_map(|way| self.intersected(estimates, way));
        let best = all.min_by(|one, other| one.cost.likely.total_cmp(&other.cost.likely))?;
        (cheapest >= COST_MIN && best.cost.likely <= cheapest * CLEAR_PART).then_some(best)
    }

    /// The intersection, in this way, of the two candidates that read the fewest keys.
    fn intersected(&self, estimates: &[PlanEstimate], way: Intersected) -> Option<PlanEstimate> {
        let all = self.contenders.iter().zip(estimates);
        let serves = |contender: &Contender| contender.bounds().is_some_and(|bounds| way.serves(bounds));
        let mut served: Vec<_> = all.filter(|(contender, _)| serves(contender)).collect();
        served.sort_by(|(_, one), (_, other)| one.keys.likely.total_cmp(&other.keys.likely));
        let (one, fewest) = *served.first()?;
        let is_of_others =
            |contender: &Contender| narrowed_paths(contender).all(|path| narrowed_paths(one).all(|own| own != path));
        let (_, other) = *served[1..].iter().find(|(contender, _)| is_of_others(contender))?;
        let documents = (self.collection.count() as f64).max(1.0);
        let found = Estimate {
            low: 0.0,
            likely: fewest.keys.likely * other.keys.likely / documents,
            high: fewest.keys.high.min(other.keys.high),
        };
        let keys = fewest.keys.with(other.keys, |fewest, other| way.keys(fewest, other));
        let results = Estimate { likely: found.likely.min(fewest.results.likely), ..fewest.results };
        let scans = one.scans.clone();
        let contender = Contender { scans, is_sorted: false, decides_all: false, union: None, ..*one };
        let cost = match way {
            Intersected::Sorted => self.cost(&contender, &Read { ranges: 2, keys, found }, results),
            Intersected::Hashed => {
                // The first scan ends before there is a result, whatever the limit.
                let unlimited = Self { demand: Demand { wanted: None, ..self.demand }, ..*self };
                let keys = keys.map(|keys| keys * (1.0 + HASH_COST));
                unlimited.cost(&contender, &Read { ranges: 2, keys, found }, results)
            }
        };
        let chosen = match (fewest.chosen, other.chosen) {
            (Chosen::One(one), Chosen::One(other)) => Chosen::Both(one, other),
            _ => return None,
        };
        Some(PlanEstimate {
            chosen,
            keys,
            documents: if contender.reads_documents { found } else { Estimate::default() },
            results,
            cost,
            version: fewest.version,
        })
    }

    fn cost(&self, contender: &Contender, read: &Read, results: Estimate) -> Estimate {
        let bytes = self.collection.usual_document_bytes() as f64;
        let document = if contender.reads_documents { DOCUMENT_COST * (bytes / DOCUMENT_BYTES).max(1.0) } else { 0.0 };
        let seeks = read.ranges as f64 * SEEK_COST;
        // Records that several branches may find are remembered.
        let remembered = if contender.scans_count > 1 { HASH_COST } else { 0.0 };
        let scan = read.keys.with(read.found, |keys, found| seeks + keys * (1.0 + remembered) + found * document);
        if self.demand.is_sorted && !contender.is_sorted {
            return scan.with(results, |scan, results| scan + results * (results + 1.0).log2() * COMPARISON_COST);
        }
        let Some(wanted) = self.demand.wanted else { return scan };
        let part = |results: f64| (wanted as f64 / results.max(1.0)).min(1.0);
        Estimate { low: scan.low * part(results.high), likely: scan.likely * part(results.likely), high: scan.high }
    }
}

/// As [`of_contenders`], but none for a collection so small that a trial costs little.
/// # Errors
/// Errors of the operation.
pub(crate) fn for_choice(plan: &Plan) -> Result<Option<Vec<PlanEstimate>>> {
    if may_choose(plan.collection()) { of_contenders(plan) } else { Ok(None) }
}

/// Whether estimates choose among the collection's indexes.
pub(crate) fn may_choose(collection: &Collection) -> bool {
    collection.count() >= DOCUMENTS_MIN
}

/// The candidate that is clearly the cheapest, if there is one.
pub(crate) fn clear_choice(estimates: &[PlanEstimate]) -> Option<&PlanEstimate> {
    let cheapest = estimates.iter().min_by(|one, other| one.cost.likely.total_cmp(&other.cost.likely))?;
    let is_clear = |other: &PlanEstimate| {
        other.chosen == cheapest.chosen
            || other.cost.low >= COST_MIN && cheapest.cost.high <= other.cost.low * CLEAR_PART
    };
    estimates.iter().all(is_clear).then_some(cheapest)
}

/// The part of an index that a candidate reads.
#[derive(Default)]
struct Read {
    ranges: usize,
    keys: Estimate,
    /// Keys that lead to documents.
    found: Estimate,
}

impl Read {
    fn add(&mut self, other: &Self) {
        self.ranges += other.ranges;
        self.keys = self.keys.with(other.keys, |all, keys| all + keys);
        self.found = self.found.with(other.found, |all, keys| all + keys);
    }

    /// The keys of a region.
    fn of_spans(spans: &[KeySpan], sampled: &SampledIndex) -> Self {
        let mut counted = Counted { ranges: spans.len(), ..Counted::default() };
        for (start, end) in spans {
            let found = sampled.sample.between(start, end);
            counted.empty_ranges += usize::from(found.is_empty());
            counted.keys += found.len();
        }
        let keys = sampled.keys(&counted);
        Self { ranges: spans.len(), keys, found: keys }
    }

    fn of(bounds: &IndexBounds, sampled: &SampledIndex, operation: &OperationContext) -> Result<Self> {
        let ranges = KeyRanges::of(bounds);
        let check = KeyCheck::new(bounds, &ranges);
        let sample = &sampled.sample;
        let step = ranges.len().div_ceil(RANGES_MAX).max(1);
        let mut counted = Counted { point_fields: bounds.leading_points(), ..Counted::default() };
        let mut places = Vec::new();
        for range in (0..ranges.len()).step_by(step) {
            let found = match ranges.get(range) {
                RangeRef::Key(key) => sample.between(key, &[key, &[0]].concat()),
                RangeRef::Between { start, end } => sample.between(start, &end),
            };
            counted.ranges += 1;
            counted.empty_ranges += usize::from(found.is_empty());
            counted.keys += found.len();
            places.push(found);
        }
        let all = ranges.len() as f64 / counted.ranges.max(1) as f64;
        let keys = sampled.keys(&counted).map(|keys| (keys * all).min(sampled.entries as f64));
        let keys = if ranges.are_keys() { keys.map(|keys| keys.min(ranges.len() as f64)) } else { keys };
        if check.is_empty() {
            return Ok(Self { ranges: ranges.len(), keys, found: keys });
        }
        let (mut checked, mut passed) = (0, 0);
        for place in places.into_iter().flatten().step_by(counted.keys.div_ceil(CHECKED_MAX).max(1)) {
            checked += 1;
            passed += usize::from(check.first_failing(sample.key(place), operation)?.is_none());
        }
        let found = keys.with(share(passed, checked), |keys, share| keys * share);
        // A scan reads the keys that it finds, and for each value of the fields before some others until it seeks.
        let leading = check.first_field().and_then(|field| sample.distinct().get(field.checked_sub(1)?));
        let per_key = leading.map_or(1.0, |leading| leading * READ_PER_SEEK / sampled.entries.max(1) as f64);
        let keys = keys.with(found, |keys, found| keys.min(found + READ_PER_SEEK + keys * per_key));
        Ok(Self { ranges: ranges.len(), keys, found })
    }
}

/// The part of all keys that pass a check, by the sampled ones that did.
fn share(passed: usize, checked: usize) -> Estimate {
    if checked == 0 {
        return Estimate { low: 0.0, likely: 1.0, high: 1.0 };
    }
    let (passed, checked) = (passed as f64, checked as f64);
    let likely = passed / checked;
    let deviation = (likely * (1.0 - likely) / checked).sqrt();
    let least = 1.0 / checked;
    Estimate {
        low: (likely - 2.0 * deviation).max(0.0),
        likely: likely.max(least / 2.0),
        high: (likely + 2.0 * deviation + least).min(1.0),
    }
}

/// The results of the query: no more than any candidate finds. Conditions on other fields are taken to exclude
/// documents too, each further one with less weight, as they may depend on each other.
fn results(reads: &[(&Contender, Read, u64)], documents: f64) -> Estimate {
    let high = reads.iter().map(|(_, read, _)| read.found.high).fold(documents, f64::min);
    let mut by_size: Vec<_> = reads.iter().map(|(contender, read, _)| (contender, read)).collect();
    by_size.sort_by(|(_, one), (_, other)| one.found.likely.total_cmp(&other.found.likely));
    let (mut likely, mut weight) = (documents, 1.0);
    let mut seen: Vec<&str> = Vec::new();
    for (contender, read) in by_size {
        if contender.bounds().is_none() {
            // It has conditions of the others in its branches, and finds all results.
            likely = likely.min(read.found.likely);
            continue;
        }
        let paths: Vec<&str> = narrowed_paths(contender).collect();
        if paths.iter().any(|path| seen.contains(path)) {
            continue;
        }
        likely *= (read.found.likely / documents.max(1.0)).min(1.0).powf(weight);
        if contender.decides_all {
            break;
        }
        weight /= 2.0;
        seen.extend(paths);
    }
    Estimate { low: 0.0, likely: likely.min(high), high }
}

fn narrowed_paths(contender: &Contender) -> impl Iterator<Item = &str> {
    let fields = contender.bounds().into_iter().flat_map(|bounds| bounds.pattern.iter().zip(&bounds.fields));
    fields.filter(|(_, intervals)| !intervals.is_full()).map(|(field, _)| field.path.as_str())
}
