//! Reads JSON by recursive descent, turning wrappers into values as their braces close.

use super::scanner::Scanner;
use super::{ExtendedJsonError, typed};
use crate::{ArrayBuf, DocumentBuf, MAX_DEPTH_ACCEPTED, Value};

/// The deepest document that is accepted, and in it the deepest wrapper: `{"$dbPointer": {"$id": {"$oid": ...}}}`.
const MAX_DEPTH_JSON: usize = MAX_DEPTH_ACCEPTED + 4;

/// One value and nothing behind it.
pub(super) fn parse(scanner: &mut Scanner<'_>) -> Result<Value, ExtendedJsonError> {
    let value = value(scanner, 0)?;
    scanner.expect_end()?;
    Ok(value)
}

/// `depth` counts the braces and brackets around the value.
fn value(scanner: &mut Scanner<'_>, depth: usize) -> Result<Value, ExtendedJsonError> {
    match scanner.peek() {
        Some(b'{' | b'[') if depth == MAX_DEPTH_JSON => {
            Err(scanner.expected(&format!("at most {MAX_DEPTH_ACCEPTED} levels of nesting")))
        }
        Some(b'{') => object(scanner, depth + 1),
        Some(b'[') => array(scanner, depth + 1),
        Some(b'"') => Ok(Value::String(scanner.string()?)),
        Some(b'-' | b'0'..=b'9') => scanner.number(),
        _ => scanner.word(),
    }
}

fn object(scanner: &mut Scanner<'_>, depth: usize) -> Result<Value, ExtendedJsonError> {
    let start = scanner.position();
    scanner.expect(b'{')?;
    let mut document = DocumentBuf::new();
    if !scanner.take(b'}') {
        loop {
            let name = scanner.name()?;
            scanner.expect(b':')?;
            document.append(&name, &value(scanner, depth)?);
            if !scanner.take(b',') {
                break;
            }
        }
        scanner.expect(b'}')?;
    }
    typed::unwrap(document).map_err(|reason| scanner.error_at(start, reason))
}

fn array(scanner: &mut Scanner<'_>, depth: usize) -> Result<Value, ExtendedJsonError> {
    scanner.expect(b'[')?;
    let mut array = ArrayBuf::new();
    if !scanner.take(b']') {
        loop {
            array.push(&value(scanner, depth)?);
            if !scanner.take(b',') {
                break;
            }
        }
        scanner.expect(b']')?;
    }
    Ok(Value::Array(array))
}
