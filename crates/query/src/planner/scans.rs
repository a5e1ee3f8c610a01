//! The lowest stages of a plan: those that go over records or keys, and that fetch what keys lead to.

use super::{Builder, Candidate, Found, IndexBounds, Order, covered_plan, or_plan, predicates_of};
use crate::plan::UsedIndex;
use crate::stages::{
    ClusteredScan, CollectionScan, Covered, Express, Fetch, GeoScan, IndexScan, KeysAlone, OrScan, RecordStage,
    Residual,
};
use bunko_bson::Value;
use bunko_catalog::{Index, KeySpan, Multikey};
use bunko_matcher::Expression;
use bunko_store::Direction;
use std::sync::Arc;

impl Builder<'_> {
    pub(super) fn geo_scan(&mut self, index: Arc<Index>, spans: Vec<KeySpan>) -> Found {
        self.note(&index, index.multikey());
        let scan = GeoScan { number: self.number(), index, spans: spans.into() };
        self.fetch(Box::new(scan), Residual::whole(), Order::Any)
    }

    pub(super) fn collection_scan(&mut self, direction: Direction) -> Found {
        let residual = if self.query.has_no_filter() { Residual::none() } else { Residual::whole() };
        if self.collection.is_clustered() {
            let bounds = IndexBounds::full(&self.collection.id_index());
            return self.clustered_scan(bounds, direction, residual, Order::Any);
        }
        let stage = CollectionScan { number: self.number(), direction, residual };
        Found { stage: Box::new(stage), order: Order::Any }
    }

    pub(super) fn express(&mut self, id: &Value) -> Found {
        let index = self.collection.id_index();
        self.note(&index, index.multikey());
        Found { stage: Box::new(Express::new(self.number(), index, id)), order: Order::AsAsked }
    }

    pub(super) fn index_scan(&mut self, candidate: Candidate) -> Found {
        let predicates = predicates_of(self.query.filter.root());
        let residual = Residual::without(&candidate.bounds.decided, predicates.len());
        let direction = candidate.sorted.unwrap_or(Direction::Forward);
        let order = if candidate.sorted.is_some() { Order::AsAsked } else { Order::Any };
        if candidate.bounds.index.is_clustered {
            return self.clustered_scan(candidate.bounds, direction, residual, order);
        }
        let covered = self.covered(&candidate.bounds, &residual, order);
        let scan = self.scan(candidate.bounds, direction);
        if let Some(fields) = covered {
            self.is_covered = true;
            return Found { stage: Box::new(Covered { number: self.number(), scan, fields }), order };
        }
        self.fetch(Box::new(scan), residual, order)
    }

    /// The fields of an index that are all that is needed, where its keys alone give the answer.
    pub(super) fn covered(&self, bounds: &IndexBounds, residual: &Residual, order: Order) -> Option<Vec<usize>> {
        let is_ordered = self.query.sort.is_none() || order == Order::AsAsked;
        let needed = self.query.needed_alone().filter(|_| is_ordered && residual.is_nothing())?;
        covered_plan::fields(bounds, needed)
    }

    fn clustered_scan(&mut self, bounds: IndexBounds, direction: Direction, residual: Residual, order: Order) -> Found {
        let scan = self.scan(bounds, direction);
        let stage = ClusteredScan::new(self.number(), scan, direction, residual);
        Found { stage: Box::new(stage), order }
    }

    pub(super) fn or_scan(&mut self, or: or_plan::OrBounds) -> Found {
        let is_all = matches!(self.query.filter.root(), Expression::Or(_));
        let residual = if is_all && or.is_decided { Residual::none() } else { Residual::whole() };
        let scan = |bounds| Box::new(self.scan(bounds, Direction::Forward)) as Box<dyn RecordStage>;
        let branches = or.branches.into_iter().map(scan).collect();
        let or = OrScan { number: self.number(), branches };
        self.fetch(Box::new(or), residual, Order::Any)
    }

    pub(super) fn scan(&mut self, bounds: IndexBounds, direction: Direction) -> IndexScan {
        self.note(&bounds.index, Arc::clone(&bounds.multikey));
        IndexScan::new(self.number(), bounds, direction)
    }

    pub(super) fn fetch(&mut self, input: Box<dyn RecordStage>, residual: Residual, order: Order) -> Found {
        if residual.is_nothing() && self.query.needs_no_field() {
            return Found { stage: Box::new(KeysAlone { input }), order };
        }
        Found { stage: Box::new(Fetch { number: self.number(), residual, input }), order }
    }

    pub(super) fn note(&mut self, index: &Arc<Index>, multikey: Arc<Multikey>) {
        self.used.push(UsedIndex { index: Arc::clone(index), multikey });
    }
}
