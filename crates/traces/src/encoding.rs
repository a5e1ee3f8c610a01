//! The request with which a batch of spans is sent.
//! Source: OpenTelemetry Protocol 1.9, `trace_service.proto`, `trace.proto`, `common.proto`, `resource.proto`.

use crate::protobuf::Message;
use crate::span::{Attribute, AttributeValue, Span};

/// Flag of a span: it is known whether the parent is remote. Source: `trace.proto`, `SpanFlags`.
const KNOWS_PARENT: u32 = 0x100;
/// Flag of a span: the parent is remote.
const PARENT_IS_REMOTE: u32 = 0x200;
/// Status of a span whose work failed. Source: `trace.proto`, `Status.StatusCode`.
const STATUS_ERROR: u64 = 2;

/// Facts that all spans of a server have in common.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Facts about the server, which a request has once.
    pub resource: Vec<Attribute>,
    /// Facts that each span repeats, as the semantic conventions ask.
    pub of_each_span: Vec<Attribute>,
    /// Name and version of the code that makes the spans.
    pub scope: (&'static str, &'static str),
}

/// An `ExportTraceServiceRequest`.
pub fn request(origin: &Origin, spans: &[Span]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |of_resource| {
        of_resource.message(1, |resource| put_attributes(resource, 1, &origin.resource));
        of_resource.message(2, |of_scope| {
            let (name, version) = origin.scope;
            of_scope.message(1, |scope| _ = scope.bytes(1, name.as_bytes()).bytes(2, version.as_bytes()));
            for span in spans {
                of_scope.message(2, |message| put_span(message, span, &origin.of_each_span));
            }
        });
    });
    request.into_bytes()
}

fn put_span(message: &mut Message, span: &Span, of_each_span: &[Attribute]) {
    let context = &span.context;
    message.bytes(1, &context.trace_id).bytes(2, &context.span_id);
    if let Some(parent) = &context.parent {
        message.bytes(4, parent);
    }
    message.bytes(5, span.name.as_bytes()).varint(6, span.kind as u64);
    message.fixed64(7, span.start_ns).fixed64(8, span.end_ns);
    put_attributes(message, 9, of_each_span);
    put_attributes(message, 9, &span.attributes);
    if let Some(error) = &span.error {
        message.message(15, |status| _ = status.bytes(2, error.as_bytes()).varint(3, STATUS_ERROR));
    }
    let remote = if context.is_parent_remote { PARENT_IS_REMOTE } else { 0 };
    message.fixed32(16, KNOWS_PARENT | remote | u32::from(context.flags));
}

fn put_attributes(message: &mut Message, field: u8, attributes: &[Attribute]) {
    for (name, value) in attributes {
        message.message(field, |attribute| {
            attribute.bytes(1, name.as_bytes()).message(2, |any| match value {
                AttributeValue::Text(text) => _ = any.bytes(1, text.as_bytes()),
                AttributeValue::Truth(is_so) => _ = any.varint(2, u64::from(*is_so)),
                AttributeValue::Whole(number) => _ = any.varint(3, *number as u64),
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::{SpanContext, SpanKind};

    /// The span of the specification's example `trace.json`, as the official library for Python writes it in the binary
    /// encoding, with the flags of a span whose parent is remote.
    const EXAMPLE: &str = include_str!("encoding/example.txt");

    #[test]
    fn the_example_of_the_specification_has_the_bytes_of_the_official_library() {
        let origin = Origin {
            resource: vec![("service.name", "my.service".into())],
            of_each_span: Vec::new(),
            scope: ("my.library", "1.0.0"),
        };
        let span = Span {
            context: SpanContext {
                trace_id: 0x5b8e_fff7_9803_8103_d269_b633_813f_c60c_u128.to_be_bytes(),
                span_id: 0xeee1_9b7e_c3c1_b174_u64.to_be_bytes(),
                parent: Some(0xeee1_9b7e_c3c1_b173_u64.to_be_bytes()),
                is_parent_remote: true,
                flags: 1,
            },
            name: "I'm a server span".to_owned(),
            kind: SpanKind::Server,
            start_ns: 1_544_712_660_000_000_000,
            end_ns: 1_544_712_661_000_000_000,
            attributes: vec![("my.span.attr", "some value".into()), ("count", (-1).into()), ("is", true.into())],
            error: Some("BadValue".to_owned()),
        };
        let digits: String = EXAMPLE.split_whitespace().collect();
        let byte = |position: usize| u8::from_str_radix(&digits[position..position + 2], 16).expect("two digits");
        let expected: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        assert_eq!(request(&origin, &[span]), expected);
    }
}
