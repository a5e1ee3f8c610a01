//! Frames to test with.

pub mod everything;

use bunko_bson::{ArrayBuf, DocumentBuf, ObjectId, Timestamp, ValueRef, Writer};
use bunko_wire::{
    Codec, Compressor, MessageFlags, Query, QueryFlags, ReplyHead, begin_message, put_sequence, write_message,
    write_reply,
};

/// A document with a value of nearly every shape.
pub fn document() -> DocumentBuf {
    let inner = DocumentBuf::new().with("x", 1_i32).with("", ValueRef::Null);
    let array: ArrayBuf = [1_i64, 2].into_iter().collect();
    DocumentBuf::new()
        .with("d", 1.5)
        .with("s", "text é")
        .with("o", &inner)
        .with("a", &array)
        .with("b", ValueRef::Binary { subtype: 2, bytes: &[1, 0, 0, 0, 9] })
        .with("id", ObjectId([7; 12]))
        .with("t", true)
        .with("r", ValueRef::Regex { pattern: "^a", options: "i" })
        .with("p", ValueRef::DbPointer { namespace: "a.b", id: ObjectId([1; 12]) })
        .with("w", ValueRef::JavaScriptWithScope { code: "f()", scope: inner.as_ref() })
        .with("ts", Timestamp { seconds: 9, increment: 3 })
}

/// One frame of each kind, named.
pub fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let document = document();
    let encoded = document.as_ref().as_bytes();
    let body = |out: &mut Vec<u8>| {
        Writer::new(out).append("insert", "t").append("$db", "test").end();
    };
    let mut samples = Vec::new();
    let mut add = |name, write: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = Vec::new();
        write(&mut frame);
        samples.push((name, frame));
    };
    add("message", &|out| {
        write_message(out, 1, 0, MessageFlags::NONE, |out| out.extend_from_slice(encoded)).expect("short");
    });
    add("sequences", &|out| {
        let start = begin_message(out, 2, 0, MessageFlags::EXHAUST_ALLOWED);
        body(out);
        put_sequence(out, "ops", [encoded, &[5, 0, 0, 0, 0]]);
        put_sequence(out, "nsInfo", [encoded]);
        start.finish(out).expect("short");
    });
    add("checksum", &|out| {
        write_message(out, 3, 0, MessageFlags::CHECKSUM_PRESENT, body).expect("short");
    });
    add("query", &|out| {
        let query = Query {
            request_id: 4,
            flags: QueryFlags::SECONDARY_OK,
            full_collection_name: "test.t",
            skip: 0,
            number_to_return: 2,
            query: document.as_ref(),
            return_fields: Some(document.as_ref()),
        };
        query.write(out).expect("short");
    });
    add("reply", &|out| {
        write_reply(out, 5, 4, ReplyHead::COMMAND, |out| out.extend_from_slice(&encoded.repeat(2))).expect("short");
    });
    // length, request id, response to, opcode; zero, "a.b", number to return, cursor id
    add("getMore", &|out| {
        out.extend([36, 6, 0, 2005, 0].iter().flat_map(|field: &u32| field.to_le_bytes()));
        out.extend_from_slice(b"a.b\0");
        out.extend([2, 7, 0].iter().flat_map(|field: &u32| field.to_le_bytes()));
    });
    add("killCursors", &|out| {
        out.extend([40, 7, 0, 2007, 0, 2, 8, 0, 9, 0].iter().flat_map(|field: &u32| field.to_le_bytes()));
    });
    let plain = samples[1].1.clone();
    for compressor in Compressor::ALL {
        let mut wrapped = Vec::new();
        Codec::new().compress(&plain, compressor, &mut wrapped).expect("compresses");
        samples.push((compressor.name(), wrapped));
    }
    samples
}
