//! `$or` over indexes: each branch scans its best index, and each record counts once. If each branch has an index that
//! gives the order of the sort, the scans are merged in that order. Branches that read the same keys are one scan.
//!
//! The conditions beside an `$or` hold for the matches of each branch too, so they narrow every scan: `{tenant: 7,
//! $or: [{a: 1}, {b: 2}]}` reads `{tenant: 1, a: 1}` and `{tenant: 1, b: 1}` with bounds on both fields.
//!
//! An `$or` among the conditions of a branch is taken apart in turn if no index serves the branch, or if each of the
//! inner scans has narrower bounds than the scan of the branch. So the product of several `$or`s is made only where
//! indexes narrow it, and within [`NESTED_MAX`].

use super::branch_scan::BranchScan;
use super::choose::{self, Candidate, reach};
use super::index_bounds::IndexBounds;
use super::near_plan;
use super::sort_order::{GivenOrder, MERGED_SCANS_MAX, Order};
use super::steps::{Steps, conditions, steps_of_copy};
use crate::stages::Residual;
use bunko_bson::StringOrder;
use bunko_catalog::Index;
use bunko_errors::Result;
use bunko_expression::SortPattern;
use bunko_matcher::Expression;
use bunko_matcher::planted::{Fault, active};
use bunko_store::Direction;
use std::cell::Cell;
use std::sync::Arc;

/// Chooses an index for the conditions of a branch.
pub(super) type Choose<'c> = dyn FnMut(&[Arc<Index>], &[Expression]) -> Result<Option<Candidate>> + 'c;

/// Scans that together find the matches of an `$or`.
#[derive(Clone)]
pub(crate) struct OrBounds {
    pub branches: Vec<BranchScan>,
    /// Whether each scan gives the order of the query's sort.
    pub order: Order,
    /// Whether every key found means that the `$or` and all conditions beside it match.
    pub is_decided: bool,
}

impl OrBounds {
    /// Whether some branch reads all keys that a scan within these bounds reads, and so finds all of its records.
    pub fn finds_all_of(&self, bounds: &IndexBounds) -> bool {
        self.branches.iter().any(|branch| match branch {
            BranchScan::Keys(own, _) => own.reads_all_keys_of(bounds),
            BranchScan::Region(..) => false,
        })
    }

    /// Whether the scans are still right on a snapshot of now: all of their indexes are among `indexes`, and no document
    /// has brought arrays or types that an index did not have when the scans were found.
    pub fn holds(&self, indexes: &[Arc<Index>]) -> bool {
        self.branches.iter().all(|branch| {
            let index = branch.index();
            indexes.iter().any(|present| Arc::ptr_eq(present, index))
                && match branch {
                    BranchScan::Keys(bounds, _) => bounds.multikey.covers(&index.multikey()),
                    BranchScan::Region(..) => true,
                }
        })
    }

    /// Whether some branch reads this index.
    pub fn reads(&self, index: &Index) -> bool {
        self.branches.iter().any(|branch| branch.index().keyspace == index.keyspace)
    }

    /// Whether each branch has narrower bounds than a candidate.
    pub fn is_narrower_than(&self, candidate: &Candidate) -> bool {
        are_narrower(&self.branches, &candidate.bounds)
    }
}

fn are_narrower(branches: &[BranchScan], bounds: &IndexBounds) -> bool {
    branches.iter().all(|branch| match branch {
        BranchScan::Keys(own, _) => reach(own) > reach(bounds),
        BranchScan::Region(..) => false,
    })
}

/// Branches that a new one is compared with.
const COMPARED_MAX: usize = 32;

/// Maximum depth to which `$or`s inside branches are taken apart.
const DEPTH_MAX: usize = 4;

/// Maximum number of branches inside branches that are compared though an index serves the outer branch already.
const NESTED_MAX: usize = 256;

/// Maximum number of `$or`s that are tried in one list of conditions.
pub(super) const TRIED_MAX: usize = 4;

/// Conditions of an `$or` beside the one that is taken apart; a larger one does not narrow the branches.
const BESIDE_MAX: usize = 64;

/// Maximum number of conditions beside an `$or` once all of them took too many steps.
const FEW_MAX: usize = 4;

/// Maximum steps of copying one of these conditions.
const COPY_MAX: usize = 8;

/// Conditions of an `$or` that stands alone once the conditions beside it took too many steps.
const MANY: usize = 2_000;

/// A search for the scans of the branches.
pub(super) struct BranchSearch<'b> {
    indexes: &'b [Arc<Index>],
    /// The order that each scan must give.
    sort: Option<&'b SortPattern>,
    strings: &'b StringOrder,
    steps: &'b Steps<'b>,
    /// Number of branches inside branches that may still be compared.
    nested_left: Cell<usize>,
}

/// The conditions of a branch, those beside the `$or` first.
struct BranchConditions<'c> {
    all: &'c [Expression],
    /// Number of conditions that stand beside the `$or`.
    beside: usize,
    /// Whether the list lacks no condition of the filter.
    is_whole: bool,
    depth: usize,
}

/// The scans found so far.
struct Found {
    scans: Vec<BranchScan>,
    is_decided: bool,
}

impl<'b> BranchSearch<'b> {
    pub fn new(
        indexes: &'b [Arc<Index>],
        sort: Option<&'b SortPattern>,
        strings: &'b StringOrder,
        steps: &'b Steps<'b>,
    ) -> Self {
        Self { indexes, sort, strings, steps, nested_left: Cell::new(NESTED_MAX) }
    }

    /// Scans for the alternatives of the `$or` at `position`, each beside the other `predicates`; `None` unless an index
    /// narrows each of them. If there are too many conditions, only a few of them narrow the alternatives.
    /// # Errors
    /// As `chooser`.
    pub fn of(&self, predicates: &[Expression], position: usize, chooser: &mut Choose<'_>) -> Result<Option<OrBounds>> {
        let found = if predicates.len() > 1 {
            let found = self.steps.with_half(|| self.alternatives((predicates, true), position, 0, chooser));
            found.unwrap_or_else(|| {
                self.nested_left.set(0);
                let few = with_few(predicates, position);
                self.alternatives((&few, false), few.len() - 1, 0, chooser)
            })?
        } else {
            self.alternatives((predicates, true), 0, 0, chooser)?
        };
        let order = if self.sort.is_some() { Order::AsAsked } else { Order::Any };
        Ok(found.map(|Found { scans, is_decided }| OrBounds { branches: scans, order, is_decided }))
    }

    fn alternatives(
        &self,
        (predicates, is_whole): (&[Expression], bool),
        position: usize,
        depth: usize,
        chooser: &mut Choose<'_>,
    ) -> Result<Option<Found>> {
        let Expression::Or(alternatives) = &predicates[position] else { return Ok(None) };
        let others = predicates.iter().enumerate().filter(|(number, _)| *number != position).map(|(_, other)| other);
        let is_taken = |other: &&Expression| !matches!(other, Expression::Or(_)) || conditions(other) <= BESIDE_MAX;
        let mut all: Vec<Expression> = others.filter(is_taken).cloned().collect();
        let beside = all.len();
        let copied: usize = all.iter().map(steps_of_copy).sum();
        let is_whole = is_whole && beside + 1 == predicates.len();
        let mut found = Found { scans: Vec::with_capacity(alternatives.len()), is_decided: true };
        let is_first_only = depth > 0 && active(Fault::FirstNestedServes);
        for alternative in alternatives.iter().take(if is_first_only { 1 } else { alternatives.len() }) {
            let own = alternative.conjuncts();
            let branch = if beside == 0 {
                own
            } else {
                // Most alternatives are short. The conditions beside them are copied once, but their values are copied into
                // the bounds of each branch.
                if !self.steps.spend(conditions(alternative) + copied) {
                    return Ok(None);
                }
                all.truncate(beside);
                all.extend(own.iter().cloned());
                &all
            };
            if !self.branch(&BranchConditions { all: branch, beside, is_whole, depth }, &mut found, chooser)? {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Adds the scans of a branch. Returns whether some index narrows it.
    fn branch(&self, branch: &BranchConditions<'_>, found: &mut Found, chooser: &mut Choose<'_>) -> Result<bool> {
        let predicates = branch.all;
        let best = match self.sort {
            None => chooser(self.indexes, predicates)?,
            Some(sort) => self.ordered(predicates, sort),
        };
        if let Some(nested) = self.nested(branch, best.as_ref(), chooser)? {
            found.is_decided &= nested.is_decided;
            nested.scans.into_iter().for_each(|scan| add(&mut found.scans, scan));
        } else if let Some(best) = best {
            found.is_decided &= is_decided(branch, &best.bounds) || active(Fault::BranchesDecide);
            let Some(sorted) = best.sorted.filter(|_| self.sort.is_some()) else {
                add(&mut found.scans, BranchScan::Keys(best.bounds, Direction::Forward));
                return Ok(true);
            };
            let GivenOrder { direction, split_fields } = sorted;
            let parts = best.bounds.by_value(split_fields).into_iter();
            parts.for_each(|bounds| add(&mut found.scans, BranchScan::Keys(bounds, direction)));
        } else if self.sort.is_none()
            && self.steps.look(self.indexes.len() * predicates.len())
            && let Some(region) = near_plan::region(self.indexes, predicates, self.strings, self.steps)
        {
            found.is_decided = false;
            found.scans.push(region);
        } else {
            return Ok(false);
        }
        Ok(self.sort.is_none() || found.scans.len() <= MERGED_SCANS_MAX)
    }

    /// The scans of an `$or` among the conditions of a branch, if they are better than the branch's own scan.
    fn nested(
        &self,
        branch: &BranchConditions<'_>,
        best: Option<&Candidate>,
        chooser: &mut Choose<'_>,
    ) -> Result<Option<Found>> {
        if branch.depth >= DEPTH_MAX {
            return Ok(None);
        }
        let ors = branch.all.iter().enumerate().filter_map(|(position, predicate)| match predicate {
            Expression::Or(alternatives) => Some((position, alternatives.len())),
            _ => None,
        });
        for (position, alternatives) in ors.take(TRIED_MAX) {
            if best.is_some() {
                let Some(left) = self.nested_left.get().checked_sub(alternatives) else { break };
                self.nested_left.set(left);
            }
            let nested = self.alternatives((branch.all, branch.is_whole), position, branch.depth + 1, chooser)?;
            let is_better = |nested: &Found| best.is_none_or(|best| are_narrower(&nested.scans, &best.bounds));
            if let Some(nested) = nested.filter(is_better) {
                return Ok(Some(nested));
            }
        }
        Ok(None)
    }

    /// The best index that narrows the search and gives the order of the sort.
    fn ordered(&self, predicates: &[Expression], sort: &SortPattern) -> Option<Candidate> {
        let ranked = choose::ranked(self.indexes, predicates, Some(sort), self.strings, self.steps);
        let serves = |candidate: &Candidate| {
            candidate.sorted.is_some() && candidate.bounds.is_narrowed() && !candidate.bounds.index.is_clustered
        };
        ranked.into_iter().find(serves)
    }
}

/// The first small conditions without alternatives, and the `$or` at `position` after them. An `$or` of very many
/// alternatives stands alone.
fn with_few(predicates: &[Expression], position: usize) -> Vec<Expression> {
    let is_small = |predicate: &&Expression| conditions(predicate) == 1 && steps_of_copy(predicate) <= COPY_MAX;
    let few = if conditions(&predicates[position]) > MANY { 0 } else { FEW_MAX };
    let beside = predicates.iter().filter(is_small).take(few);
    beside.chain([&predicates[position]]).cloned().collect()
}

/// The conditions that the keys of these scans leave to be tested.
pub(super) fn residual(union: &OrBounds) -> Residual {
    if union.is_decided { Residual::none() } else { Residual::whole() }
}

/// Whether the bounds hold all conditions of the branch, and these are all conditions of the filter.
fn is_decided(branch: &BranchConditions<'_>, bounds: &IndexBounds) -> bool {
    if active(Fault::BesideIsDecided) {
        let own = bounds.decided.iter().filter(|number| **number >= branch.beside).count();
        return own == branch.all.len() - branch.beside;
    }
    branch.is_whole && bounds.decided.len() == branch.all.len()
}

/// Adds a scan, unless an earlier branch reads the same keys: alternatives often have a condition in common.
fn add(branches: &mut Vec<BranchScan>, scan: BranchScan) {
    let BranchScan::Keys(bounds, direction) = &scan else { return branches.push(scan) };
    let compared = branches.len().min(COMPARED_MAX);
    let earlier = branches[..compared].iter_mut().find_map(|earlier| match earlier {
        BranchScan::Keys(own, own_direction) if own_direction == direction && own.reads_the_same_keys(bounds) => {
            Some(own)
        }
        _ => None,
    });
    match earlier {
        // Its checks on keys are those of its own alternative.
        Some(_) if active(Fault::ChecksOfOtherBranch) => {}
        Some(earlier) => earlier.on_keys.clear(),
        None => branches.push(scan),
    }
}
