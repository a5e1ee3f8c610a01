//! The spans of a request, read without the code that wrote them.
//! Source: OpenTelemetry Protocol 1.9, `trace_service.proto`, `trace.proto`, `common.proto`.

use bunko_bson::hexadecimal;
use std::collections::BTreeMap;

/// A request's contents.
pub struct Batch {
    /// Attributes of the server.
    pub resource: BTreeMap<String, String>,
    pub spans: Vec<Span>,
}

/// A span; ids are hexadecimal digits, and values of attributes are as text.
#[derive(Debug, Default)]
pub struct Span {
    pub trace_id: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    pub kind: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub attributes: BTreeMap<String, String>,
    /// The message of a status of an error.
    pub error: String,
    pub flags: u64,
}

impl Batch {
    /// The first span with that name.
    pub fn span(&self, name: &str) -> &Span {
        self.spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no span {name}: {:?}", self.spans))
    }
}

/// The contents of an `ExportTraceServiceRequest`.
pub fn batch(body: &[u8]) -> Batch {
    let mut batch = Batch { resource: BTreeMap::new(), spans: Vec::new() };
    for of_resource in fields(body).into_iter().filter_map(|(number, field)| field.message(number == 1)) {
        for (number, field) in fields(of_resource) {
            match (number, field) {
                (1, Field::Bytes(resource)) => batch.resource.extend(fields(resource).iter().map(attribute)),
                (2, Field::Bytes(scope)) => {
                    let spans = fields(scope).into_iter().filter_map(|(number, field)| field.message(number == 2));
                    batch.spans.extend(spans.map(span));
                }
                (number, _) => panic!("a field {number} of ResourceSpans"),
            }
        }
    }
    batch
}

fn span(message: &[u8]) -> Span {
    let mut span = Span::default();
    for (number, field) in fields(message) {
        match (number, &field) {
            (1, Field::Bytes(id)) => span.trace_id = hexadecimal::small(id),
            (2, Field::Bytes(id)) => span.id = hexadecimal::small(id),
            (4, Field::Bytes(id)) => span.parent = hexadecimal::small(id),
            (5, Field::Bytes(name)) => span.name = text(name),
            (6, Field::Number(kind)) => span.kind = *kind,
            (7, Field::Number(time)) => span.start_ns = *time,
            (8, Field::Number(time)) => span.end_ns = *time,
            (9, Field::Bytes(_)) => span.attributes.extend([attribute(&(1, field))]),
            (15, Field::Bytes(status)) => {
                let status = fields(status);
                assert!(status.contains(&(3, Field::Number(2))), "the status of an error: {status:?}");
                span.error = status
                    .into_iter()
                    .find_map(|(number, field)| field.message(number == 2).map(text))
                    .unwrap_or_default();
            }
            (16, Field::Number(flags)) => span.flags = *flags,
            (number, field) => panic!("a field {number} of Span: {field:?}"),
        }
    }
    span
}

/// A `KeyValue`.
fn attribute((_, field): &(u64, Field<'_>)) -> (String, String) {
    let Field::Bytes(message) = field else { panic!("no attribute: {field:?}") };
    let [(1, Field::Bytes(name)), (2, Field::Bytes(value))] = fields(message)[..] else {
        panic!("no attribute: {message:?}");
    };
    let value = match fields(value)[..] {
        [(1, Field::Bytes(value))] => text(value),
        [(2, Field::Number(is_so))] => (is_so == 1).to_string(),
        [(3, Field::Number(number))] => (number as i64).to_string(),
        _ => panic!("no value: {value:?}"),
    };
    (text(name), value)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field<'m> {
    Number(u64),
    Bytes(&'m [u8]),
}

impl<'m> Field<'m> {
    /// The bytes of the field, if it is the wanted one.
    fn message(self, is_wanted: bool) -> Option<&'m [u8]> {
        match self {
            Self::Bytes(bytes) if is_wanted => Some(bytes),
            _ => None,
        }
    }
}

/// The fields of a message, with their numbers.
fn fields(mut message: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut message)),
            1 => Field::Number(u64::from_le_bytes(take(&mut message, 8).try_into().expect("8 bytes"))),
            2 => {
                let length = varint(&mut message) as usize;
                Field::Bytes(take(&mut message, length))
            }
            5 => Field::Number(u32::from_le_bytes(take(&mut message, 4).try_into().expect("4 bytes")).into()),
            other => panic!("a wire type {other}"),
        };
        fields.push((tag >> 3, field));
    }
    fields
}

fn take<'m>(message: &mut &'m [u8], length: usize) -> &'m [u8] {
    let (taken, rest) = message.split_at(length);
    *message = rest;
    taken
}

fn varint(message: &mut &[u8]) -> u64 {
    let length = message.iter().position(|byte| *byte < 0x80).expect("an end") + 1;
    let bytes = take(message, length);
    bytes.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}
