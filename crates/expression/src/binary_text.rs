//! Binary data as text, for `$convert` and `$toString`.

use crate::call::refuse;
use crate::conversion::failure;
use bunko_bson::{BinarySubtype, Value, ValueRef, base64, hexadecimal};
use bunko_errors::Result;

/// The encoding of bytes as text. Source: MongoDB manual, "$convert", "format".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Base64,
    Base64Url,
    Hex,
    Utf8,
    Uuid,
    /// For a UUID its own form, else base64. Only for conversions to text.
    Auto,
}

/// Bytes of a UUID.
const UUID_BYTES: usize = 16;

impl Format {
    /// # Errors
    /// 4341125 for another name.
    pub(crate) fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "base64" => Self::Base64,
            "base64url" => Self::Base64Url,
            "hex" => Self::Hex,
            "utf8" => Self::Utf8,
            "uuid" => Self::Uuid,
            "auto" => Self::Auto,
            other => return Err(refuse((4_341_125, "Invalid 'format' argument for $convert: {}"), other)),
        })
    }
}

/// The text of binary data. In the oldest subtype the text includes the repeated length.
/// # Errors
/// `ConversionFailure` if the bytes have no text in this format.
pub(crate) fn write(subtype: u8, bytes: &[u8], format: Format) -> Result<String> {
    let is_uuid = subtype == BinarySubtype::UUID && bytes.len() == UUID_BYTES;
    let text = match format {
        Format::Uuid | Format::Auto if is_uuid => Ok(hexadecimal::uuid(bytes)),
        Format::Uuid => Err("BinData does not represent a valid UUID"),
        Format::Base64 | Format::Auto => Ok(base64::encode(bytes)),
        Format::Base64Url => Ok(base64::encode(bytes).trim_end_matches('=').replace('+', "-").replace('/', "_")),
        Format::Hex => Ok(hexadecimal::capital(bytes)),
        Format::Utf8 => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err("BinData does not represent a valid UTF-8 string"),
        },
    };
    text.map_err(|why| {
        let found = crate::printed::printed_value(ValueRef::Binary { subtype, bytes });
        failure(format!("Failed to convert '{found}' to string in $convert with no onError value: {why}"))
    })
}

/// The binary data that a text stands for.
/// # Errors
/// `ConversionFailure` for a text that is not in the format, or if only one of format and subtype is for UUIDs.
pub(crate) fn read(text: &str, subtype: u8, format: Format) -> Result<Value> {
    let bytes = match format {
        _ if (format == Format::Uuid) != (subtype == BinarySubtype::UUID) => {
            Err("Only the 'uuid' format is allowed with the UUID subtype")
        }
        Format::Base64 => read_base64(text).ok_or("invalid base64"),
        Format::Base64Url => read_base64_url(text).ok_or("invalid base64"),
        Format::Hex => read_hex(text).ok_or("invalid hex"),
        Format::Utf8 => Ok(text.as_bytes().to_vec()),
        Format::Uuid => read_uuid(text).ok_or("Invalid UUID string"),
        Format::Auto => Err("Invalid format 'auto'"),
    };
    match bytes {
        Ok(mut bytes) => {
            if subtype == BinarySubtype::OLD {
                bytes.splice(..0, (bytes.len() as u32).to_le_bytes());
            }
            Ok(Value::Binary { subtype, bytes })
        }
        Err(why) => {
            Err(failure(format!("Failed to convert '{text}' to BinData in $convert with no onError value: {why}")))
        }
    }
}

fn read_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digits = text.chars().map(|character| character.to_digit(16)).collect::<Option<Vec<_>>>()?;
    Some(digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

fn read_uuid(text: &str) -> Option<Vec<u8>> {
    let in_place = |(position, byte)| (byte == b'-') == matches!(position, 8 | 13 | 18 | 23);
    let is_uuid = text.len() == 36 && text.bytes().enumerate().all(in_place);
    if is_uuid { read_hex(&text.replace('-', "")) } else { None }
}

/// Decodes base64 with its padding, which [`read_base64_url`] allows to be missing.
fn read_base64(text: &str) -> Option<Vec<u8>> {
    if text.len().is_multiple_of(4) { base64::decode(text) } else { None }
}

fn read_base64_url(text: &str) -> Option<Vec<u8>> {
    if text.contains(['+', '/']) {
        return None;
    }
    base64::decode(&text.replace('-', "+").replace('_', "/"))
}
