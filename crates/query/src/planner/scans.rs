//! The lowest stages of a plan: scans of records or keys, and fetches.

use super::sort_order::GivenOrder;
use super::{AccessPath, Builder, Candidate, IndexBounds, Order, covered_plan, or_plan, predicates_of};
use crate::plan::UsedIndex;
use crate::stages::{
    AndScan, ClusteredScan, CollectionScan, Covered, DecidedByKeys, DocumentStage, Express, Fetch, GeoScan, IndexScan,
    KeysAlone, MergeScan, OrScan, Overlap, RandomScan, RecordStage, Residual, Shown,
};
use bunko_bson::Value;
use bunko_catalog::{Index, KeySpan, Multikey};
use bunko_matcher::Expression;
use bunko_store::Direction;
use std::borrow::Cow;
use std::sync::Arc;

impl Builder<'_> {
    pub(super) fn geo_scan(&mut self, index: Arc<Index>, spans: Vec<KeySpan>) -> AccessPath {
        let scan = Box::new(self.region(index, spans));
        self.fetch(scan, Residual::whole(), Order::Any)
    }

    /// A scan of the keys of a region.
    pub(super) fn region(&mut self, index: Arc<Index>, spans: Vec<KeySpan>) -> GeoScan {
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

    /// Documents at random places, if a `$sample` behind the query wants few of all documents.
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

    pub(super) fn express(&mut self, id: &Value) -> AccessPath {
        let index = self.collection.id_index();
        self.note(&index, index.multikey());
        AccessPath { stage: Box::new(Express::new(self.number(), index, id)), order: Order::AsAsked }
    }

    pub(super) fn index_scan(&mut self, candidate: Candidate) -> AccessPath {
        let predicates = predicates_of(self.query.filter.root());
        let residual = Residual::without(&candidate.bounds.decided, predicates.len());
        let order = if candidate.sorted.is_some() { Order::AsAsked } else { Order::Any };
        let GivenOrder { direction, split_fields } =
            candidate.sorted.unwrap_or(GivenOrder { direction: Direction::Forward, split_fields: 0 });
        if split_fields > 0 {
            let overlap = if candidate.bounds.multikey.is_empty() { Overlap::Excluded } else { Overlap::Possible };
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

    pub(super) fn or_scan(&mut self, mut or: or_plan::OrBounds) -> AccessPath {
        let is_all = matches!(self.query.filter.root(), Expression::Or(_));
        let residual = if is_all && or.is_decided { Residual::none() } else { Residual::whole() };
        if or.branches.len() == 1
            && let Some((bounds, direction)) = or.branches.pop()
        {
            let scan = self.scan(bounds, direction);
            return self.fetch(Box::new(scan), residual, or.order);
        }
        match or.order {
            Order::AsAsked => self.merged(or.branches, residual, Overlap::Possible),
            Order::Any => {
                let scans = Box::new(self.several_scans(or.branches));
                self.fetch(scans, residual, Order::Any)
            }
        }
    }

    /// Scans that each give the order of the query's sort, merged.
    fn merged(&mut self, scans: Vec<(IndexBounds, Direction)>, residual: Residual, overlap: Overlap) -> AccessPath {
        let scans = scans.into_iter().map(|(bounds, direction)| self.scan(bounds, direction)).collect();
        let merged = MergeScan::new(self.number(), scans, self.query.sort.as_ref(), overlap);
        self.fetch(Box::new(merged), residual, Order::AsAsked)
    }

    /// The records that two scans find, both in the order of records.
    pub(super) fn intersection(&mut self, one: IndexBounds, other: IndexBounds) -> AccessPath {
        let mut decided = [one.decided.as_slice(), &other.decided].concat();
        decided.sort_unstable();
        decided.dedup();
        let residual = Residual::without(&decided, predicates_of(self.query.filter.root()).len());
        let scans = [one, other].map(|bounds| self.scan(bounds, Direction::Forward));
        let scan = Box::new(AndScan { number: self.number(), scans });
        self.fetch(scan, residual, Order::Any)
    }

    /// A scan of the records that any of several scans finds.
    pub(super) fn several_scans(&mut self, branches: Vec<(IndexBounds, Direction)>) -> OrScan {
        let scan = |(bounds, direction)| Box::new(self.scan(bounds, direction)) as Box<dyn RecordStage>;
        let branches = branches.into_iter().map(scan).collect();
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
