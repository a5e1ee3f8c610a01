//! Documents such as `{"$oid": "..."}`, which stand for values of types that JSON lacks.

use super::cutter;
use crate::import::flaw::{Flaw, shown};
use bunko_bson::extended_json::{self, ExtendedJsonError};
use bunko_bson::{DocumentBuf, ObjectId, Type, datetime};

/// Appends the value of the document that begins at `start`; returns its type and the offset after it.
pub(super) fn append(text: &str, start: usize, out: &mut Vec<u8>) -> Result<(Type, usize), Flaw> {
    if let Some(short) = append_short(text, start, out) {
        return Ok(short);
    }
    let Some(length) = cutter::document_length(&text.as_bytes()[start..]) else {
        return Err(unclosed(text, start));
    };
    let wrapped = &text[start..start + length];
    let value = extended_json::parse_value(wrapped).map_err(|error| in_text(&error, wrapped, start))?;
    let element = DocumentBuf::new().with("", &value);
    // Around the value: the length, the type and an empty name, and the end of the document.
    let bytes = element.as_ref().as_bytes();
    out.extend_from_slice(&bytes[6..bytes.len() - 1]);
    Ok((value.as_ref().kind(), start + length))
}

/// Reads the frequent wrappers that have one short text, `{"$oid": "..."}`, without a search for their end. `None`
/// leaves a wrapper to the general way.
fn append_short(text: &str, start: usize, out: &mut Vec<u8>) -> Option<(Type, usize)> {
    let rest = text.get(start..)?.strip_prefix("{\"$")?;
    let (name, rest) = rest.split_once("\":")?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest).strip_prefix('"')?;
    let end = memchr::memchr2(b'"', b'\\', rest.as_bytes())?;
    let contents = &rest[..end];
    let behind = rest[end..].strip_prefix("\"}")?;
    let kind = match name {
        "oid" => {
            out.extend_from_slice(&ObjectId::parse_hex(contents)?.0);
            Type::ObjectId
        }
        "date" => {
            out.extend_from_slice(&datetime::parse_iso8601(contents)?.to_le_bytes());
            Type::DateTime
        }
        "numberLong" => {
            out.extend_from_slice(&contents.parse::<i64>().ok()?.to_le_bytes());
            Type::Int64
        }
        "numberInt" => {
            out.extend_from_slice(&contents.parse::<i32>().ok()?.to_le_bytes());
            Type::Int32
        }
        _ => return None,
    };
    Some((kind, text.len() - behind.len()))
}

/// The error of a wrapper that has no end, or an error in front of it.
fn unclosed(text: &str, start: usize) -> Flaw {
    let rest = &text[start..];
    let flaw = extended_json::parse_value(rest).err().map(|error| in_text(&error, rest, start));
    flaw.filter(|flaw| flaw.offset < text.len())
        .unwrap_or_else(|| Flaw::at_end(text.len(), "the wrapper of a value is not closed"))
}

/// The error with its place in the whole text.
fn in_text(error: &ExtendedJsonError, wrapped: &str, start: usize) -> Flaw {
    let line = wrapped.split_inclusive('\n').take(error.line - 1).map(str::len).sum::<usize>();
    let column = wrapped[line..].chars().take(error.column - 1).map(char::len_utf8).sum::<usize>();
    Flaw::new(start + line + column, format!("{} in {}", error.reason, shown(wrapped)))
}
