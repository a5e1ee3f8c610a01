//! The limit on the work of planning one query.
//!
//! A filter may have ten thousand alternatives, and each of them may have a choice of 64 indexes. Once the steps are
//! used up, no other index is compared: the best one so far is scanned, or the collection if there is none, and explain
//! says so. Steps and not a clock decide, so that a plan does not depend on how busy the machine is.

use super::asked_paths::asks_for;
use super::by_path;
use super::elements::have_own_keys;
use bunko_bson::Value;
use bunko_catalog::{Answers, Index, KeyForm};
use bunko_errors::{Failure, Result};
use bunko_matcher::{Condition, Expression};
use bunko_operation::OperationContext;
use std::cell::Cell;

/// Maximum number of steps. A step examines one condition or one field for an index: about a tenth of a microsecond.
pub(super) const STEPS_MAX: usize = 200_000;

/// Number of values of a list for which intervals are made in one step. Bounds share other lists with the filter,
/// unless the index has a collation.
const VALUES_PER_STEP: usize = 2;

/// Steps of the hashes that a value of a list may have in a hashed index.
const STEPS_PER_HASHED_VALUE: usize = 2;

/// Steps of the bounds of a pattern, beyond those of other conditions.
const STEPS_PER_PATTERN: usize = 6;

/// Steps of the gaps that a negated condition leaves, and of what they have in common with others.
const STEPS_PER_NEGATION: usize = 4;

/// Number of conditions of an `$or` whose paths are noted in one step.
const NOTED_PER_STEP: usize = 16;

/// Bytes of values that are copied into the bounds of another scan in one step.
const COPIED_PER_STEP: usize = 64;

/// Bytes of a list's value in bounds, beside its content.
const LISTED_BYTES: usize = 32;

/// Bytes of a short condition in a filter.
const CONDITION_BYTES: usize = 8;

/// Comparisons of a condition's path with a path of an index that are as much work as reading an element.
const COMPARISONS_PER_WORK: usize = 8;

/// Maximum number of such comparisons, which take no steps: each takes a few nanoseconds.
const COMPARISONS_MAX: usize = 4_000_000;

/// The steps that planning one query may take. Each request for steps counts as work of the operation, so planning ends
/// with it.
pub(super) struct Steps<'q> {
    /// Number of steps that are left; `None` once a request was larger than that, or the operation had to end.
    left: Cell<Option<usize>>,
    /// Number of comparisons of paths that are left.
    comparisons_left: Cell<usize>,
    operation: &'q OperationContext,
    failure: Cell<Option<Failure>>,
    /// Number of conditions that a filter of this size may have.
    conditions: usize,
    /// Whether a search was given up for want of steps, and another one took its place.
    is_search_given_up: Cell<bool>,
}

impl<'q> Steps<'q> {
    /// The steps for a filter of this size.
    pub fn new(operation: &'q OperationContext, filter_bytes: usize) -> Self {
        let (left, comparisons_left) = (Cell::new(Some(STEPS_MAX)), Cell::new(COMPARISONS_MAX));
        let (failure, is_search_given_up) = (Cell::default(), Cell::new(false));
        let conditions = filter_bytes / CONDITION_BYTES;
        Self { left, comparisons_left, operation, failure, conditions, is_search_given_up }
    }

    /// Counts the work of asking which of an index's paths the conditions name. It takes no steps, since an index that
    /// they do not name is dropped. Returns whether planning goes on.
    pub fn look_at(&self, index: &Index) -> bool {
        self.look(index.fields.len() * self.conditions)
    }

    /// As [`Self::look_at`], for a number of comparisons of paths.
    pub fn look(&self, comparisons: usize) -> bool {
        let Some(left) = self.comparisons_left.get().checked_sub(comparisons) else {
            self.comparisons_left.set(0);
            self.left.set(None);
            return false;
        };
        self.comparisons_left.set(left);
        if self.are_used_up() {
            return false;
        }
        // Most filters have few conditions, and counting costs more than they do.
        if comparisons >= COMPARISONS_PER_WORK
            && let Err(failure) = self.operation.work(comparisons / COMPARISONS_PER_WORK)
        {
            self.fail(failure);
        }
        !self.are_used_up()
    }

    /// Takes a number of steps. Returns whether enough were left.
    pub fn spend(&self, steps: usize) -> bool {
        self.left.set(self.left.get().and_then(|left| left.checked_sub(steps)));
        if let Err(failure) = self.operation.work(steps) {
            self.fail(failure);
        }
        !self.are_used_up()
    }

    fn fail(&self, failure: Failure) {
        self.left.set(None);
        self.failure.set(Some(failure));
    }

    /// Runs a search with half of the steps that are left. `None` if they do not suffice; the other half is left then.
    pub fn with_half<T>(&self, search: impl FnOnce() -> T) -> Option<T> {
        let left = self.left.get()?;
        let kept = left / 2;
        self.left.set(Some(left - kept));
        let found = search();
        if let Some(unused) = self.left.get() {
            self.left.set(Some(unused + kept));
            return Some(found);
        }
        let failure = self.failure.take();
        if failure.is_some() || self.comparisons_left.get() == 0 {
            self.failure.set(failure);
            return Some(found);
        }
        self.left.set(Some(kept));
        self.is_search_given_up.set(true);
        None
    }

    /// Takes the steps that deriving bounds in an index needs. Returns whether enough were left.
    pub fn take(&self, index: &Index, predicates: &[Expression]) -> bool {
        let Some(before) = self.left.get() else { return false };
        let mut count = Count { left: Some(before), is_collated: !index.strings.is_bytes() };
        count.bounds(index, predicates);
        let counted = self.operation.work(before - count.left.unwrap_or(0));
        self.left.set(count.left.filter(|_| counted.is_ok()));
        self.failure.set(counted.err());
        self.left.get().is_some()
    }

    pub fn are_used_up(&self) -> bool {
        self.left.get().is_none()
    }

    /// Number of steps taken.
    pub fn taken(&self) -> usize {
        STEPS_MAX - self.left.get().unwrap_or(0)
    }

    /// Whether some ways were not compared for want of steps.
    pub fn have_stopped(&self) -> bool {
        self.are_used_up() || self.is_search_given_up.get()
    }

    /// The failure of the operation, if it had to end.
    /// # Errors
    /// Errors of the operation.
    pub fn check(&self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// Number of conditions in an expression.
pub(super) fn conditions(expression: &Expression) -> usize {
    match expression.parts() {
        [] => 1,
        parts => parts.iter().map(conditions).sum(),
    }
}

/// Steps of copying the values of a condition into the bounds and keys of one more scan. A scan has a key for each value
/// of a list, so a long list beside an `$or` would be copied for each branch.
pub(super) fn steps_of_copy(condition: &Expression) -> usize {
    copied_bytes(condition) / COPIED_PER_STEP
}

fn copied_bytes(condition: &Expression) -> usize {
    let of_value = |value: &Value| value.as_ref().content_bytes();
    match condition {
        Expression::OnPath(_, Condition::Compare(_, value)) => of_value(value),
        Expression::OnPath(_, Condition::In { values, .. }) => {
            values.iter().map(|value| LISTED_BYTES + of_value(value)).sum()
        }
        Expression::Expr(expr) => expr.implied().iter().map(|implied| of_value(&implied.value)).sum(),
        other => other.parts().iter().map(copied_bytes).sum(),
    }
}

/// Counts steps until too many are needed.
struct Count {
    left: Option<usize>,
    /// Whether values are translated for the index.
    is_collated: bool,
}

impl Count {
    fn add(&mut self, steps: usize) {
        self.left = self.left.and_then(|left| left.checked_sub(steps));
    }

    /// Steps of deriving the bounds of an index: two for the index, and one for each field and each condition examined.
    /// An index that holds the values of many paths is examined for each path that the conditions name.
    fn bounds(&mut self, index: &Index, predicates: &[Expression]) {
        self.add(2);
        for field in &*index.fields {
            self.field(&field.path, predicates);
            if field.form == KeyForm::Hash {
                for predicate in predicates {
                    self.hashed(predicate, &field.path);
                }
            }
        }
        if matches!(index.kind.answers(), Answers::ByPath { .. }) {
            for predicate in predicates {
                self.noted(predicate);
            }
            if self.left.is_none() {
                return;
            }
            for path in by_path::paths_to_compare(index, predicates) {
                self.field(path, predicates);
            }
        }
    }

    /// The conditions whose paths are noted before those that an index holds are compared.
    fn noted(&mut self, expression: &Expression) {
        if let Expression::And(children) | Expression::Or(children) = expression {
            self.add(children.len() / NOTED_PER_STEP);
            for child in children {
                self.noted(child);
            }
        }
    }

    fn field(&mut self, path: &str, predicates: &[Expression]) {
        self.add(1);
        for predicate in predicates {
            self.examined(predicate, path);
        }
    }

    /// The values of lists that are hashed for an index.
    fn hashed(&mut self, expression: &Expression, path: &str) {
        match expression {
            Expression::OnPath(own, Condition::In { values, .. }) if own.is(path) => {
                self.add(values.len() * STEPS_PER_HASHED_VALUE);
            }
            other => other.parts().iter().for_each(|part| self.hashed(part, path)),
        }
    }

    /// The conditions that are examined for bounds on a path, also those on one element. Alternatives are examined up to
    /// the first one that has no condition on the path.
    fn examined(&mut self, expression: &Expression, path: &str) {
        if self.left.is_none() {
            return;
        }
        match expression {
            Expression::Not(child) if let Expression::OnPath(own, Condition::In { values, .. }) = &**child => {
                self.add(1 + if own.is(path) { values.len() / VALUES_PER_STEP } else { 0 });
            }
            Expression::OnPath(own, Condition::In { values, regexes }) if own.is(path) => {
                let is_shared = regexes.is_empty() && !self.is_collated && have_own_keys(values);
                let intervals = if is_shared { 0 } else { values.len() / VALUES_PER_STEP };
                self.add(1 + intervals + regexes.len() * STEPS_PER_PATTERN);
            }
            Expression::OnPath(own, Condition::Regex(_)) if own.is(path) => self.add(1 + STEPS_PER_PATTERN),
            Expression::Nor(_) | Expression::Not(_) => {
                for part in expression.parts() {
                    let is_negated = part.path().is_some_and(|own| own.is(path));
                    self.add(if is_negated { STEPS_PER_NEGATION } else { 0 });
                    self.examined(part, path);
                }
            }
            Expression::And(_) => {
                for part in expression.parts() {
                    self.examined(part, path);
                }
            }
            Expression::Or(children) => {
                self.add(1);
                let bounded = children.iter().take_while(|child| asks_for(child, path));
                for child in bounded {
                    self.examined(child, path);
                }
            }
            Expression::OnPath(own, Condition::ElemMatchObject(filter)) => {
                self.add(1);
                if let Some(below) = own.below(path) {
                    self.examined(filter, below);
                }
            }
            Expression::OnPath(own, Condition::ElemMatchValue(condition)) if own.is(path) => {
                self.add(1);
                self.examined(condition, path);
            }
            _ => self.add(1),
        }
    }
}
