//! Every message that is written is read back unchanged.

use crate::frames;
use bunko_bson::{ArrayBuf, DocumentBuf, Value};
use bunko_wire::{
    Codec, Compressor, MAX_FRAME_BYTES, Message, MessageFlags, Query, QueryFlags, Reply, ReplyFlags, ReplyHead,
    begin_message, put_sequence, write_reply,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<f64>().prop_map(Value::Double),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        any::<bool>().prop_map(Value::Boolean),
        ".{0,20}".prop_map(Value::String),
        vec(any::<u8>(), 0..40).prop_map(|bytes| Value::Binary { subtype: 0, bytes }),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            vec(("[a-z$.]{0,5}", inner.clone()), 0..6).prop_map(|fields| Value::Document(build(&fields))),
            vec(inner, 0..6).prop_map(|values| Value::Array(values.iter().collect::<ArrayBuf>())),
        ]
    })
}

fn build(fields: &[(String, Value)]) -> DocumentBuf {
    let mut document = DocumentBuf::new();
    for (name, value) in fields {
        document.append(name, value);
    }
    document
}

fn document() -> impl Strategy<Value = DocumentBuf> {
    vec(("[a-z$.]{0,5}", value()), 0..6).prop_map(|fields| build(&fields))
}

/// Flag words that need nothing of the sections.
fn flags() -> impl Strategy<Value = MessageFlags> {
    (0_u32..4, any::<u16>()).prop_map(|(required, optional)| MessageFlags(u32::from(optional) << 16 | required))
}

/// Writes a message. Sequence names are upper case, which keeps them apart from the body's fields.
fn write(flags: MessageFlags, body: &DocumentBuf, sequences: &[(String, Vec<DocumentBuf>)]) -> Vec<u8> {
    let mut out = vec![0xee; 3];
    let start = begin_message(&mut out, 1, 2, flags);
    out.extend_from_slice(body.as_ref().as_bytes());
    for (name, documents) in sequences {
        put_sequence(&mut out, name, documents.iter().map(|document| document.as_ref().as_bytes()));
    }
    let length = start.finish(&mut out).expect("short");
    assert_eq!(out.len(), length + 3);
    out.split_off(3)
}

/// Up to five sequences with different names.
fn sequences() -> impl Strategy<Value = Vec<(String, Vec<DocumentBuf>)>> {
    proptest::collection::btree_map("[A-Z]{0,6}", vec(document(), 0..5), 0..5)
        .prop_map(|sequences| sequences.into_iter().filter(|(name, _)| !name.is_empty()).collect())
}

proptest! {
    #[test]
    fn messages(flags in flags(), body in document(), sequences in sequences()) {
        let frame = write(flags, &body, &sequences);
        let message = Message::parse(&frame).expect("what we write is valid");
        prop_assert_eq!(message.flags, flags);
        prop_assert_eq!(message.body, body.as_ref());
        prop_assert_eq!(message.sequences().count(), sequences.len());
        for (name, documents) in &sequences {
            let found = &message.sequence(name).expect("there").documents;
            prop_assert_eq!(found.len(), documents.len());
            prop_assert!(found.clone().eq(documents.iter().map(DocumentBuf::as_ref)));
        }
        let truncated = (0..frame.len()).map(|length| Message::parse(&frame[..length])).all(|read| read.is_err());
        prop_assert!(truncated, "a truncated message is refused");
    }

    #[test]
    fn compressed_frames(flags in flags(), body in document(), sequences in sequences()) {
        let frame = write(flags, &body, &sequences);
        let mut codec = Codec::new();
        let mut inner = Vec::new();
        for compressor in Compressor::ALL {
            let mut wrapped = Vec::new();
            codec.compress(&frame, compressor, &mut wrapped).expect("compresses");
            codec.decompress(&wrapped, MAX_FRAME_BYTES, &mut inner).expect("decompresses");
            prop_assert_eq!(&inner, &frame);
        }
    }

    #[test]
    fn queries(
        name in "[^\0]{0,30}", bits: u32, skip: i32, number_to_return: i32, query in document(),
        fields in proptest::option::of(document()),
    ) {
        let mut frame = Vec::new();
        let sent = Query {
            request_id: skip,
            flags: QueryFlags(bits),
            full_collection_name: &name,
            skip,
            number_to_return,
            query: query.as_ref(),
            return_fields: fields.as_ref().map(DocumentBuf::as_ref),
        };
        sent.write(&mut frame).expect("short");
        let read = Query::parse(&frame).expect("what we write is valid");
        prop_assert_eq!((read.request_id, read.flags, read.full_collection_name), (skip, QueryFlags(bits), &*name));
        prop_assert_eq!((read.skip, read.number_to_return), (skip, number_to_return));
        prop_assert_eq!((read.query, read.return_fields), (sent.query, sent.return_fields));
    }

    #[test]
    fn replies(bits: u32, cursor_id: i64, starting_from: i32, documents in vec(document(), 0..5)) {
        let head = ReplyHead { flags: ReplyFlags(bits), cursor_id, starting_from };
        let mut frame = Vec::new();
        write_reply(&mut frame, 1, 2, head, |out| {
            for document in &documents {
                out.extend_from_slice(document.as_ref().as_bytes());
            }
        })
        .expect("short");
        let read = Reply::parse(&frame).expect("what we write is valid");
        prop_assert_eq!(read.head, head);
        prop_assert!(read.documents.into_iter().eq(documents.iter().map(DocumentBuf::as_ref)));
    }

    #[test]
    fn incompressible_frames(noise in vec(any::<u8>(), 0..20_000)) {
        let body = DocumentBuf::new().with("noise", bunko_bson::ValueRef::Binary { subtype: 0, bytes: &noise });
        let frame = write(MessageFlags::NONE, &body, &[]);
        let mut codec = Codec::new();
        let mut inner = Vec::new();
        for compressor in Compressor::ALL {
            let mut wrapped = Vec::new();
            codec.compress(&frame, compressor, &mut wrapped).expect("compresses");
            codec.decompress(&wrapped, MAX_FRAME_BYTES, &mut inner).expect("decompresses");
            prop_assert_eq!(&inner, &frame);
        }
    }
}

#[test]
fn samples_are_well_formed() {
    for (name, frame) in frames::samples() {
        let values = frames::everything::read_frames(&mut Codec::new(), &frame, MAX_FRAME_BYTES);
        assert!(values.is_ok_and(|values| values > 0), "{name}");
    }
}
