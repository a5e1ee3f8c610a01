//! Trigonometric and hyperbolic functions. All but `$atan2` have one argument.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::decimal_functions as decimals;
use crate::inverse_hyperbolic;
use crate::number::Number;
use crate::printed::printed;
use bunko_bson::{Decimal128, Value, ValueRef, order};
use bunko_errors::{ErrorCode, Failure};
use std::cmp::Ordering;

/// The domain of a function.
#[derive(Clone, Copy)]
enum Domain {
    All,
    /// Finite numbers.
    Finite,
    /// From -1 to 1.
    Unit,
    /// From 1 on.
    FromOne,
}

struct Function {
    domain: Domain,
    double: fn(f64) -> f64,
    decimal: decimals::Function,
}

/// The functions, in the order of the operators below.
const FUNCTIONS: [Function; 12] = [
    Function { domain: Domain::Finite, double: f64::sin, decimal: decimals::sin },
    Function { domain: Domain::Finite, double: f64::cos, decimal: decimals::cos },
    Function { domain: Domain::Finite, double: f64::tan, decimal: decimals::tan },
    Function { domain: Domain::Unit, double: f64::asin, decimal: decimals::asin },
    Function { domain: Domain::Unit, double: f64::acos, decimal: decimals::acos },
    Function { domain: Domain::All, double: f64::atan, decimal: decimals::atan },
    Function { domain: Domain::All, double: f64::sinh, decimal: decimals::sinh },
    Function { domain: Domain::All, double: f64::cosh, decimal: decimals::cosh },
    Function { domain: Domain::All, double: f64::tanh, decimal: decimals::tanh },
    Function { domain: Domain::All, double: inverse_hyperbolic::asinh, decimal: decimals::asinh },
    Function { domain: Domain::FromOne, double: inverse_hyperbolic::acosh, decimal: decimals::acosh },
    Function { domain: Domain::Unit, double: inverse_hyperbolic::atanh, decimal: decimals::atanh },
];

const fn operator<const FUNCTION: usize>(name: &'static str) -> Operator {
    Operator {
        name,
        strings: Strings::AsBytes,
        form: Form::Positional(Arity::Exactly(1)),
        evaluate: evaluate::<FUNCTION>,
    }
}

pub(super) const SIN: Operator = operator::<0>("$sin");
pub(super) const COS: Operator = operator::<1>("$cos");
pub(super) const TAN: Operator = operator::<2>("$tan");
pub(super) const ASIN: Operator = operator::<3>("$asin");
pub(super) const ACOS: Operator = operator::<4>("$acos");
pub(super) const ATAN: Operator = operator::<5>("$atan");
pub(super) const SINH: Operator = operator::<6>("$sinh");
pub(super) const COSH: Operator = operator::<7>("$cosh");
pub(super) const TANH: Operator = operator::<8>("$tanh");
pub(super) const ASINH: Operator = operator::<9>("$asinh");
pub(super) const ACOSH: Operator = operator::<10>("$acosh");
pub(super) const ATANH: Operator = operator::<11>("$atanh");
pub(super) const DEGREES_TO_RADIANS: Operator = Operator {
    name: "$degreesToRadians",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(1)),
    evaluate: evaluate_radians,
};
pub(super) const RADIANS_TO_DEGREES: Operator = Operator {
    name: "$radiansToDegrees",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(1)),
    evaluate: evaluate_degrees,
};

pub(super) const ATAN2: Operator = Operator {
    name: "$atan2",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(2)),
    evaluate: evaluate_atan2,
};

fn evaluate<'a, const FUNCTION: usize>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let function = &FUNCTIONS[FUNCTION];
    let Some(number) = call.number(context)? else { return Ok(Evaluated::null()) };
    if number.is_nan() {
        return Ok(number.into());
    }
    if let Some(interval) = function.domain.outside(number) {
        let found = printed(&number.into());
        let message = format!("cannot apply {} to {found}, value must be in {interval}", call.name());
        return Err(Failure::new(ErrorCode(50989), message));
    }
    Ok(match number {
        Number::Decimal(decimal) => Number::Decimal(decimals::apply(decimal, function.decimal)).into(),
        other => (function.double)(other.to_f64()).into(),
    })
}

fn evaluate_radians<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    evaluate_scaled(call, context, f64::to_radians, "0.01745329251994329576923690768488613")
}

fn evaluate_degrees<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    evaluate_scaled(call, context, f64::to_degrees, "57.29577951308232087679815481410517")
}

/// Converts an angle to another unit. A decimal is multiplied once by a factor of 34 digits, as on MongoDB: that
/// decides the last digit, and the exponent of a zero.
fn evaluate_scaled<'a>(
    call: &'a Call,
    context: &EvaluationContext<'a>,
    double: fn(f64) -> f64,
    factor: &str,
) -> Result<Evaluated<'a>> {
    Ok(match call.number(context)? {
        None => Evaluated::null(),
        Some(Number::Decimal(angle)) => {
            let factor = Decimal128::parse(factor).unwrap_or(Decimal128::NAN);
            Number::Decimal(angle.multiply(factor)).into()
        }
        Some(other) if other.is_nan() => other.into(),
        Some(other) => double(other.to_f64()).into(),
    })
}

impl Domain {
    /// Returns the domain's interval, for the error message, if the number is outside; else `None`.
    fn outside(self, number: Number) -> Option<&'static str> {
        let value = Value::from(number);
        let beyond = |bound: ValueRef<'_>, side: Ordering| order::compare(value.as_ref(), bound) == side;
        let (is_outside, interval) = match self {
            Self::All => return None,
            Self::Finite => (number.to_f64().is_infinite() && is_infinite(number), "(-inf,inf)"),
            Self::Unit => {
                let (least, most) = (ValueRef::Int32(-1), ValueRef::Int32(1));
                (beyond(least, Ordering::Less) || beyond(most, Ordering::Greater), "[-1,1]")
            }
            Self::FromOne => (beyond(ValueRef::Int32(1), Ordering::Less), "[1,inf]"),
        };
        is_outside.then_some(interval)
    }
}

/// Whether a number is infinite. A decimal is not converted to a double, which would make a large decimal infinite.
fn is_infinite(number: Number) -> bool {
    match number {
        Number::Decimal(decimal) => decimal.is_infinite(),
        other => other.to_f64().is_infinite(),
    }
}

fn evaluate_atan2<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (y, x) = (call.argument(0, context)?, call.argument(1, context)?);
    if y.is_nullish() || x.is_nullish() {
        return Ok(Evaluated::null());
    }
    let number = |value: &Evaluated<'_>, code: i32| {
        let message = || format!(" only supports numeric types, not {}", value.type_name());
        value.get().and_then(Number::of).ok_or_else(|| call.failure(code, &message()))
    };
    let (y, x) = (number(&y, 51044)?, number(&x, 51045)?);
    if !y.is_decimal() && !x.is_decimal() {
        return Ok(y.to_f64().atan2(x.to_f64()).into());
    }
    if y.is_nan() || x.is_nan() {
        return Ok(Number::Decimal(Decimal128::NAN).into());
    }
    Ok(Number::Decimal(decimals::atan2(y.to_decimal(), x.to_decimal())).into())
}
