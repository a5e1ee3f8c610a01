//! `$dateToString`: formats a date.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::calendar;
use crate::calendar::Civil;
use crate::date_part;
use crate::formatted_date::{check_specifiers, unknown_specifier};
use crate::made;
use crate::printed::printed_value;
use crate::time_zone::Zone;
use bunko_bson::ValueRef;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (18629, "$dateToString only supports an object as its argument"),
    unknown: (18534, "Unrecognized argument to $dateToString: {}"),
    names: &[
        ("date", Some((18628, "Missing 'date' parameter to $dateToString"))),
        ("format", None),
        ("timezone", None),
        ("onNull", None),
    ],
};
/// Characters allowed after `%`; [`field`] has each.
const SPECIFIERS: &str = "%YmdHMSLjwuUVGBbZz";
pub(super) const OPERATOR: Operator =
    Operator { name: "$dateToString", strings: Strings::AsBytes, form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let date = call.argument(0, context)?;
    let format = call.optional(1, context)?;
    // A wrong format or zone is an error even where there is no date.
    let format = match format.as_ref().map(Evaluated::or_null) {
        None => Some(None),
        Some(ValueRef::Null | ValueRef::Undefined) => None,
        Some(ValueRef::String(format)) => {
            context.operation().work(made::text_steps(format))?;
            check_specifiers(format, SPECIFIERS)?;
            Some(Some(format))
        }
        Some(other) => {
            let (kind, found) = (other.kind().alias(), printed_value(other));
            let message = format!(" requires that 'format' be a string, found: {kind} with value {found}");
            return Err(call.failure(18533, &message));
        }
    };
    let zone = date_part::zone(call.optional(2, context)?.as_ref())?;
    if date.is_nullish() {
        return if call.has(3) { call.argument(3, context) } else { Ok(Evaluated::null()) };
    }
    let (Some(format), Some(zone)) = (format, zone) else { return Ok(Evaluated::null()) };
    let is_utc = matches!(zone, Zone::Fixed { offset_ms: 0 });
    let format = format.unwrap_or(if is_utc { "%Y-%m-%dT%H:%M:%S.%LZ" } else { "%Y-%m-%dT%H:%M:%S.%L" });
    let ms = date_part::moment(&date)?;
    let offset = zone.offset_ms(ms);
    let civil = Civil::of(ms.saturating_add(offset));
    made::string(formatted(format, civil, offset / calendar::MS_PER_MINUTE, context)?, context)
}

/// Writes a date in a format whose specifiers were checked when it was parsed.
fn formatted(format: &str, civil: Civil, offset_minutes: i64, context: &EvaluationContext<'_>) -> Result<String> {
    let mut text = String::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        if let Some(specifier) = characters.next() {
            context.operation().work(1)?;
            text.push_str(&field(specifier, civil, offset_minutes)?);
        }
    }
    Ok(text)
}

/// Returns the text for one specifier.
fn field(specifier: char, civil: Civil, offset_minutes: i64) -> Result<String> {
    let month = calendar::MONTHS[(civil.month - 1) as usize];
    Ok(match specifier {
        '%' => "%".to_owned(),
        'Y' => format!("{:04}", civil.printable_year()?),
        'm' => format!("{:02}", civil.month),
        'd' => format!("{:02}", civil.day),
        'H' => format!("{:02}", civil.hour),
        'M' => format!("{:02}", civil.minute),
        'S' => format!("{:02}", civil.second),
        'L' => format!("{:03}", civil.millisecond),
        'j' => format!("{:03}", civil.day_of_year()),
        'w' => civil.day_of_week().to_string(),
        'u' => civil.iso_day_of_week().to_string(),
        'U' => format!("{:02}", civil.week()),
        'V' => format!("{:02}", civil.iso_week().1),
        'G' => {
            civil.printable_year()?;
            format!("{:04}", civil.iso_week().0)
        }
        'B' => month.to_owned(),
        'b' => month[..3].to_owned(),
        'Z' => offset_minutes.to_string(),
        'z' => {
            let sign = if offset_minutes < 0 { '-' } else { '+' };
            format!("{sign}{:02}{:02}", offset_minutes.abs() / 60, offset_minutes.abs() % 60)
        }
        other => return Err(unknown_specifier(other)),
    })
}
