//! The state of matching one subject, and the walk over the values at a path.

use crate::operands::Regex;
use crate::path::{Leaves, Path, Subject, Visitor};
use bunko_bson::{StringOrder, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;

/// Counted steps for a regular expression: backtracking can take long for few characters.
const REGEX_STEPS: usize = 64;

/// State of one evaluation, beside its answer.
pub(crate) struct Evaluation<'o> {
    /// Index of the outermost array's element that satisfied the latest array predicate.
    pub position: Option<usize>,
    /// The first error of an `$expr` or of the operation; the answer has no meaning then.
    failure: Option<Failure>,
    pub operation: Option<&'o OperationContext>,
    /// Order in which strings are compared.
    pub strings: &'o StringOrder,
}

impl<'o> Evaluation<'o> {
    pub fn new(operation: Option<&'o OperationContext>, strings: &'o StringOrder) -> Self {
        Self { position: None, failure: None, operation, strings }
    }

    /// Returns the answer.
    /// # Errors
    /// The first error of an `$expr` or of the operation.
    pub fn outcome(self, matched: bool) -> Result<bool> {
        self.failure.map_or(Ok(matched), Err)
    }

    /// Returns the result of a part. If the part failed, keeps the failure, unless there is an earlier one, and returns
    /// `otherwise`.
    pub fn settled<T>(&mut self, result: Result<T>, otherwise: T) -> T {
        result.unwrap_or_else(|failure| {
            self.failure.get_or_insert(failure);
            otherwise
        })
    }

    /// Whether no part has failed so far.
    pub fn is_sound(&self) -> bool {
        self.failure.is_none()
    }

    /// Counts work. Returns false if the operation has to stop; then any answer will do.
    #[inline]
    pub fn goes_on(&mut self, steps: usize) -> bool {
        match self.operation.map(|operation| operation.work(steps)) {
            None | Some(Ok(())) => true,
            Some(Err(failure)) => self.settled(Err(failure), false),
        }
    }

    /// Whether a value is a string that matches the regex, or is an equal regex.
    pub fn regex(&mut self, regex: &Regex, value: Option<ValueRef<'_>>) -> bool {
        match value {
            Some(ValueRef::String(text) | ValueRef::Symbol(text)) => {
                if !self.goes_on(REGEX_STEPS + text.len() / REGEX_STEPS) {
                    return true;
                }
                let operation = self.operation;
                let goes_on = |steps| operation.map_or(Ok(()), |operation| operation.work(steps));
                let matched = regex.is_match(text, goes_on);
                self.settled(matched, true)
            }
            value => regex.is_same(value),
        }
    }

    /// Runs a part, and drops its position unless it matches.
    pub fn scoped(&mut self, part: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.position;
        let matched = part(self);
        if !matched {
            self.position = before;
        }
        matched
    }

    /// Negates a part, and drops its position.
    pub fn negated(&mut self, part: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.position;
        let matched = part(self);
        self.position = before;
        !matched
    }
}

/// Tests the values at a path until one matches.
#[inline]
pub(crate) fn any_value<'o, S: Subject>(
    subject: S,
    path: &Path,
    leaves: Leaves,
    evaluation: &mut Evaluation<'o>,
    test: impl Fn(Option<ValueRef<'_>>, Option<usize>, &mut Evaluation<'o>) -> bool,
) -> bool {
    subject.any(path, leaves, &mut Counted { evaluation, test })
}

/// Tests values, and counts the elements searched.
struct Counted<'e, 'o, F> {
    evaluation: &'e mut Evaluation<'o>,
    test: F,
}

impl<'o, F: Fn(Option<ValueRef<'_>>, Option<usize>, &mut Evaluation<'o>) -> bool> Visitor for Counted<'_, 'o, F> {
    #[inline]
    fn test(&mut self, value: Option<ValueRef<'_>>, index: Option<usize>) -> bool {
        (self.test)(value, index, self.evaluation)
    }

    #[inline]
    fn goes_on(&mut self) -> bool {
        self.evaluation.goes_on(1)
    }
}
