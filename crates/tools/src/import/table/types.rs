//! The types of columns, with mongoimport's names.
//!
//! Source: MongoDB Database Tools manual, "mongoimport --columnsHaveTypes".

use super::{date_layout, date_oracle};
use bunko_bson::{BinarySubtype, Decimal128, Type, base64};

/// A value is not of its column's type, which is described.
pub(super) struct Misfit(pub(super) &'static str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Base64,
    Base32,
    Hexadecimal,
}

/// How a column's values are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Auto,
    Binary(Encoding),
    Boolean,
    Date(date_layout::Layout),
    Decimal,
    Double,
    Int32,
    Int64,
    String,
}

impl ColumnType {
    /// Splits `name.type(argument)` into the name and the type.
    /// # Errors
    /// A sentence that names the column and its type.
    pub(super) fn split(column: &str) -> Result<(&str, Self), String> {
        let form = || format!("the column {column:?} has no type: it must end with .type(argument), such as .auto()");
        let inner = column.strip_suffix(')').ok_or_else(form)?;
        // The type's name has no bracket, but the argument may have.
        let opening = inner.match_indices('(').map(|(at, _)| at).find(|&at| {
            let name = inner[..at].rsplit('.').next().unwrap_or_default();
            inner[..at].contains('.')
                && !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        });
        let opening = opening.ok_or_else(form)?;
        let (name, kind) = inner[..opening].rsplit_once('.').ok_or_else(form)?;
        let argument = unescape(&inner[opening + 1..]);
        Self::new(kind, &argument).map(|kind| (name, kind)).map_err(|reason| format!("the column {column:?}: {reason}"))
    }

    fn new(kind: &str, argument: &str) -> Result<Self, String> {
        let plain = match kind {
            "auto" => Self::Auto,
            "boolean" => Self::Boolean,
            "decimal" => Self::Decimal,
            "double" => Self::Double,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "string" => Self::String,
            "binary" => {
                return match argument {
                    "base64" => Ok(Self::Binary(Encoding::Base64)),
                    "base32" => Ok(Self::Binary(Encoding::Base32)),
                    "hex" => Ok(Self::Binary(Encoding::Hexadecimal)),
                    _ => Err(format!("the encoding {argument:?} of binary is not base64, base32 or hex")),
                };
            }
            "date" | "date_go" => return date_layout::Layout::of_reference_time(argument).map(Self::Date),
            "date_oracle" => return date_oracle::layout(argument).map(Self::Date),
            "date_ms" => return date_oracle::layout_of_ms(argument).map(Self::Date),
            _ => return Err(format!("there is no type {kind:?}")),
        };
        if argument.is_empty() { Ok(plain) } else { Err(format!("the type {kind} has no argument")) }
    }

    /// Appends a value without its name; returns its type.
    pub(super) fn append(&self, text: &str, out: &mut Vec<u8>) -> Result<Option<Type>, Misfit> {
        let kind = match self {
            Self::Auto => Self::append_auto(text, out),
            Self::String => append_string(text, out),
            Self::Boolean => {
                out.push(boolean(text).ok_or(Misfit("a boolean (true, false, 1 or 0)"))?);
                Type::Boolean
            }
            Self::Int32 => {
                let number: i32 = text.parse().map_err(|_| Misfit("an int32"))?;
                out.extend_from_slice(&number.to_le_bytes());
                Type::Int32
            }
            Self::Int64 => {
                let number: i64 = text.parse().map_err(|_| Misfit("an int64"))?;
                out.extend_from_slice(&number.to_le_bytes());
                Type::Int64
            }
            Self::Double => {
                let number = double(text).ok_or(Misfit("a double"))?;
                out.extend_from_slice(&number.to_le_bytes());
                Type::Double
            }
            Self::Decimal => {
                let number = Decimal128::parse(text).ok_or(Misfit("a decimal of 34 digits"))?;
                out.extend_from_slice(&number.0);
                Type::Decimal128
            }
            Self::Date(layout) => {
                let ms = layout.parse_ms(text).ok_or(Misfit("a date in the column's layout"))?;
                out.extend_from_slice(&ms.to_le_bytes());
                Type::DateTime
            }
            Self::Binary(encoding) => {
                let bytes = decode(*encoding, text).ok_or(Misfit("binary data in the column's encoding"))?;
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.push(BinarySubtype::GENERIC);
                out.extend_from_slice(&bytes);
                Type::Binary
            }
        };
        Ok(Some(kind))
    }

    /// Appends a number if the text reads as one, otherwise the text.
    pub(super) fn append_auto(text: &str, out: &mut Vec<u8>) -> Type {
        // Words such as Nan and Inf stay strings, although a parser of numbers would accept them.
        let is_part = |byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let may_be_number = text.bytes().all(is_part);
        let integer = if may_be_number { text.parse::<i64>().ok() } else { None };
        if let Some(integer) = integer {
            return match i32::try_from(integer) {
                Ok(number) => {
                    out.extend_from_slice(&number.to_le_bytes());
                    Type::Int32
                }
                Err(_) => {
                    out.extend_from_slice(&integer.to_le_bytes());
                    Type::Int64
                }
            };
        }
        match double(text).filter(|_| may_be_number) {
            Some(number) => {
                out.extend_from_slice(&number.to_le_bytes());
                Type::Double
            }
            None => append_string(text, out),
        }
    }
}

fn append_string(text: &str, out: &mut Vec<u8>) -> Type {
    out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    Type::String
}

/// Parses a double, also `inf` and `nan`; `None` for digits whose number no double can hold.
fn double(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let names_infinity = text.bytes().any(|byte| byte.is_ascii_alphabetic() && !matches!(byte, b'e' | b'E'));
    (number.is_finite() || names_infinity).then_some(number)
}

fn boolean(text: &str) -> Option<u8> {
    match text {
        "1" => Some(1),
        "0" => Some(0),
        _ if text.eq_ignore_ascii_case("true") => Some(1),
        _ if text.eq_ignore_ascii_case("false") => Some(0),
        _ => None,
    }
}

fn decode(encoding: Encoding, text: &str) -> Option<Vec<u8>> {
    match encoding {
        Encoding::Base64 => base64::decode(text),
        Encoding::Hexadecimal => hexadecimal(text),
        Encoding::Base32 => base32(text),
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some((digit(pair[0])? << 4 | digit(*pair.get(1)?)?) as u8)).collect()
}

/// Source: RFC 4648, section 6.
fn base32(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let has_whole_length = text.len().is_multiple_of(8) && text.len() - digits.len() < 8;
    if !has_whole_length || matches!(digits.len() % 8, 1 | 3 | 6) {
        return None;
    }
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::with_capacity(digits.len() * 5 / 8));
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'2'..=b'7' => digit - b'2' + 26,
            _ => return None,
        };
        bits = bits << 5 | u32::from(value);
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

/// Removes backslashes, by which an argument holds brackets and backslashes.
fn unescape(argument: &str) -> String {
    let (mut plain, mut rest) = (String::new(), argument.chars());
    while let Some(character) = rest.next() {
        match character {
            '\\' => plain.extend(rest.next()),
            other => plain.push(other),
        }
    }
    plain
}
