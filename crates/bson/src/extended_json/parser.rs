//! Reads JSON by recursive descent, turning wrappers into values as their braces close.

use super::scanner::Scanner;
use super::{ExtendedJsonError, typed};
use crate::{ArrayBuf, DocumentBuf, MAX_DEPTH_ACCEPTED, Value};

/// Depth of the deepest accepted document with the deepest wrapper in it: `{"$dbPointer": {"$id": {"$oid": ...}}}`.
const MAX_DEPTH_JSON: usize = MAX_DEPTH_ACCEPTED + 4;

/// Reads one value and the end of the text.
pub(super) fn parse(scanner: &mut Scanner<'_>) -> Result<Value, ExtendedJsonError> {
    let value = value(scanner, 0)?;
    scanner.expect_end()?;
    Ok(value)
}

/// Reads a value. `depth` is the number of braces and brackets around it.
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
