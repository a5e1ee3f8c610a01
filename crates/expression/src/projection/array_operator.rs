//! What only `find`'s projections do to arrays: `$slice`, `$elemMatch`, `a.$`.

use super::ElementPredicate;
use bunko_bson::{ArrayBuf, ArrayRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// What becomes of an array.
pub(super) enum ArrayOperator {
    /// A run of elements.
    Slice { skip: Option<i64>, limit: i64 },
    /// The first element that satisfies a condition.
    ElemMatch(Arc<dyn ElementPredicate>),
    /// The element that the filter matched.
    Positional,
}

impl ArrayOperator {
    /// Reads the argument of `$slice`: a count, or how many to skip and a count.
    pub(super) fn parse_slice(argument: ValueRef<'_>) -> Result<Self> {
        let number = |value: ValueRef<'_>| bunko_bson::number::truncate_to_i64(value).filter(|_| value.is_number());
        match argument {
            ValueRef::Array(pair) => {
                let (Some(skip), Some(limit), 2) =
                    (pair.get(0).and_then(number), pair.get(1).and_then(number), pair.count())
                else {
                    return Err(Failure::new(ErrorCode(28724), "First argument to $slice must be an array"));
                };
                if limit <= 0 {
                    let message = format!("Third argument to $slice must be positive: {limit}");
                    return Err(Failure::new(ErrorCode(28729), message));
                }
                Ok(Self::Slice { skip: Some(skip), limit })
            }
            _ => match number(argument) {
                Some(limit) => Ok(Self::Slice { skip: None, limit }),
                None => {
                    let message = "Invalid $slice syntax. The given syntax did not match the find() syntax because :: $slice only supports numbers and [x, y] arrays";
                    Err(Failure::new(ErrorCode(28667), message))
                }
            },
        }
    }

    /// The array that stands instead; nothing where none does. Only `$slice` leaves what is no array as it is.
    pub(super) fn apply(&self, array: ArrayRef<'_>, matched: Option<usize>) -> Result<Option<ArrayBuf>> {
        match self {
            Self::Slice { skip, limit } => Ok(Some(slice(array, *skip, *limit))),
            Self::ElemMatch(predicate) => {
                let found = array.iter().find(|element| predicate.matches(*element));
                Ok(found.map(|element| std::iter::once(element).collect()))
            }
            Self::Positional => {
                let found = matched.and_then(|position| array.get(position)).ok_or_else(|| {
                    let message = "Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array";
                    Failure::new(ErrorCode(51246), message)
                })?;
                Ok(Some(std::iter::once(found).collect()))
            }
        }
    }
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
