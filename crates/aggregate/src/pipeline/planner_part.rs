//! The part of a pipeline that the query planner runs.

use super::Pipeline;
use crate::Stage;
use crate::stage::Plannable;
use bunko_bson::DocumentBuf;
use bunko_expression::SortPattern;
use bunko_query::Inclusion;
use std::sync::Arc;

/// The part of a pipeline that the query planner runs, in this order: filters, sort, skip, limit, projection.
#[derive(Clone, Default)]
pub struct PlannerPart {
    /// Filters, all of which a document must match.
    pub filters: Vec<DocumentBuf>,
    /// The search by distance, if there is one.
    pub near: Option<Arc<dyn Stage>>,
    /// The sort order, if there is a sort.
    pub sort: Option<SortPattern>,
    /// Number of documents to skip.
    pub skip: u64,
    /// Maximum number of documents; never 0.
    pub limit: Option<u64>,
    /// The projection, if there is one.
    pub projection: Option<Inclusion>,
}

impl PlannerPart {
    /// Takes over the work of the stage after this part, if the planner can do it there; returns whether it did.
    /// `next` is the stage after that one.
    fn take(&mut self, stage: &Arc<dyn Stage>, next: Option<&Arc<dyn Stage>>) -> bool {
        match stage.plannable() {
            Plannable::Filter(filter) if self.is_filter() => self.filters.push(filter.to_owned()),
            Plannable::Near(near) if self.is_filter() => {
                self.filters.push(near.query().to_owned());
                self.near = Some(Arc::clone(stage));
            }
            Plannable::Sort(pattern) if self.is_filter() => self.sort = Some(pattern.clone()),
            Plannable::Skip(count) => return self.take_skip(count),
            Plannable::Limit(count) => self.limit = Some(self.limit.map_or(count, |limit| limit.min(count))),
            Plannable::Projection(inclusion) if self.may_project(inclusion, next) => {
                self.projection = Some(inclusion.clone());
            }
            _ => return false,
        }
        true
    }

    /// Whether the part has nothing but filters so far.
    fn is_filter(&self) -> bool {
        self.sort.is_none() && self.near.is_none() && self.projection.is_none() && !self.is_cut()
    }

    /// Whether the part skips documents or limits their number.
    fn is_cut(&self) -> bool {
        self.skip > 0 || self.limit.is_some()
    }

    fn take_skip(&mut self, count: u64) -> bool {
        let limit = match self.limit {
            // A limit of 0 would mean no limit.
            Some(limit) if limit <= count => return false,
            limit => limit.map(|limit| limit - count),
        };
        let Some(skip) = self.skip.checked_add(count).filter(|skip| i64::try_from(*skip).is_ok()) else { return false };
        (self.skip, self.limit) = (skip, limit);
        true
    }

    /// Whether the planner may run a projection. It does not compute fields of documents that a sort, a skip or a limit
    /// drops: an expression may fail on them.
    /// Source: MongoDB SERVER-54128.
    fn may_project(&self, inclusion: &Inclusion, next: Option<&Arc<dyn Stage>>) -> bool {
        let cuts = |stage: &Arc<dyn Stage>| matches!(stage.plannable(), Plannable::Skip(_) | Plannable::Limit(_));
        let is_free = self.projection.is_none() && self.near.is_none();
        is_free && (!inclusion.computes() || self.sort.is_none() && !self.is_cut() && !next.is_some_and(cuts))
    }
}

impl Pipeline {
    /// Splits off the part for the query planner: leading filters, then a sort, then skips, limits and one `$project`
    /// in any order.
    #[must_use]
    pub fn split_for_planner(mut self) -> (PlannerPart, Self) {
        let mut part = PlannerPart::default();
        let mut taken = 0;
        let only_planner =
            |stage: &Arc<dyn Stage>| stage.searches_text() || matches!(stage.plannable(), Plannable::Near(_));
        let is_rewritten = self.environment.rewrites.are_applied();
        if !is_rewritten && !self.stages.first().is_some_and(only_planner) {
            return (part, self);
        }
        for (position, stage) in self.stages.iter().enumerate() {
            if !part.take(stage, self.stages.get(position + 1)) {
                if is_rewritten && part.is_filter() {
                    part.filters.extend(self.bucket_filters(position));
                }
                break;
            }
            taken += 1;
            if !is_rewritten {
                break;
            }
        }
        self.stages.drain(..taken);
        self.numbers.drain(..taken);
        (part, self)
    }

    /// Takes the filters at the front of a pipeline that is not rewritten: a hinted index serves them only in the query.
    /// Only valid if the planner has taken no stage before.
    pub fn take_unrewritten_filters(&mut self) -> Vec<DocumentBuf> {
        if self.environment.rewrites.are_applied() {
            return Vec::new();
        }
        let front = self.stages.iter().map_while(|stage| match stage.plannable() {
            Plannable::Filter(filter) => Some(filter.to_owned()),
            _ => None,
        });
        let filters: Vec<_> = front.collect();
        self.stages.drain(..filters.len());
        self.numbers.drain(..filters.len());
        filters
    }

    /// Filters on the buckets that the stage at `position` unpacks, made of the filters right after it.
    fn bucket_filters(&self, position: usize) -> impl Iterator<Item = DocumentBuf> {
        let after = self.stages[position + 1..].iter().map_while(|stage| match stage.plannable() {
            Plannable::Filter(filter) => Some(filter),
            _ => None,
        });
        after.filter_map(move |filter| self.stages[position].bucket_filter(filter))
    }
}
