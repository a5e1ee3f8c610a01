//! The value of `$reduce` where the body only adds to `$$value`, in a form that grows without being copied.

use crate::accumulators::{Accumulator, merge_objects};
use crate::array::{distinct, elements};
use crate::call::{Call, refuse};
use crate::made::{self, MadeArray};
use crate::variables::EvaluationContext;
use crate::{Evaluated, Expression};
use bunko_bson::{ArrayBuf, ValueRef};
use bunko_errors::Result;

/// Duplicates are removed only once a union has grown by more than this many bytes.
const UNTIDY_BYTES: usize = 4096;

/// The value of `$$value` so far.
pub(crate) enum Gathered<'v> {
    Value(Evaluated<'v>),
    /// Fields of documents that are merged.
    Fields(Box<dyn Accumulator>),
    /// Elements of a union, possibly with duplicates.
    Union(Union),
}

/// Elements in order of arrival.
pub(crate) struct Union {
    elements: ArrayBuf,
    /// Size in bytes after duplicates were last removed.
    tidy_bytes: usize,
}

/// Whether a call adds to its first argument, which is then not evaluated.
pub(crate) fn adds(call: &Call) -> bool {
    matches!(call.name(), "$mergeObjects" | "$setUnion")
}

impl<'v> Gathered<'v> {
    /// Applies a call of [`adds`] to the value.
    /// # Errors
    /// Errors of the operator.
    pub(crate) fn with<'a>(self, call: &'a Call, context: &EvaluationContext<'a>) -> Result<Self> {
        let arguments = &call.arguments[1..];
        if call.name() == "$setUnion" {
            self.united(call, arguments, context)
        } else {
            self.merged(call, arguments, context)
        }
    }

    /// The value itself, without duplicates in a union.
    pub(crate) fn settled(self, context: &EvaluationContext<'_>) -> Result<Evaluated<'v>> {
        Ok(match self {
            Self::Value(value) => value,
            Self::Fields(fields) => fields.finish().into(),
            Self::Union(union) => {
                let mut settled = MadeArray::new("$setUnion", context);
                settled.extend(distinct(elements(union.elements.as_ref(), context)?, context)?)?;
                settled.finish()
            }
        })
    }

    fn merged<'a>(self, call: &Call, arguments: &'a [Expression], context: &EvaluationContext<'a>) -> Result<Self> {
        let mut fields = match self {
            Self::Fields(fields) => fields,
            other => {
                let mut fields = merge_objects::make(context.engine());
                fields.add(other.settled(context)?)?;
                fields
            }
        };
        for argument in arguments {
            let value = argument.evaluate(context)?;
            context.operation().work(made::steps(value.or_null()))?;
            let bytes = fields.memory_bytes() + value.or_null().content_bytes();
            made::check_container_bytes(call.name(), bytes)?;
            fields.add(value)?;
        }
        Ok(Self::Fields(fields))
    }

    fn united<'a>(self, call: &Call, arguments: &'a [Expression], context: &EvaluationContext<'a>) -> Result<Self> {
        let not_an_array = |value: &Evaluated<'_>| {
            let refusal = (17043, "All operands of $setUnion must be arrays. One argument is of type: {}");
            refuse(refusal, value.type_name())
        };
        let additions = arguments.iter().map(|argument| argument.evaluate(context)).collect::<Result<Vec<_>>>()?;
        let mut union = match self {
            Self::Union(union) => union,
            other => {
                let value = other.settled(context)?;
                match value.get() {
                    Some(ValueRef::Array(array)) => Union { elements: array.iter().collect(), tidy_bytes: 0 },
                    _ if value.is_nullish() => return Ok(Self::Value(Evaluated::null())),
                    _ => return Err(not_an_array(&value)),
                }
            }
        };
        for addition in &additions {
            let array = match addition.get() {
                Some(ValueRef::Array(array)) => array,
                _ if addition.is_nullish() => return Ok(Self::Value(Evaluated::null())),
                _ => return Err(not_an_array(addition)),
            };
            let mut longer = MadeArray::with(union.elements, call.name(), context);
            longer.extend(array.iter())?;
            union.elements = longer.into_array();
        }
        if union.elements.len_bytes() > 2 * union.tidy_bytes + UNTIDY_BYTES {
            let mut tidy = MadeArray::new(call.name(), context);
            tidy.extend(distinct(elements(union.elements.as_ref(), context)?, context)?)?;
            union.elements = tidy.into_array();
            union.tidy_bytes = union.elements.len_bytes();
        }
        Ok(Self::Union(union))
    }
}
