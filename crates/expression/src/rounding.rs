//! Rounding to a number of places, for `$round` and `$trunc`.

use crate::call::Call;
use crate::number::{Number, as_i32, integer_like};
use crate::printed::printed;
use crate::variables::EvaluationContext;
use crate::{Evaluated, decimal};
use bunko_bson::{Decimal128, Rounding, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// The direction in which a number is rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// To the nearer neighbour, a half to the even one.
    HalfEven,
    /// Towards zero.
    Truncate,
}

/// Evaluates an operator whose arguments are a number and, perhaps, places after the point.
pub(crate) fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>, mode: Mode) -> Result<Evaluated<'a>> {
    let value = call.argument(0, context)?;
    let places = call.optional(1, context)?;
    if value.is_nullish() || places.as_ref().is_some_and(Evaluated::is_nullish) {
        return Ok(Evaluated::null());
    }
    let Some(number) = value.get().and_then(Number::of) else {
        let message = format!(" only supports numeric types, not {}", value.type_name());
        return Err(call.failure(51081, &message));
    };
    let places = places.map_or(Ok(0), |places| read_places(call, &places))?;
    match number {
        Number::Int32(_) | Number::Int64(_) if places >= 0 => Ok(number.into()),
        Number::Int32(_) | Number::Int64(_) => {
            let integer = number.as_integer().unwrap_or(0);
            let Ok(rounded) = i64::try_from(round_integer(integer, -places, mode)) else {
                let message = format!(
                    "invalid conversion from Decimal128 result in {} resulting from arguments: [{integer}, {places}]",
                    call.name()
                );
                return Err(Failure::new(ErrorCode(51080), message));
            };
            Ok(integer_like(rounded, [number, Number::Int32(0)]).into())
        }
        Number::Double(number) if places == 0 => Ok(match mode {
            Mode::HalfEven => number.round_ties_even().into(),
            Mode::Truncate => number.trunc().into(),
        }),
        Number::Double(number) if !number.is_finite() => Ok(number.into()),
        Number::Double(number) => Ok(round_decimal(decimal::from_binary(number), places, mode).to_f64().into()),
        Number::Decimal(number) => Ok(Number::Decimal(round_decimal(number, places, mode)).into()),
    }
}

fn read_places(call: &Call, places: &Evaluated<'_>) -> Result<i32> {
    if !places.get().is_some_and(ValueRef::is_number) {
        let message = format!("can't convert from BSON type {} to long", places.type_name());
        return Err(Failure::new(ErrorCode(16004), message));
    }
    if let Some(ValueRef::Double(number)) = places.get()
        && !number.is_finite()
    {
        let message = format!("Can't coerce out of range value {} to long", printed(places));
        return Err(Failure::new(ErrorCode(31109), message));
    }
    let Some(number) = places.get().and_then(as_i32) else {
        let message = format!("precision argument to  {} must be a integral value", call.name());
        return Err(Failure::new(ErrorCode(51082), message));
    };
    if (-20..=100).contains(&number) {
        return Ok(number);
    }
    let found = printed(places);
    let message = format!("cannot apply {} with precision value {found} value must be in [-20, 100]", call.name());
    Err(Failure::new(ErrorCode(51083), message))
}

/// Rounds away the last `digits` digits, at most 20.
fn round_integer(integer: i64, digits: i32, mode: Mode) -> i128 {
    let unit = 10_i128.pow(digits.unsigned_abs());
    let integer = i128::from(integer);
    let (quotient, rest) = (integer / unit, (integer % unit).abs() * 2);
    let away = mode == Mode::HalfEven && (rest > unit || (rest == unit && quotient % 2 != 0));
    (quotient + if away { integer.signum() } else { 0 }) * unit
}

fn round_decimal(number: Decimal128, places: i32, mode: Mode) -> Decimal128 {
    let rounding = match mode {
        Mode::HalfEven => Rounding::HalfEven,
        Mode::Truncate => Rounding::Truncate,
    };
    decimal::quantized(number, -places, rounding)
}
