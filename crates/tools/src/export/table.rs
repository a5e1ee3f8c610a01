//! Documents as records of a table, CSV or TSV.
//!
//! Source: RFC 4180, section 2; the text of values as mongoexport writes them.

use crate::import::Separator;
use bunko_bson::{DocumentRef, ValueRef, datetime, extended_json};

/// Appends the names of the fields.
pub(super) fn append_header(fields: &[String], separator: Separator, out: &mut Vec<u8>) {
    append_record(fields.iter().map(String::as_str), separator, out);
}

/// Appends a document's values of these fields. Fields that it lacks, and null, are empty.
pub(super) fn append(document: DocumentRef<'_>, fields: &[String], separator: Separator, out: &mut Vec<u8>) {
    let texts: Vec<String> = fields.iter().map(|path| find(document, path).map_or_else(String::new, text)).collect();
    append_record(texts.iter().map(String::as_str), separator, out);
}

fn append_record<'t>(values: impl Iterator<Item = &'t str>, separator: Separator, out: &mut Vec<u8>) {
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(separator.byte());
        }
        let is_special = |byte: u8| matches!(byte, b'"' | b'\n' | b'\r') || byte == separator.byte();
        // Readers keep white space at the beginning of a value only inside quotes.
        if value.starts_with([' ', '\t']) || value.bytes().any(is_special) {
            out.push(b'"');
            out.extend_from_slice(value.replace('"', "\"\"").as_bytes());
            out.push(b'"');
        } else {
            out.extend_from_slice(value.as_bytes());
        }
    }
    out.push(b'\n');
}

/// Finds the value at a dotted path. Below an array, a component is the position of an element.
pub(super) fn find<'d>(document: DocumentRef<'d>, path: &str) -> Option<ValueRef<'d>> {
    let mut names = path.split('.');
    let first = document.get(names.next()?)?;
    names.try_fold(first, |value, name| match value {
        ValueRef::Document(document) => document.get(name),
        ValueRef::Array(array) => array.get(name.parse().ok()?),
        _ => None,
    })
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null | ValueRef::Undefined => String::new(),
        ValueRef::String(text) | ValueRef::Symbol(text) => text.to_owned(),
        ValueRef::ObjectId(id) => format!("ObjectId({id})"),
        ValueRef::DateTime(ms) => datetime::format_iso8601_ms(ms),
        ValueRef::Int32(number) => number.to_string(),
        ValueRef::Int64(number) => number.to_string(),
        ValueRef::Double(number) if number.is_nan() => "NaN".to_owned(),
        ValueRef::Double(number) if number.is_infinite() => if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        ValueRef::Double(number) => double(number),
        ValueRef::Decimal128(number) => number.to_string(),
        ValueRef::Boolean(boolean) => boolean.to_string(),
        other => extended_json::to_relaxed(other),
    }
}

/// The shortest digits that read back as the same number, with an exponent below 1e-5 and from 1e21 on.
fn double(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-5..1e21).contains(&magnitude) { format!("{number:e}") } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::parse_document;

    #[test]
    fn values_have_their_text_and_quotes_where_needed() {
        let document = parse_document(
            r#"{"_id":{"$oid":"5f0000010102030405abcdef"},"a":{"b":[{"c":1.5}],"n":null},"s":"x,\"y\"\n","w":" z",
                "d":{"$date":"2020-02-29T00:00:00Z"},"l":{"$numberLong":"9007199254740993"},"e":1e300,"t":true,"h":1.0}"#,
        )
        .expect("JSON");
        let fields = "_id,a.b.0.c,a.n,s,w,d,l,e,t,missing.x,a,h".split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut out = Vec::new();
        append_header(&fields[..2], Separator::Comma, &mut out);
        append(document.as_ref(), &fields, Separator::Comma, &mut out);
        let expected = "_id,a.b.0.c\nObjectId(5f0000010102030405abcdef),1.5,,\"x,\"\"y\"\"\n\",\" z\",2020-02-29T00:00:00.000Z,\
                        9007199254740993,1e300,true,,\"{\"\"b\"\":[{\"\"c\"\":1.5}],\"\"n\"\":null}\",1\n";
        assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
        let mut out = Vec::new();
        append_record(["a\tb", "c,d"].into_iter(), Separator::Tab, &mut out);
        assert_eq!(out, b"\"a\tb\"\tc,d\n");
    }
}
