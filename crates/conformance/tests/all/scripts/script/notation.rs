//! Notation of documents, keys and ranges in scripts.

use std::ops::Bound;

/// Bytes around a document's text: its length and a zero, as in BSON.
const FRAME_BYTES: usize = 5;

/// Length of the longest text that is recognised when it is repeated, in bytes.
const PERIOD_MAX: usize = 16;

/// A document from `text`, from `text*N` for N bytes filled with it, or from `-` for an empty one.
pub fn document(notation: &str) -> Vec<u8> {
    let (text, length) = match notation.split_once('*') {
        Some((text, length)) => (text, length.parse().unwrap_or_else(|_| panic!("no length in {notation:?}"))),
        None if notation == "-" => ("", FRAME_BYTES),
        None => (notation, notation.len() + FRAME_BYTES),
    };
    let mut bytes = u32::try_from(length).expect("a document's length").to_le_bytes().to_vec();
    bytes.extend(text.repeat(length.div_ceil(text.len().max(1))).into_bytes());
    bytes.truncate(length - 1);
    bytes.push(0);
    bytes
}

/// The notation of a document.
pub fn print_document(bytes: &[u8]) -> String {
    let text = bytes.get(4..bytes.len().saturating_sub(1)).unwrap_or_default();
    // Documents of megabytes are compared as a whole, which is quick, and only their beginning is analysed.
    let start = &text[..text.len().min(2 * PERIOD_MAX)];
    let repeats = |period: &usize| start.len() > 2 * period && start[*period..] == start[..start.len() - period];
    let print = |text: &[u8]| text.escape_ascii().to_string();
    let notation = match (1..PERIOD_MAX).find(repeats) {
        _ if text.is_empty() => "-".to_owned(),
        Some(period) => format!("{}*{}", print(&text[..period]), bytes.len()),
        None => print(start),
    };
    if document(&notation) == bytes { notation } else { format!("{} bytes that no script wrote", bytes.len()) }
}

/// A key from parts joined by `+`: text, `text*N` for N repetitions, `\xNN` for a byte, or `-` for the empty key.
pub fn key(notation: &str) -> Vec<u8> {
    if notation == "-" {
        return Vec::new();
    }
    let mut key = Vec::new();
    for part in notation.split('+') {
        if let Some(byte) = part.strip_prefix("\\x") {
            key.push(u8::from_str_radix(byte, 16).unwrap_or_else(|_| panic!("no byte: {part:?}")));
        } else if let Some((text, count)) = part.split_once('*') {
            key.extend(text.repeat(count.parse().unwrap_or_else(|_| panic!("no count in {part:?}"))).bytes());
        } else {
            key.extend(part.bytes());
        }
    }
    key
}

/// The notation of a key.
pub fn print_key(key: &[u8]) -> String {
    if key.is_empty() {
        return "-".to_owned();
    }
    let mut parts = Vec::new();
    let mut text = String::new();
    for run in key.chunk_by(|left, right| left == right) {
        let is_plain = run[0].is_ascii_graphic();
        if is_plain && run.len() <= 4 {
            text.extend(run.iter().map(|&byte| char::from(byte)));
            continue;
        }
        parts.extend((!text.is_empty()).then(|| std::mem::take(&mut text)));
        if is_plain {
            parts.push(format!("{}*{}", char::from(run[0]), run.len()));
        } else {
            parts.extend(run.iter().map(|byte| format!("\\x{byte:02x}")));
        }
    }
    parts.extend((!text.is_empty()).then_some(text));
    parts.join("+")
}

/// A range in mathematical notation: `[a,b)`, `(a,` for everything after `a`, `,b]` for everything up to `b`.
pub fn range<T>(notation: &str, bound: impl Fn(&str) -> T) -> Option<(Bound<T>, Bound<T>)> {
    let (start, end) = notation.split_once(',')?;
    let start = match start.split_at_checked(1) {
        None => Bound::Unbounded,
        Some(("[", value)) => Bound::Included(bound(value)),
        Some(("(", value)) => Bound::Excluded(bound(value)),
        Some(_) => return None,
    };
    let end = match end.len().checked_sub(1).map(|last| end.split_at(last)) {
        None => Bound::Unbounded,
        Some((value, "]")) => Bound::Included(bound(value)),
        Some((value, ")")) => Bound::Excluded(bound(value)),
        Some(_) => return None,
    };
    Some((start, end))
}
