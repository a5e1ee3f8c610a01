//! `$dateFromString`: a date from text, in a format or as people write dates.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::date_part;
use crate::formatted_date;
use crate::made;
use crate::printed::printed;
use crate::time_zone::Zone;
use crate::written_date;
use bunko_bson::{Value, ValueRef};
use bunko_errors::{ErrorCode, Failure};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (40540, "$dateFromString only supports an object as an argument, found: {}"),
    unknown: (40541, "Unrecognized argument to $dateFromString: {}"),
    names: &[
        ("dateString", Some((40542, "Missing 'dateString' parameter to $dateFromString"))),
        ("timezone", None),
        ("onError", None),
        ("onNull", None),
        ("format", None),
    ],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$dateFromString", strings: Strings::AsBytes, form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let text = call.argument(0, context)?;
    let format = call.optional(4, context)?;
    if let Some(format) = format.as_ref().filter(|format| !format.is_nullish()) {
        let Some(ValueRef::String(format)) = format.get() else {
            let (kind, found) = (format.type_name(), printed(format));
            return Err(
                call.failure(40684, &format!(" requires that 'format' be a string, found: {kind} with value {found}"))
            );
        };
        context.operation().work(made::text_steps(format))?;
        formatted_date::check(format)?;
    }
    // A wrong zone is an error even where there is no string.
    let zone = date_part::zone(call.optional(1, context)?.as_ref())?;
    if text.is_nullish() {
        return if call.has(3) { call.argument(3, context) } else { Ok(Evaluated::null()) };
    }
    let parsed = match text.get() {
        Some(ValueRef::String(text)) => {
            context.operation().work(made::text_steps(text))?;
            parse(text, format.as_ref(), zone.as_ref())
        }
        _ => {
            let (kind, found) = (text.type_name(), printed(&text));
            Err(format!("$dateFromString requires that 'dateString' be a string, found: {kind} with value {found}"))
        }
    };
    match parsed {
        Ok(ms) => Ok(ms.map_or(Evaluated::null(), |ms| Value::DateTime(ms).into())),
        Err(_) if call.has(2) => call.argument(2, context),
        Err(message) => Err(Failure::new(ErrorCode::CONVERSION_FAILURE, message)),
    }
}

/// Reads the text as local time of `zone`, in milliseconds since 1970; `None` if zone or format is null. A text that
/// names a zone itself is an error unless `zone` is UTC.
fn parse(text: &str, format: Option<&Evaluated<'_>>, zone: Option<&Zone>) -> std::result::Result<Option<i64>, String> {
    let Some(given) = zone else { return Ok(None) };
    let moment = match format.map(Evaluated::get) {
        None => written_date::parse(text).ok_or_else(|| format!("Error parsing date string '{text}'"))?,
        Some(Some(ValueRef::String(format))) => formatted_date::parse(text, format)?,
        Some(_) => return Ok(None),
    };
    let refused = |what: String| {
        Err(format!("you cannot pass in a date/time string with {what} together with a timezone argument"))
    };
    match moment.zone {
        zone if zone.is_empty() || matches!(given, Zone::Fixed { offset_ms: 0 }) => Ok(Some(given.utc_ms(moment.ms))),
        zone if zone.starts_with(['+', '-']) => refused("GMT offset".to_owned()),
        zone => refused(format!("time zone information ('{zone}')")),
    }
}
