//! The lowest stages of a plan: scans of records or keys, and fetches.

use super::branch_scan::BranchScan;
use super::or_plan::{self, OrBounds};
use super::sort_order::GivenOrder;
use super::{AccessPath, Builder, Candidate, IndexBounds, Order, covered_plan};
use crate::plan::{Chosen, UsedIndex};
use crate::stages::{
    AndScan, ClusteredScan, CollectionScan, Covered, DecidedByKeys, DocumentStage, Express, Fetch, GeoScan, HashScan,
    IndexScan, KeysAlone, MergeScan, OrScan, Overlap, RandomScan, RecordStage, Residual, Shown, StoredCount,
};
use bunko_bson::Value;
use bunko_catalog::{Index, KeySpan, Multikey, Reading};
use bunko_matcher::planted::{Fault, active};
use bunko_store::Direction;
use std::borrow::Cow;
use std::sync::Arc;

impl Builder<'_> {
    /// The documents that the scan of a region finds.
    pub(super) fn geo_scan(&mut self, region: BranchScan) -> AccessPath {
        self.made = Some(Chosen::Region(region.index().keyspace));
        let scan = self.branch_scan(region);
        self.fetch(scan, Residual::whole(), Order::Any)
    }

    /// A scan of the keys of a region.
    fn region(&mut self, index: Arc<Index>, spans: Vec<KeySpan>) -> GeoScan {
        self.note(&index, index.multikey());
        GeoScan { number: self.number(), index, spans: spans.into() }
    }

    pub(super) fn collection_scan(&mut self, direction: Direction) -> AccessPath {
        let residual = if self.query.has_no_filter() { Residual::none() } else { Residual::whole() };
        if self.collection.is_clustered() {
            let bounds = IndexBounds::full(&self.collection.id_index());
            return self.clustered_scan(bounds, direction, residual, Order::Any);
        }
        let stage = CollectionScan { number: self.number(), direction, residual };
        AccessPath { stage: Box::new(stage), order: Order::Any }
    }

    /// Documents at random places, if a `$sample` after the query wants few of all documents.
    pub(super) fn sample(&mut self) -> Option<AccessPath> {
        let query = self.query;
        let size = query.sampled.filter(|size| RandomScan::pays(*size, self.collection.count()))?;
        let is_of_all = query.has_no_filter() && query.sort.is_none() && query.hint.is_none();
        if !is_of_all || query.holds_metadata() || self.collection.is_clustered() {
            return None;
        }
        let stage = RandomScan { number: self.number(), size };
        Some(AccessPath { stage: Box::new(stage), order: Order::Any })
    }

    /// The number of documents that the store keeps, if the query asks for the number of all. It is that of the present
    /// state, which a shared snapshot may not show.
    pub(super) fn stored_count(&mut self) -> Option<AccessPath> {
        let query = self.query;
        let is_of_all = query.has_no_filter() && query.sort.is_none() && query.hint.is_none() && query.among.is_none();
        let is_present = || Reading::of(&*query.scope.operation).is_present();
        if !query.is_counted || !is_of_all || query.holds_metadata() || !is_present() {
            return None;
        }
        let stage = StoredCount { number: self.number() };
        Some(AccessPath { stage: Box::new(stage), order: Order::Any })
    }

    pub(super) fn express(&mut self, id: &Value) -> AccessPath {
        let index = self.collection.id_index();
        self.note(&index, index.multikey());
        AccessPath { stage: Box::new(Express::new(self.number(), index, id)), order: Order::AsAsked }
    }

    pub(super) fn index_scan(&mut self, candidate: Candidate) -> AccessPath {
        self.made = Some(Chosen::One(candidate.bounds.index.keyspace));
        let predicates = self.query.filter.root().conjuncts();
        let residual = Residual::without(&candidate.bounds.decided, predicates.len());
        let order = if candidate.sorted.is_some() { Order::AsAsked } else { Order::Any };
        let GivenOrder { direction, split_fields } =
            candidate.sorted.unwrap_or(GivenOrder { direction: Direction::Forward, split_fields: 0 });
        if split_fields > 0 {
            let is_disjoint = candidate.bounds.multikey.is_empty() || active(Fault::MergedScansDisjoint);
            let overlap = if is_disjoint { Overlap::Excluded } else { Overlap::Possible };
            let parts = candidate.bounds.by_value(split_fields).into_iter().map(|bounds| (bounds, direction));
            return self.merged(parts.collect(), residual, overlap);
        }
        if candidate.bounds.index.is_clustered {
            return self.clustered_scan(candidate.bounds, direction, residual, order);
        }
        let covered = self.covered(&candidate.bounds, &residual, order);
        let scan = self.scan(candidate.bounds, direction);
        if let Some((fields, decided)) = covered {
            let computes = self.query.projection.as_ref().is_some_and(|projection| projection.computes());
            // The fields of the sort are projected away above it.
            let is_sorted_above = self.query.sort.is_some() && order == Order::Any;
            self.is_covered = !computes && !is_sorted_above;
            let is_projection = self.is_covered && !self.query.returns_keys;
            let shown = if is_projection { Shown::AsProjection } else { Shown::AsScan };
            return AccessPath { stage: Box::new(Covered::new((self.number(), shown), scan, fields, decided)), order };
        }
        self.fetch(Box::new(scan), residual, order)
    }

    /// The index fields that the query and its sort need, if the keys alone answer it.
    pub(super) fn covered(
        &self,
        bounds: &IndexBounds,
        residual: &Residual,
        order: Order,
    ) -> Option<(Vec<usize>, DecidedByKeys)> {
        let decided = residual.decided_by_keys()?;
        let sort = self.query.sort.as_ref().filter(|_| order == Order::Any);
        let needed: Cow<'_, [Box<str>]> = if self.query.needs_keys_alone() && sort.is_none() {
            bounds.index.fields.iter().map(|field| field.path.as_str().into()).collect()
        } else {
            self.query.needed_alone()?.into()
        };
        let needed = match sort {
            None => needed,
            Some(sort) if sort.reads_metadata() => return None,
            Some(sort) => {
                let mut all: Vec<Box<str>> = needed.into_owned();
                all.extend(sort.parts().map(|(path, _)| path.dotted().into()));
                all.sort_unstable();
                all.dedup();
                all.into()
            }
        };
        Some((covered_plan::fields(bounds, &needed)?, decided))
    }

    fn clustered_scan(
        &mut self,
        bounds: IndexBounds,
        direction: Direction,
        residual: Residual,
        order: Order,
    ) -> AccessPath {
        let scan = self.scan(bounds, direction);
        let stage = ClusteredScan::new(self.number(), scan, direction, residual);
        AccessPath { stage: Box::new(stage), order }
    }

    /// The documents that the scans of an `$or`'s branches find; `chosen` if other ways may be chosen instead.
    pub(super) fn or_scan(&mut self, mut or: OrBounds, chosen: Option<Chosen>) -> AccessPath {
        self.made = chosen;
        let residual = or_plan::residual(&or);
        if or.branches.len() == 1
            && let Some(only) = or.branches.pop()
        {
            let scan = self.branch_scan(only);
            return self.fetch(scan, residual, or.order);
        }
        match or.order {
            Order::AsAsked => {
                let scans = or.branches.into_iter().filter_map(|branch| match branch {
                    BranchScan::Keys(bounds, direction) => Some((bounds, direction)),
                    // A region gives no order.
                    BranchScan::Region(..) => None,
                });
                self.merged(scans.collect(), residual, Overlap::Possible)
            }
            Order::Any => {
                let scans = Box::new(self.several_scans(or.branches));
                self.fetch(scans, residual, Order::Any)
            }
        }
    }

    pub(super) fn branch_scan(&mut self, branch: BranchScan) -> Box<dyn RecordStage> {
        match branch {
            BranchScan::Keys(bounds, direction) => Box::new(self.scan(bounds, direction)),
            BranchScan::Region(index, spans) => Box::new(self.region(index, spans)),
        }
    }

    /// Scans that each give the order of the query's sort, merged.
    fn merged(&mut self, scans: Vec<(IndexBounds, Direction)>, residual: Residual, overlap: Overlap) -> AccessPath {
        let scans = scans.into_iter().map(|(bounds, direction)| self.scan(bounds, direction)).collect();
        let merged = MergeScan::new(self.number(), scans, self.query.sort.as_ref(), overlap);
        self.fetch(Box::new(merged), residual, Order::AsAsked)
    }

    /// The records that two scans find. They are walked side by side if both are in the order of records; otherwise those
    /// of the first are held in memory.
    pub(super) fn intersection(&mut self, one: IndexBounds, other: IndexBounds) -> AccessPath {
        self.made = Some(Chosen::Both(one.index.keyspace, other.index.keyspace));
        let mut decided = [one.decided.as_slice(), &other.decided].concat();
        decided.sort_unstable();
        decided.dedup();
        let residual = Residual::without(&decided, self.query.filter.root().conjuncts().len());
        let are_ordered = one.are_in_record_order() && other.are_in_record_order();
        let scans = [one, other].map(|bounds| self.scan(bounds, Direction::Forward));
        let number = self.number();
        let scan: Box<dyn RecordStage> = if are_ordered {
            Box::new(AndScan { number, scans })
        } else {
            Box::new(HashScan { number, scans: scans.map(Arc::new) })
        };
        self.fetch(scan, residual, Order::Any)
    }

    /// A scan of the records that any of several scans finds.
    pub(super) fn several_scans(&mut self, branches: Vec<BranchScan>) -> OrScan {
        let branches = branches.into_iter().map(|branch| self.branch_scan(branch)).collect();
        OrScan { number: self.number(), branches }
    }

    pub(super) fn scan(&mut self, bounds: IndexBounds, direction: Direction) -> IndexScan {
        self.note(&bounds.index, Arc::clone(&bounds.multikey));
        IndexScan::new(self.number(), bounds, direction)
    }

    pub(super) fn fetch(&mut self, input: Box<dyn RecordStage>, residual: Residual, order: Order) -> AccessPath {
        let stage: Box<dyn DocumentStage> = match self.keys_suffice(&residual) {
            Some(decided) => Box::new(KeysAlone::new(input, decided)),
            None => Box::new(self.fetched(input, residual)),
        };
        AccessPath { stage, order }
    }

    /// Proof that neither the filter nor the reader of the result needs a document.
    pub(super) fn keys_suffice(&self, residual: &Residual) -> Option<DecidedByKeys> {
        residual.decided_by_keys().filter(|_| self.query.needs_no_field())
    }

    pub(super) fn fetched(&mut self, input: Box<dyn RecordStage>, residual: Residual) -> Fetch {
        Fetch { number: self.number(), residual, input }
    }

    pub(super) fn note(&mut self, index: &Arc<Index>, multikey: Arc<Multikey>) {
        // Scans of one index that were split count as one use.
        let is_last = |last: &UsedIndex| Arc::ptr_eq(&last.index, index) && Arc::ptr_eq(&last.multikey, &multikey);
        if !self.used.last().is_some_and(is_last) {
            self.used.push(UsedIndex { index: Arc::clone(index), multikey });
        }
    }
}
