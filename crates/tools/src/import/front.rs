//! Reads the input up to its first record: a byte order mark, a table's header, an array's bracket. Input that is not of
//! the format that the user named is recognised here.

use super::options::{FieldNames, Format, ImportOptions, JsonForm, TableOptions};
use super::reader::Reader;
use super::records::RecordFormat;
use super::table::{self, Columns};
use crate::ToolError;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Beginnings of files of other kinds, and what to do with them.
const OTHER_KINDS: [(&[u8], &str); 8] = [
    (b"\x1f\x8b", "is compressed by gzip: decompress it first, such as gzip -dc FILE | bunko import"),
    (b"\x28\xb5\x2f\xfd", "is compressed by zstd: decompress it first, such as zstd -dc FILE | bunko import"),
    (b"\x04\x22\x4d\x18", "is compressed by lz4: decompress it first, such as lz4 -dc FILE | bunko import"),
    (b"BZh", "is compressed by bzip2: decompress it first, such as bzip2 -dc FILE | bunko import"),
    (b"PK\x03\x04", "is a ZIP archive: unpack it first"),
    (b"\x6d\xe2\x99\x81", "is the archive of a dump: use bunko restore --archive"),
    (b"\xff\xfe", "is UTF-16: convert it to UTF-8 first"),
    (b"\xfe\xff", "is UTF-16: convert it to UTF-8 first"),
];

/// Reads up to the first record.
/// # Errors
/// `Failed` names the input and what is wrong with it.
pub(super) fn read(reader: &mut Reader, options: &ImportOptions) -> Result<RecordFormat, ToolError> {
    let path = reader.path().display().to_string();
    let failed = |reason: String| ToolError::Failed(format!("{path}: {reason}"));
    let mut kind = None;
    reader.take_front(|bytes, _| {
        kind = other_kind(bytes, &options.format);
        let has_mark = options.format != Format::Bson && bytes.starts_with(BYTE_ORDER_MARK);
        Some(if has_mark { BYTE_ORDER_MARK.len() } else { 0 })
    })?;
    if let Some(kind) = kind {
        return Err(failed(format!("this {kind}")));
    }
    match &options.format {
        Format::Bson => Ok(RecordFormat::Bson),
        Format::Json(form) => {
            if *form == JsonForm::Array {
                take_bracket(reader)?;
            }
            Ok(RecordFormat::Json(*form))
        }
        Format::Table(table) => {
            let columns = match &table.fields {
                FieldNames::Listed(names) => Columns::new(names, table).map_err(failed)?,
                FieldNames::HeaderLine => Columns::new(&header(reader, table)?, table).map_err(failed)?,
            };
            Ok(RecordFormat::Table(columns, table.separator))
        }
    }
}

/// The kind of input that is not of the format.
fn other_kind(bytes: &[u8], format: &Format) -> Option<&'static str> {
    let first = bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    let looks_like_bson =
        bytes.len() > 4 && bytes[3] == 0 && bytes[..3] != [0; 3] && (bytes[4] <= 0x13 || bytes[4] == 0x7f);
    let known = OTHER_KINDS.iter().find(|(beginning, _)| bytes.starts_with(beginning));
    match format {
        // A length may be any of these bytes.
        Format::Bson if matches!(first, Some(b'{' | b'[')) && !looks_like_bson => {
            Some("is not BSON; it looks like JSON")
        }
        Format::Bson if looks_like_bson => None,
        _ if known.is_some() => known.map(|(_, advice)| *advice),
        Format::Bson => None,
        _ if looks_like_bson => Some("looks like BSON: use --type bson"),
        Format::Json(JsonForm::Lines) if first == Some(b'[') => Some("is a JSON array: use --jsonArray"),
        Format::Json(JsonForm::Array) if first == Some(b'{') => Some("is not a JSON array: leave --jsonArray out"),
        _ => None,
    }
}

fn take_bracket(reader: &mut Reader) -> Result<(), ToolError> {
    let path = reader.path().display().to_string();
    let front = reader.take_front(|bytes, is_all| {
        let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace());
        start.map(|start| start + 1).or_else(|| is_all.then_some(bytes.len()))
    })?;
    match front.last() {
        Some(b'[') => Ok(()),
        _ => Err(ToolError::Failed(format!("{path}: there is no JSON array, which begins with '['"))),
    }
}

fn header(reader: &mut Reader, options: &TableOptions) -> Result<Vec<String>, ToolError> {
    let path = reader.path().display().to_string();
    let failed = |reason: String| ToolError::Failed(format!("{path}: the header line: {reason}"));
    let front = reader.take_front(|bytes, is_all| table::first_record_length(bytes, options.separator, is_all))?;
    let text = std::str::from_utf8(&front).map_err(|error| failed(format!("{error}")))?;
    if text.trim().is_empty() {
        return Err(failed("it is empty".into()));
    }
    table::read_names(text, options.separator).map_err(|flaw| failed(flaw.reason))
}
