//! Array operators of `find`'s projections: `$slice`, `$elemMatch`, `a.$`.

use super::ElementPredicate;
use crate::array::steps;
use crate::made;
use bunko_bson::{ArrayBuf, ArrayRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use std::sync::Arc;

/// Treatment of an array.
pub(super) enum ArrayOperator {
    /// A run of elements.
    Slice { skip: Option<i64>, limit: i64 },
    /// The first element that satisfies a condition.
    ElemMatch(Arc<dyn ElementPredicate>),
    /// The element that the filter matched.
    Positional,
}

impl ArrayOperator {
    /// Parses the argument of `$slice`: a count, or a number to skip and a count.
    /// # Errors
    /// 31257, 31258, 31272 and 31273 for any other argument, which may still be the expression `$slice`; `SLICE_LIMIT`
    /// for two numbers, which cannot be.
    pub(super) fn parse_slice(argument: ValueRef<'_>) -> Result<Self> {
        let ValueRef::Array(pair) = argument else {
            let message = "$slice only supports numbers and [skip, limit] arrays";
            return match count(argument) {
                Some(limit) => Ok(Self::Slice { skip: None, limit }),
                None => Err(Failure::new(ErrorCode(31273), message)),
            };
        };
        let (Some(skip), Some(limit), 2) = (pair.get(0), pair.get(1), pair.count()) else {
            return Err(Failure::new(ErrorCode(31272), "$slice array argument should be of form [skip, limit]"));
        };
        let number = |code, name: &str, value: ValueRef<'_>| {
            count(value).ok_or_else(|| {
                let kind = value.kind().alias();
                let message = format!("$slice expects the {name} argument to be a number, got {kind}");
                Failure::new(ErrorCode(code), message)
            })
        };
        let (skip, limit) = (number(31257, "skip", skip)?, number(31258, "limit", limit)?);
        if limit <= 0 {
            return Err(Failure::new(SLICE_LIMIT, format!("$slice limit must be positive, got {limit}")));
        }
        Ok(Self::Slice { skip: Some(skip), limit })
    }

    /// Applies the operator to an array; `None` leaves the field out of the result.
    pub(super) fn apply(
        &self,
        array: ArrayRef<'_>,
        matched: Option<usize>,
        operation: &OperationContext,
    ) -> Result<Option<ArrayBuf>> {
        operation.work(steps(array))?;
        match self {
            Self::Slice { skip, limit } => Ok(Some(slice(array, *skip, *limit))),
            Self::ElemMatch(predicate) => {
                for element in array.iter() {
                    operation.work(made::steps(element))?;
                    if predicate.matches(element) {
                        return Ok(Some(std::iter::once(element).collect()));
                    }
                }
                Ok(None)
            }
            Self::Positional => {
                let found = matched_element(matched, array.iter())?;
                Ok(Some(std::iter::once(found).collect()))
            }
        }
    }
}

/// The code for a limit that selects nothing.
pub(super) const SLICE_LIMIT: ErrorCode = ErrorCode(31259);

/// Reads a number, truncated and clamped to 32 bits; 0 for `NaN`, `None` for a value that is no number.
fn count(value: ValueRef<'_>) -> Option<i64> {
    let double = number::as_f64(value)?;
    // The cast clamps a double to the range of 64 bits, and turns `NaN` into 0.
    Some(number::truncate_to_i64(value).unwrap_or(double as i64).clamp(i32::MIN.into(), i32::MAX.into()))
}

/// The element that the filter matched.
/// # Errors
/// 51246 where the filter matched no element; 51247 where it matched an element of another, longer array.
pub(super) fn matched_element<'e>(
    matched: Option<usize>,
    mut elements: impl Iterator<Item = ValueRef<'e>>,
) -> Result<ValueRef<'e>> {
    let failure = |code, reason| {
        let message = format!("positional operator '.$' {reason}");
        Failure::new(ErrorCode(code), message)
    };
    let position = matched.ok_or_else(|| failure(51246, "couldn't find a matching element in the array"))?;
    elements.nth(position).ok_or_else(|| failure(51247, "element mismatch"))
}

fn slice(array: ArrayRef<'_>, skip: Option<i64>, limit: i64) -> ArrayBuf {
    let count = array.count() as i64;
    let (skip, limit) = match skip {
        None if limit < 0 => ((count.saturating_add(limit)).max(0), count),
        None => (0, limit),
        Some(skip) if skip < 0 => ((count.saturating_add(skip)).max(0), limit),
        Some(skip) => (skip, limit),
    };
    array.iter().skip(skip as usize).take(limit as usize).collect()
}
