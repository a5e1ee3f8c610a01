//! Subject names as text, as OpenSSL prints them with `-nameopt RFC2253`: MongoDB identifies users by these names.

use crate::der::{
    BMP_STRING, IA5_STRING, Item, Items, NUMERIC_STRING, OBJECT_IDENTIFIER, PRINTABLE_STRING, SEQUENCE, SET,
    TELETEX_STRING, UNIVERSAL_STRING, UTF8_STRING, VISIBLE_STRING,
};
use std::fmt::Write;

/// Short names of attribute types, by object identifier in DER.
/// Source: `openssl list -objects` of OpenSSL 3.0.
const SHORT_NAMES: &[(&[u8], &str)] = &[
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 13], "description"),
    (&[0x55, 4, 15], "businessCategory"),
    (&[0x55, 4, 17], "postalCode"),
    (&[0x55, 4, 18], "postOfficeBox"),
    (&[0x55, 4, 19], "physicalDeliveryOfficeName"),
    (&[0x55, 4, 20], "telephoneNumber"),
    (&[0x55, 4, 41], "name"),
    (&[0x55, 4, 42], "GN"),
    (&[0x55, 4, 43], "initials"),
    (&[0x55, 4, 44], "generationQualifier"),
    (&[0x55, 4, 45], "x500UniqueIdentifier"),
    (&[0x55, 4, 46], "dnQualifier"),
    (&[0x55, 4, 51], "houseIdentifier"),
    (&[0x55, 4, 54], "dmdName"),
    (&[0x55, 4, 65], "pseudonym"),
    (&[0x55, 4, 72], "role"),
    (&[0x55, 4, 97], "organizationIdentifier"),
    (&[0x55, 4, 98], "c3"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 44], "uid"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 2], "unstructuredName"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 8], "unstructuredAddress"),
    (&[0x2b, 6, 1, 4, 1, 0x82, 0x37, 60, 2, 1, 1], "jurisdictionL"),
    (&[0x2b, 6, 1, 4, 1, 0x82, 0x37, 60, 2, 1, 2], "jurisdictionST"),
    (&[0x2b, 6, 1, 4, 1, 0x82, 0x37, 60, 2, 1, 3], "jurisdictionC"),
];

/// Writes a name: the last part first, parts of one rank joined by a plus sign. `None` if the name is malformed.
/// Source: RFC 2253, section 2.
pub fn rfc_2253(name: Items<'_>) -> Option<String> {
    let mut ranks = Vec::new();
    for rank in name {
        let parts: Option<Vec<_>> =
            Some(rank).filter(|rank| rank.tag == SET).map(|rank| Items(rank.content))?.map(part).collect();
        ranks.push(parts?.into_iter().rev().collect::<Vec<_>>().join("+"));
    }
    ranks.reverse();
    Some(ranks.join(","))
}

fn part(item: Item<'_>) -> Option<String> {
    let mut fields = Some(item).filter(|item| item.tag == SEQUENCE).map(|item| Items(item.content))?;
    let kind = fields.next_of(OBJECT_IDENTIFIER)?.0;
    let value = fields.next()?;
    match SHORT_NAMES.iter().find(|(known, _)| *known == kind) {
        Some((_, name)) => Some(format!("{name}={}", shown(value)?)),
        // A type without a short name is written as its number, and its value in hexadecimal.
        None => Some(format!("{}={}", dotted(kind)?, as_it_is(value))),
    }
}

/// A text value as text, any other value in hexadecimal; `None` for malformed text.
fn shown(value: Item<'_>) -> Option<String> {
    let text = match value.tag {
        UTF8_STRING => std::str::from_utf8(value.content).ok()?.to_owned(),
        // One byte per character. Issuers write Latin letters in types that exclude them, and OpenSSL accepts that.
        PRINTABLE_STRING | IA5_STRING | NUMERIC_STRING | VISIBLE_STRING | TELETEX_STRING => {
            value.content.iter().map(|byte| char::from(*byte)).collect()
        }
        BMP_STRING => {
            let (units, []) = value.content.as_chunks() else { return None };
            String::from_utf16(&units.iter().map(|unit| u16::from_be_bytes(*unit)).collect::<Vec<_>>()).ok()?
        }
        UNIVERSAL_STRING => {
            let (units, []) = value.content.as_chunks() else { return None };
            units.iter().map(|unit| char::from_u32(u32::from_be_bytes(*unit))).collect::<Option<_>>()?
        }
        _ => return Some(as_it_is(value)),
    };
    Some(escaped(&text))
}

fn as_it_is(value: Item<'_>) -> String {
    format!("#{}", hexadecimal(value.whole))
}

/// Escapes a value. Separators, and spaces or `#` that a reader would trim or misread at an edge, get a backslash.
/// Control characters and bytes beyond ASCII are written as hexadecimal numbers.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (place, byte) in text.bytes().enumerate() {
        let is_edge = match byte {
            b' ' => place == 0 || place + 1 == text.len(),
            b'#' => place == 0,
            _ => false,
        };
        match byte {
            0..0x20 | 0x7f.. => drop(write!(escaped, "\\{byte:02X}")),
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => escaped.extend(['\\', char::from(byte)]),
            _ if is_edge => escaped.extend(['\\', char::from(byte)]),
            _ => escaped.push(char::from(byte)),
        }
    }
    escaped
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// An object identifier as numbers with dots.
fn dotted(kind: &[u8]) -> Option<String> {
    let mut numbers: Vec<u64> = Vec::new();
    let mut number = 0_u64;
    for byte in kind {
        number = number.checked_mul(128)? | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(std::mem::take(&mut number));
        }
    }
    // The first two numbers share one encoded number.
    let (first, rest) = numbers.split_first()?;
    let root = (first / 40).min(2);
    let mut text = format!("{root}.{}", first - 40 * root);
    for number in rest {
        let _ = write!(text, ".{number}");
    }
    Some(text)
}
