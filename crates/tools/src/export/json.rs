//! Documents as Extended JSON.

use super::options::{Frame, Indentation, JsonFormat};
use bunko_bson::{DocumentRef, ValueRef, extended_json};

/// Appends the text in front of all documents.
pub(super) fn begin(frame: Frame, out: &mut Vec<u8>) {
    if frame == Frame::Array {
        out.push(b'[');
    }
}

/// Appends a document, the first of which has the number 0.
pub(super) fn append(
    document: DocumentRef<'_>,
    number: u64,
    (format, frame, indentation): (JsonFormat, Frame, Indentation),
    out: &mut Vec<u8>,
) {
    let text = match format {
        JsonFormat::Relaxed => extended_json::to_relaxed(ValueRef::Document(document)),
        JsonFormat::Canonical => extended_json::to_canonical(ValueRef::Document(document)),
    };
    match (frame, indentation) {
        (Frame::Array, Indentation::Pretty) if number > 0 => out.extend_from_slice(b",\n"),
        (Frame::Array, _) if number > 0 => out.push(b','),
        _ => {}
    }
    match indentation {
        Indentation::None => out.extend_from_slice(text.as_bytes()),
        Indentation::Pretty => indent(&text, out),
    }
    if frame == Frame::Lines {
        out.push(b'\n');
    }
}

/// Appends the text after all documents.
pub(super) fn end(frame: Frame, out: &mut Vec<u8>) {
    if frame == Frame::Array {
        out.extend_from_slice(b"]\n");
    }
}

/// Appends JSON that has no white space between its tokens, with one field or element on each line.
fn indent(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    let line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.resize(out.len() + depth, b'\t');
    };
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = string_end(bytes, at);
                out.extend_from_slice(&bytes[at..end]);
                at = end;
                continue;
            }
            b'{' | b'[' if matches!(bytes.get(at + 1), Some(b'}' | b']')) => {
                out.extend_from_slice(&bytes[at..at + 2]);
                at += 2;
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                out.push(byte);
                line(out, depth);
            }
            b'}' | b']' => {
                depth -= 1;
                line(out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            other => out.push(other),
        }
        at += 1;
    }
}

/// Offset after the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::parse_document;

    fn written(frame: Frame, indentation: Indentation) -> String {
        let mut out = Vec::new();
        begin(frame, &mut out);
        for (number, text) in [r#"{"a":{"b":[1,"x,\"{"]},"c":[],"d":{}}"#, "{}"].into_iter().enumerate() {
            let document = parse_document(text).expect("JSON");
            append(document.as_ref(), number as u64, (JsonFormat::Relaxed, frame, indentation), &mut out);
        }
        end(frame, &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn frames_and_indentation() {
        assert_eq!(written(Frame::Lines, Indentation::None), "{\"a\":{\"b\":[1,\"x,\\\"{\"]},\"c\":[],\"d\":{}}\n{}\n");
        assert_eq!(
            written(Frame::Array, Indentation::None),
            "[{\"a\":{\"b\":[1,\"x,\\\"{\"]},\"c\":[],\"d\":{}},{}]\n"
        );
        let pretty =
            "{\n\t\"a\": {\n\t\t\"b\": [\n\t\t\t1,\n\t\t\t\"x,\\\"{\"\n\t\t]\n\t},\n\t\"c\": [],\n\t\"d\": {}\n}";
        assert_eq!(written(Frame::Lines, Indentation::Pretty), format!("{pretty}\n{{}}\n"));
        assert_eq!(written(Frame::Array, Indentation::Pretty), format!("[{pretty},\n{{}}]\n"));
    }
}
