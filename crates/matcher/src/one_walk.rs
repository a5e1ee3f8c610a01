//! Conditions that all must hold, tested in one walk over the document.
//!
//! The tree looks for the path of each condition anew. Most filters of scans are a few comparisons at a few paths that lead
//! through no array: these are tested here when the walk comes to their fields, and numbers without a look at what else
//! values may be.
//!
//! **Invariant:** what is decided here, the tree decides alike, and there is no position. Where a path meets an array, and
//! where something fails, nothing is decided.

use crate::evaluate::Evaluation;
use crate::expression::{Comparison, Expression};
use bunko_bson::{DocumentRef, EncodedValue, FieldNames, Type, ValueRef};
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// More conditions are left to the tree, which counts them as work.
const CONDITIONS_MAX: usize = 32;
/// Documents that the tree decides before the walk is made: fewer are not worth it.
const DOCUMENTS_BEFORE: u32 = 16;
/// From there on not every integer is a double.
const EXACT_DOUBLES: u64 = 1 << 53;

/// The walk of a filter, made once it has been asked for often enough.
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
    /// The walk for a filter; nothing where it has none, or not yet.
    #[inline]
    pub fn of(&self, filter: &Expression) -> Option<&OneWalk> {
        match self.walk.get() {
            Some(walk) => walk.as_ref(),
            None => self.make(filter),
        }
    }

    #[cold]
    fn make(&self, filter: &Expression) -> Option<&OneWalk> {
        // Two threads that count at once count too little, which does no harm.
        let asked = self.asked.load(Ordering::Relaxed);
        if asked < DOCUMENTS_BEFORE {
            self.asked.store(asked + 1, Ordering::Relaxed);
            return None;
        }
        self.walk.get_or_init(|| OneWalk::of(filter)).as_ref()
    }
}

/// Conditions by the first names of their paths.
#[derive(Debug)]
pub(crate) struct OneWalk {
    names: FieldNames,
    /// Those of each name.
    conditions: Box<[Vec<Condition>]>,
}

/// One condition at a path.
#[derive(Debug)]
struct Condition {
    /// The path behind its first name.
    below: Box<[Box<str>]>,
    /// Which of the filter's conditions it is.
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

/// All that must hold for a filter.
fn conditions(filter: &Expression) -> &[Expression] {
    match filter {
        Expression::And(children) => children,
        alone => std::slice::from_ref(alone),
    }
}

/// The condition that a negation negates, and whether there is one.
fn without_negation(condition: &Expression) -> (&Expression, bool) {
    match condition {
        Expression::Not(child) => (child, true),
        condition => (condition, false),
    }
}

impl OneWalk {
    /// The walk of a filter, if all of it are conditions on single values at paths.
    fn of(filter: &Expression) -> Option<Self> {
        let all = conditions(filter);
        if all.is_empty() || all.len() > CONDITIONS_MAX {
            return None;
        }
        let mut names: Vec<&str> = Vec::new();
        let mut by_name: Vec<Vec<Condition>> = Vec::new();
        for (position, condition) in all.iter().enumerate() {
            let (condition, is_negated) = without_negation(condition);
            if !condition.is_on_values() {
                return None;
            }
            let (first, below) = condition.path()?.components().split_first()?;
            let number = if is_negated { None } else { NumberTest::of(condition) };
            let below = below.iter().map(|component| component.name().into()).collect();
            let name = names.iter().position(|name| *name == first.name()).unwrap_or_else(|| {
                names.push(first.name());
                by_name.push(Vec::new());
                names.len() - 1
            });
            by_name[name].push(Condition { below, position, number });
        }
        Some(Self { names: FieldNames::new(names)?, conditions: by_name.into() })
    }

    /// Whether the filter that it was made of matches the document, if it decides that.
    #[inline]
    pub fn decide(
        &self,
        filter: &Expression,
        document: DocumentRef<'_>,
        evaluation: &mut Evaluation<'_>,
    ) -> Option<bool> {
        let mut decision = Some(true);
        self.names.find(document, |name, value| {
            for condition in &self.conditions[name] {
                decision = condition.holds(filter, value, evaluation);
                if decision != Some(true) {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        decision
    }
}

impl Condition {
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
                // A path that runs into a scalar is missing.
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
        let (condition, is_negated) = without_negation(&conditions(filter)[self.position]);
        Some(condition.matches_value(value, evaluation) != is_negated)
    }
}

impl NumberTest {
    fn of(condition: &Expression) -> Option<Self> {
        let Expression::Compare { op, value, .. } = condition else { return None };
        let operand = match value.as_ref() {
            ValueRef::Int32(number) => Operand::Integer(i64::from(number)),
            ValueRef::Int64(number) => Operand::Integer(number),
            ValueRef::Double(number) if !number.is_nan() => Operand::Double(number),
            _ => return None,
        };
        Some(Self { op: *op, operand })
    }

    /// Whether a number compares so; nothing for what needs a closer look.
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
        // NaN compares with no number.
        Some(ordering.is_some_and(|ordering| self.op.holds(ordering)))
    }
}
