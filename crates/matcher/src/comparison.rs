//! Comparisons of values: equality and ranges.

use bunko_bson::{StringOrder, ValueRef, order};
use std::cmp::Ordering;

/// A comparison within one type bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Comparison {
    Eq,
    Lt,
    Lte,
    Gt,
    Gte,
}

impl Comparison {
    /// The operator's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eq => "$eq",
            Self::Lt => "$lt",
            Self::Lte => "$lte",
            Self::Gt => "$gt",
            Self::Gte => "$gte",
        }
    }

    /// Whether equal values satisfy the comparison.
    pub fn includes_equality(self) -> bool {
        matches!(self, Self::Eq | Self::Lte | Self::Gte)
    }

    pub(crate) fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Lt => ordering.is_lt(),
            Self::Lte => ordering.is_le(),
            Self::Gt => ordering.is_gt(),
            Self::Gte => ordering.is_ge(),
        }
    }

    /// Whether `value`, or a missing value, compares with `operand` this way.
    #[inline]
    pub(crate) fn matches(self, value: Option<ValueRef<'_>>, operand: ValueRef<'_>, strings: &StringOrder) -> bool {
        match (value, operand) {
            (Some(ValueRef::Int32(value)), ValueRef::Int32(operand)) => self.holds(value.cmp(&operand)),
            (Some(ValueRef::String(value)), ValueRef::String(operand)) => {
                self.holds(strings.compare_strings(value, operand))
            }
            (Some(ValueRef::ObjectId(value)), ValueRef::ObjectId(operand)) => self.holds(value.0.cmp(&operand.0)),
            (Some(value), operand) => self.matches_present(value, operand, strings),
            // A missing value equals null, and is beyond neither end of the order.
            (None, ValueRef::Null) => self.includes_equality(),
            (None, operand) => self.is_within_ends(operand),
        }
    }

    fn matches_present(self, value: ValueRef<'_>, operand: ValueRef<'_>, strings: &StringOrder) -> bool {
        if order::rank(value.kind()) != order::rank(operand.kind()) {
            return self.is_within_ends(operand);
        }
        match (is_nan(value), is_nan(operand)) {
            (false, false) => self.holds(strings.compare(value, operand)),
            // NaN equals itself and is neither less nor greater than any number.
            (value, operand) => value && operand && self.includes_equality(),
        }
    }

    /// Whether a value of another type satisfies a comparison with `MinKey` or `MaxKey`: all other values are between
    /// them. Other operands only match their own type bracket.
    fn is_within_ends(self, operand: ValueRef<'_>) -> bool {
        match operand {
            ValueRef::MinKey => matches!(self, Self::Gt | Self::Gte),
            ValueRef::MaxKey => matches!(self, Self::Lt | Self::Lte),
            _ => false,
        }
    }
}

fn is_nan(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Double(number) => number.is_nan(),
        ValueRef::Decimal128(number) => number.is_nan(),
        _ => false,
    }
}
