//! Tests conditions that must all hold in one walk over the document.
//!
//! The tree searches the path of each condition separately. Most filters of scans are a few comparisons at a few paths
//! without arrays. These are tested here as the walk reaches their fields, and numbers take a shortcut.
//!
//! **Invariant:** each decision here equals that of the tree, with no position. If a path meets an array, the walk
//! decides nothing. If a test fails, the decision has no meaning, and the evaluation holds the error.

use crate::comparison::Comparison;
use crate::evaluation::Evaluation;
use crate::expression::{Condition, Expression};
use bunko_bson::{DocumentRef, EncodedValue, FieldNames, Type, ValueRef};
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Filters with more conditions use the tree, which counts them as work.
const CONDITIONS_MAX: usize = 32;
/// Number of documents that the tree decides before the walk is built: for fewer, building it costs more than it saves.
const DOCUMENTS_BEFORE: u32 = 16;
/// From this number on, some integers are not exact as doubles.
const EXACT_DOUBLES: u64 = 1 << 53;

/// The walk of a filter, built after enough documents were tested.
#[derive(Debug, Default)]
pub(crate) struct Later {
    asked: AtomicU32,
    walk: OnceLock<Option<OneWalk>>,
}

impl Clone for Later {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Later {
    /// The walk for a filter; `None` if the filter cannot have one, or has tested too few documents yet.
    #[inline]
    pub fn of(&self, filter: &Expression) -> Option<&OneWalk> {
        match self.walk.get() {
            Some(walk) => walk.as_ref(),
            None => self.make(filter),
        }
    }

    #[cold]
    fn make(&self, filter: &Expression) -> Option<&OneWalk> {
        // Two threads that count at once may lose a count, which is harmless.
        let asked = self.asked.load(Ordering::Relaxed);
        if asked < DOCUMENTS_BEFORE {
            self.asked.store(asked + 1, Ordering::Relaxed);
            return None;
        }
        self.walk.get_or_init(|| OneWalk::of(filter)).as_ref()
    }
}

/// Conditions by the first name of their paths.
#[derive(Debug)]
pub(crate) struct OneWalk {
    names: FieldNames,
    /// The conditions for each name.
    tests: Box<[Vec<PathTest>]>,
}

/// The test of one condition.
#[derive(Debug)]
struct PathTest {
    /// The path without its first name.
    below: Box<[Box<str>]>,
    /// Position of the condition in the filter.
    position: usize,
    number: Option<NumberTest>,
}

/// A comparison with a number.
#[derive(Debug)]
struct NumberTest {
    op: Comparison,
    operand: Operand,
}

#[derive(Clone, Copy, Debug)]
enum Operand {
    Integer(i64),
    /// Not NaN.
    Double(f64),
}

/// The condition without its negation, and whether it was negated.
fn without_negation(expression: &Expression) -> (&Expression, bool) {
    match expression {
        Expression::Not(child) => (child, true),
        expression => (expression, false),
    }
}

impl OneWalk {
    /// Builds the walk of a filter; `None` unless the filter has only conditions on single values at paths.
    fn of(filter: &Expression) -> Option<Self> {
        let all = filter.conjuncts();
        if all.is_empty() || all.len() > CONDITIONS_MAX {
            return None;
        }
        let mut names: Vec<&str> = Vec::new();
        let mut by_name: Vec<Vec<PathTest>> = Vec::new();
        for (position, expression) in all.iter().enumerate() {
            let (Expression::OnPath(path, condition), is_negated) = without_negation(expression) else { return None };
            if !condition.is_on_values() {
                return None;
            }
            let (first, below) = path.components().split_first()?;
            let number = if is_negated { None } else { NumberTest::of(condition) };
            let below = below.iter().map(|component| component.name().into()).collect();
            let name = names.iter().position(|name| *name == first.name()).unwrap_or_else(|| {
                names.push(first.name());
                by_name.push(Vec::new());
                names.len() - 1
            });
            by_name[name].push(PathTest { below, position, number });
        }
        Some(Self { names: FieldNames::new(names)?, tests: by_name.into() })
    }

    /// Whether the document matches `filter`, which the walk was built from; `None` if the walk does not decide that.
    #[inline]
    pub fn decide(
        &self,
        filter: &Expression,
        document: DocumentRef<'_>,
        evaluation: &mut Evaluation<'_>,
    ) -> Option<bool> {
        let mut decision = Some(true);
        self.names.find(document, |name, value| {
            for test in &self.tests[name] {
                decision = test.holds(filter, value, evaluation);
                if decision != Some(true) {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        decision
    }
}

impl PathTest {
    #[inline]
    fn holds(
        &self,
        filter: &Expression,
        value: Option<EncodedValue<'_>>,
        evaluation: &mut Evaluation<'_>,
    ) -> Option<bool> {
        let mut value = value;
        for name in &self.below {
            value = match value.and_then(EncodedValue::value) {
                Some(ValueRef::Document(document)) => document.get_encoded(name),
                Some(ValueRef::Array(_)) => return None,
                // A path that meets a scalar has no value.
                _ => None,
            };
        }
        if let (Some(test), Some(value)) = (&self.number, value)
            && let Some(holds) = test.holds(value)
        {
            return Some(holds);
        }
        let value = value.and_then(EncodedValue::value);
        if let Some(ValueRef::Array(_)) = value {
            return None;
        }
        let (Expression::OnPath(_, condition), is_negated) = without_negation(&filter.conjuncts()[self.position])
        else {
            return None;
        };
        Some(condition.matches_value(value, evaluation) != is_negated)
    }
}

impl NumberTest {
    fn of(condition: &Condition) -> Option<Self> {
        let Condition::Compare(op, value) = condition else { return None };
        let operand = match value.as_ref() {
            ValueRef::Int32(number) => Operand::Integer(i64::from(number)),
            ValueRef::Int64(number) => Operand::Integer(number),
            ValueRef::Double(number) if !number.is_nan() => Operand::Double(number),
            _ => return None,
        };
        Some(Self { op: *op, operand })
    }

    /// Whether a number satisfies the comparison; `None` if that needs the general test.
    #[inline]
    fn holds(&self, value: EncodedValue<'_>) -> Option<bool> {
        let ordering = match (value.kind(), self.operand) {
            (Type::Int32, Operand::Integer(operand)) => Some(i64::from(value.as_i32()?).cmp(&operand)),
            (Type::Int64, Operand::Integer(operand)) => Some(value.as_i64()?.cmp(&operand)),
            (Type::Int32, Operand::Double(operand)) => f64::from(value.as_i32()?).partial_cmp(&operand),
            (Type::Double, Operand::Double(operand)) => value.as_f64()?.partial_cmp(&operand),
            (Type::Double, Operand::Integer(operand)) if operand.unsigned_abs() <= EXACT_DOUBLES => {
                value.as_f64()?.partial_cmp(&(operand as f64))
            }
            _ => return None,
        };
        // NaN is not comparable with any number.
        Some(ordering.is_some_and(|ordering| self.op.holds(ordering)))
    }
}
