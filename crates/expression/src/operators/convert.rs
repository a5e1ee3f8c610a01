//! `$convert`: converts to a type, with `onError` and `onNull`.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Refusal, Result, Strings, refuse};
use crate::binary_number::{self, ByteOrder};
use crate::binary_text::{self, Format};
use crate::conversion;
use crate::made;
use crate::number::as_i32;
use crate::printed::printed_value;
use bunko_bson::{BinarySubtype, Type, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (9, "$convert expects an object of named arguments but found: {}"),
    unknown: (9, "$convert found an unknown argument: {}"),
    names: &[
        ("input", Some((9, "Missing 'input' parameter to $convert"))),
        ("to", Some((9, "Missing 'to' parameter to $convert"))),
        ("onError", None),
        ("onNull", None),
        ("format", None),
        ("byteOrder", None),
    ],
};

/// The misspelling is MongoDB's.
const NO_FORMAT: Refusal = (4_341_115, "Format must be speficied when converting {}");

pub(super) const OPERATOR: Operator =
    Operator { name: "$convert", strings: Strings::AsBytes, form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let value = call.argument(0, context)?;
    let target = call.argument(1, context)?;
    // A wrong type is an error even if the input is null.
    let kind = match target.get() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => None,
        Some(ValueRef::Document(document)) => Some(target_type(&Evaluated::from(document.get("type")))?),
        _ => Some(target_type(&target)?),
    };
    if value.is_nullish() {
        return if call.has(3) { call.argument(3, context) } else { Ok(Evaluated::null()) };
    }
    let Some(kind) = kind else { return Ok(Evaluated::null()) };
    let ConversionTarget::Type(kind) = kind else {
        let message =
            format!("Unsupported conversion from {} to missing in $convert with no onError value", value.type_name());
        return if call.has(2) { call.argument(2, context) } else { Err(conversion::failure(message)) };
    };
    let subtype = if kind == Type::Binary { read_subtype(&target)? } else { BinarySubtype::GENERIC };
    let byte_order = call.optional(5, context)?.map_or(Ok(ByteOrder::Little), |order| read_byte_order(&order))?;
    let format = call.optional(4, context)?.map_or(Ok(None), |format| read_format(&format))?;
    let converted = match (value.or_null(), kind) {
        (ValueRef::Binary { subtype, bytes }, Type::String) => {
            let format = format.ok_or_else(|| refuse(NO_FORMAT, "from 'binData' to 'string'"))?;
            binary_text::write(subtype, bytes, format).map(Value::String)
        }
        (ValueRef::String(text), Type::Binary) => {
            let format = format.ok_or_else(|| refuse(NO_FORMAT, "from 'string' to 'binData'"))?;
            binary_text::read(text, subtype, format)
        }
        (ValueRef::Binary { bytes, .. }, Type::Int32 | Type::Int64 | Type::Double) => {
            conversion::from_bytes(bytes, kind, byte_order)
        }
        (number @ (ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_)), Type::Binary) => {
            let bytes = binary_number::write(number, byte_order).unwrap_or_default();
            Ok(Value::Binary { subtype, bytes })
        }
        (binary @ ValueRef::Binary { subtype: found, .. }, Type::Binary) => {
            if found == subtype {
                Ok(binary.to_value())
            } else {
                Err(conversion::failure("Conversions between different BinData subtypes are not supported"))
            }
        }
        (value, kind) => conversion::convert(value, kind),
    };
    let is_encoded = matches!(format, Some(format) if format != Format::Utf8);
    match converted.and_then(|value| if is_encoded { check_length(&value).map(|()| value) } else { Ok(value) }) {
        Err(failure) if call.has(2) && failure.code() == ErrorCode::CONVERSION_FAILURE => call.argument(2, context),
        converted => made::checked(converted?, context),
    }
}

/// # Errors
/// `ConversionFailure` for a string that is too long.
fn check_length(value: &Value) -> Result<()> {
    match value {
        Value::String(text) => {
            made::check_string_length(text.len()).map_err(|failure| conversion::failure(failure.message()))
        }
        _ => Ok(()),
    }
}

fn read_byte_order(order: &Evaluated<'_>) -> Result<ByteOrder> {
    match order.get() {
        None | Some(ValueRef::Null | ValueRef::Undefined | ValueRef::String("little")) => Ok(ByteOrder::Little),
        Some(ValueRef::String("big")) => Ok(ByteOrder::Big),
        Some(ValueRef::String(name)) => Err(refuse((9_130_002, "Invalid 'byteOrder' argument for $convert: {}"), name)),
        Some(other) => {
            let refusal = (9_130_001, "$convert requires that 'byteOrder' be a string, found: {}");
            Err(refuse(refusal, other.kind().alias()))
        }
    }
}

fn read_format(format: &Evaluated<'_>) -> Result<Option<Format>> {
    match format.get() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(None),
        Some(ValueRef::String(name)) => Format::parse(name).map(Some),
        Some(other) => {
            let (kind, found) = (other.kind().alias(), printed_value(other));
            let refusal = (4_341_114, "$convert requires that 'format' be a string, found: {}");
            Err(refuse(refusal, &format!("{kind} with value {found}")))
        }
    }
}

/// Reads the subtype of binary data from `to`; generic if `to` names none.
fn read_subtype(target: &Evaluated<'_>) -> Result<u8> {
    let document = target.get().and_then(ValueRef::as_document);
    let Some(subtype) = document.and_then(|document| document.get("subtype")) else {
        return Ok(BinarySubtype::GENERIC);
    };
    if !subtype.is_number() {
        let refusal = (4_341_108, "For BinData, $convert's 'subtype' argument must be a number, but is {}");
        return Err(refuse(refusal, subtype.kind().alias()));
    }
    let refusal = (4_341_106, "In $convert, numeric 'subtype' argument is not an integer");
    let number = as_i32(subtype).ok_or_else(|| refuse(refusal, ""))?;
    // Subtypes defined by BSON, and subtypes reserved for users.
    match u8::try_from(number) {
        Ok(subtype @ (0..=8 | 128..)) => Ok(subtype),
        _ => {
            let refusal =
                (4_341_107, "In $convert, numeric value for 'subtype' does not correspond to a BinData type: {}");
            Err(refuse(refusal, &number.to_string()))
        }
    }
}

/// The target of a conversion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConversionTarget {
    Type(Type),
    /// The number 0, which is not a type: every conversion to it fails.
    Nothing,
}

/// Reads a type's alias or its number in BSON.
fn target_type(target: &Evaluated<'_>) -> Result<ConversionTarget> {
    match target.get() {
        Some(ValueRef::String(alias)) => conversion::target_of_alias(alias).map(ConversionTarget::Type),
        Some(number) if number.is_number() && as_i32(number) == Some(0) => Ok(ConversionTarget::Nothing),
        Some(number) if number.is_number() => {
            let code = as_i32(number).and_then(|code| i8::try_from(code).ok());
            code.and_then(|code| Type::from_byte(code as u8)).map(ConversionTarget::Type).ok_or_else(|| {
                let found = printed_value(number);
                Failure::failed_to_parse(format!(
                    "In $convert, numeric value for 'to' does not correspond to a BSON type: {found}"
                ))
            })
        }
        _ => Err(Failure::failed_to_parse(
            "$convert's 'to' argument must be a string or number, but is ".to_owned() + target.type_name(),
        )),
    }
}
