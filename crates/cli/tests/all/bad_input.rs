//! Input that no well-behaved client sends: a bad frame costs its sender the connection, a bad command gets an error,
//! and other clients notice neither.

mod bad_compression;

use crate::peer::{Peer, Running, code, command, errmsg, frame, header, int32_at, message};
use bunko_bson::{DocumentBuf, DocumentRef, MAX_USER_DOCUMENT_BYTES, ValueRef};
use bunko_testkit::shell;
use bunko_wire::{HEADER_BYTES, MAX_FRAME_BYTES, MessageFlags, put_sequence, write_request};
use std::collections::BTreeMap;

const MESSAGE: i32 = 2013;
/// Maximum memory by which a server under attack may grow: buffers in use, and free memory that the allocator keeps.
const GROWTH_BYTES_MAX: u64 = 64 << 20;

fn ping() -> DocumentBuf {
    command("admin", "{ping: 1}")
}

/// An OP_MSG with arbitrary flags and sections.
fn op_msg(flags: u32, sections: &[&[u8]]) -> Vec<u8> {
    frame(MESSAGE, &[&flags.to_le_bytes(), sections.concat().as_slice()].concat())
}

fn body_section(document: DocumentRef<'_>) -> Vec<u8> {
    [&[0], document.as_bytes()].concat()
}

fn sequence_section(name: &str, documents: &[&[u8]]) -> Vec<u8> {
    let mut section = Vec::new();
    put_sequence(&mut section, name, documents.iter().copied());
    section
}

fn assert_closes(running: &Running, why: &str, bytes: &[u8]) {
    let mut peer = running.peer();
    peer.send(bytes);
    peer.assert_closed(why);
}

#[test]
fn a_frame_of_impossible_length_or_opcode_closes_its_connection() {
    let running = Running::start();
    for length in [15, 0, -1, i32::MIN, MAX_FRAME_BYTES as i32 + 1, i32::MAX] {
        assert_closes(&running, &format!("length {length}"), &header(length, MESSAGE));
        running.assert_logged(&format!("message length {length} is not between 16 and 48000000"));
    }
    // OP_REPLY is not a request; 2001, 2002 and 2006 are writes without a reply, removed in MongoDB 5.1.
    for op_code in [0, -1, 1, 1000, 2001, 2002, 2003, 2006, 2010, 2011, i32::MAX] {
        assert_closes(&running, &format!("opcode {op_code}"), &frame(op_code, &[0; 20]));
        running.assert_logged(&format!("unknown opcode {op_code}"));
    }
    running.assert_serves();
}

#[test]
fn a_frame_that_breaks_off_is_forgotten() {
    let running = Running::start();
    let whole = message(1, MessageFlags::NONE, ping().as_ref());
    for length in 0..whole.len() {
        let mut peer = running.peer();
        peer.send(&whole[..length]);
        peer.finish_sending();
        peer.assert_closed(&format!("{length} bytes of a frame"));
    }
    running.assert_serves();
}

#[test]
fn half_open_connections_cost_little_and_disturb_no_client() {
    let running = Running::start();
    let before = running.resident_bytes();
    let whole = message(1, MessageFlags::NONE, ping().as_ref());
    let mut peers: Vec<Peer> = (0..200).map(|_| running.peer()).collect();
    for peer in &mut peers {
        peer.send(&whole[..3]);
    }
    // The server must not allocate the largest frame before its bytes arrive.
    let mut claimants: Vec<Peer> = (0..200).map(|_| running.peer()).collect();
    for peer in &mut claimants {
        peer.send(&header(MAX_FRAME_BYTES as i32, MESSAGE));
        peer.send(&[0; 1000]);
    }
    running.assert_serves();
    let growth = running.resident_bytes().saturating_sub(before);
    assert!(growth < GROWTH_BYTES_MAX, "{growth} bytes for 400 half-open connections");
    // The server waited for these peers and did not drop them: the complete frame is answered.
    for peer in &mut peers {
        peer.send(&whole[3..]);
    }
    for peer in &mut peers {
        assert_eq!(shell::print(ValueRef::Document(peer.reply_to(1).as_ref())), "{ok: 1.0}");
    }
}

#[test]
fn a_malformed_op_msg_closes_its_connection_and_is_named_in_the_log() {
    let running = Running::start();
    let body = body_section(ping().as_ref());
    let cases: [(&str, Vec<u8>); 8] = [
        ("OP_MSG flags 0x00000004 hold an unknown required bit", op_msg(1 << 2, &[&body])),
        ("OP_MSG flags 0x00008000 hold an unknown required bit", op_msg(1 << 15, &[&body])),
        ("a length or count inside the message is wrong: 3", op_msg(0, &[&body, &[1, 3, 0, 0, 0, 0]])),
        ("a length or count inside the message is wrong: -1", op_msg(0, &[&body, &[1, 255, 255, 255, 255, 0]])),
        ("a name is not a zero-terminated UTF-8 string", op_msg(0, &[&body, &[1, 6, 0, 0, 0, 0xff, 0]])),
        ("the message ends within a field", op_msg(0, &[&body, &[1, 100, 0, 0, 0, b'a', 0]])),
        ("the message ends within a field", frame(MESSAGE, &[0, 0, 0])),
        ("checksum 0x04030201 does not match", op_msg(1, &[&body, &[1, 2, 3, 4]])),
    ];
    for (words, bytes) in &cases {
        assert_closes(&running, words, bytes);
        running.assert_logged(words);
    }
    // Optional bits may have any value, and a correct checksum is accepted.
    let flags = MessageFlags::CHECKSUM_PRESENT.with(MessageFlags(0xfffe_0000));
    let mut peer = running.peer();
    peer.send(&message(9, flags, ping().as_ref()));
    peer.reply_to(9);
    running.assert_serves();
}

#[test]
fn faults_between_sections_are_answered() {
    let running = Running::start();
    let body = body_section(ping().as_ref());
    let insert = command("test", "{insert: 'c', documents: [{_id: 1}]}");
    let documents =
        sequence_section("documents", &[shell::parse_document("{_id: 2}").expect("one").as_ref().as_bytes()]);
    let lets = sequence_section("let", &[ping().as_ref().as_bytes()]);
    let queries = sequence_section("query", &[ping().as_ref().as_bytes()]);
    let mut peer = running.peer();
    let many =
        |count: usize| (0..count).flat_map(|index| sequence_section(&index.to_string(), &[])).collect::<Vec<u8>>();
    for (expected, words, sections) in [
        (
            40472,
            "The count command does not support document sequences.",
            [body_section(command("test", "{count: 'c'}").as_ref()), queries].concat(),
        ),
        (
            40415,
            "BSON field 'update.let' is an unknown field.",
            [body_section(command("test", "{update: 'c', updates: []}").as_ref()), lets].concat(),
        ),
        (
            40472,
            "The count command does not support document sequences.",
            [body_section(command("test", "{count: 'c'}").as_ref()), many(100)].concat(),
        ),
        (
            115,
            "a message with more than 1000 document sequences is not supported yet",
            [body.clone(), many(1_001)].concat(),
        ),
        (40587, "OP_MSG messages must have a body", vec![]),
        (40587, "OP_MSG messages must have a body", documents.clone()),
        (40430, "Multiple body sections in message", [body.clone(), body.clone()].concat()),
        (40432, "Unknown section kind 2", [body.clone(), vec![2]].concat()),
        (
            40431,
            "Duplicate document sequence: documents",
            [body.clone(), documents.clone(), documents.clone()].concat(),
        ),
        (
            40433,
            "Duplicate field between body and document sequence documents",
            [body_section(insert.as_ref()), documents].concat(),
        ),
    ] {
        let mut bytes = op_msg(0, &[&sections]);
        bytes[4..8].copy_from_slice(&7_i32.to_le_bytes());
        peer.send(&bytes);
        let reply = peer.reply_to(7);
        assert_eq!((code(reply.as_ref()), errmsg(reply.as_ref())), (expected, words));
    }
    assert_eq!(peer.text("test", "{count: 'c'}"), "{n: 0, ok: 1.0}");
    running.assert_serves();
}

#[test]
fn no_field_is_there_twice() {
    let running = Running::start();
    let mut peer = running.peer();
    let twice = |field: &str, values: [&str; 2]| {
        let values = values.map(|value| shell::parse_value(value).expect("a value"));
        let mut body = command("test", "{insert: 'c', documents: [{}]}");
        for value in &values {
            body.append(field, value.as_ref());
        }
        body
    };
    let session = "{id: UUID('00112233-4455-4677-8899-aabbccddeeff')}";
    for (field, values) in [
        ("$db", ["'other'", "'test'"]),
        ("lsid", [session, session]),
        ("maxTimeMS", ["1000", "1000"]),
        ("ordered", ["true", "false"]),
        ("comment", ["1", "2"]),
    ] {
        let reply = peer.run_body(twice(field, values).as_ref());
        let expected = format!("BSON field 'insert.{field}' is a duplicate field");
        assert_eq!((code(reply.as_ref()), errmsg(reply.as_ref())), (40413, expected.as_str()));
    }
    assert_eq!(peer.text("test", "{count: 'c'}"), "{n: 0, ok: 1.0}");
}

#[test]
fn replies_to_what_came_before_a_malformed_frame_are_sent() {
    let running = Running::start();
    let insert = command("test", "{insert: 'before', documents: [{_id: 1}]}");
    let mut peer = running.peer();
    peer.send(&[message(1, MessageFlags::NONE, insert.as_ref()), header(15, MESSAGE)].concat());
    assert_eq!(shell::print(ValueRef::Document(peer.reply_to(1).as_ref())), "{n: 1, ok: 1.0}");
    peer.assert_closed("behind a good frame");
    running.assert_serves();
}

/// Offsets of all lengths in a document: its own, and those of strings, binaries, documents, arrays and scopes.
fn length_offsets(document: DocumentRef<'_>) -> Vec<usize> {
    let base = document.as_bytes().as_ptr().addr();
    let mut offsets = Vec::new();
    let mut todo = vec![document];
    while let Some(document) = todo.pop() {
        offsets.push(document.as_bytes().as_ptr().addr() - base);
        for element in document {
            match element.value {
                ValueRef::Document(inner) => todo.push(inner),
                ValueRef::Array(inner) => todo.push(inner.as_document()),
                ValueRef::String(text) | ValueRef::JavaScript(text) => {
                    offsets.push(text.as_ptr().addr() - base - 4);
                }
                ValueRef::Binary { bytes, .. } => offsets.push(bytes.as_ptr().addr() - base - 5),
                _ => {}
            }
        }
    }
    offsets
}

#[test]
fn lengths_inside_documents_are_not_believed() {
    let running = Running::start();
    let nested = "{_id: 1, s: 'text', d: {e: {s: 'deeper', a: [1, 'x', {b: BinData(0, 'AAECAw==')}]}}, c: Code('f')}";
    let nested = shell::parse_document(nested).expect("shell syntax");
    let offsets = length_offsets(nested.as_ref());
    assert_eq!(offsets.len(), 10, "one for each length");
    let insert = command("test", "{insert: 'lies'}");
    let body = body_section(insert.as_ref());
    let mut peer = running.peer();
    for offset in offsets {
        let truth = int32_at(nested.as_ref().as_bytes(), offset);
        for lie in [0, 1, truth - 1, truth + 1, truth + 1000, -1, -truth, i32::MIN, i32::MAX] {
            let mut bytes = nested.as_ref().as_bytes().to_vec();
            bytes[offset..offset + 4].copy_from_slice(&lie.to_le_bytes());
            let mut lying = op_msg(0, &[&body, &sequence_section("documents", &[&bytes])]);
            lying[4..8].copy_from_slice(&5_i32.to_le_bytes());
            peer.send(&lying);
            let reply = match peer.reply_or_end(5) {
                Some(reply) => reply,
                // The length of a document in a sequence decides where the next one begins: an error there breaks the
                // frame.
                None if offset == 0 => {
                    peer = running.peer();
                    continue;
                }
                None => panic!("{lie} instead of {truth} at {offset} closes the connection"),
            };
            // An error inside one document of a sequence refuses only that document: the others are inserted.
            let refused = first_write_error(&reply);
            assert_eq!(code(refused), 22, "{lie} instead of {truth} at {offset}: {reply:?}");
            assert!(errmsg(refused).starts_with("invalid BSON: "), "{reply:?}");
        }
    }
    let found = running.peer().run("test", "{count: 'lies'}");
    assert_eq!(shell::print(ValueRef::Document(found.as_ref())), "{n: 0, ok: 1.0}");
    running.assert_serves();
}

#[test]
fn no_flipped_byte_of_a_command_stops_the_server() {
    let running = Running::start();
    let insert =
        command("test", "{insert: 'flips', documents: [{_id: 1, a: ['x', {b: 2.5}], o: /r/i}], ordered: true}");
    let good = message(1, MessageFlags::NONE, insert.as_ref());
    for offset in 16..good.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[offset] ^= flip;
            let mut peer = running.peer();
            peer.send(&bytes);
            peer.finish_sending();
            // Any reply or a closed connection is fine, but the server must neither hang nor crash.
            peer.some_bytes(1);
        }
    }
    running.assert_serves();
}

fn nested_document(levels: usize) -> DocumentBuf {
    (1..levels).fold(DocumentBuf::new(), |inner, _| DocumentBuf::new().with("d", &inner))
}

/// Inserts one document, in a sequence of its own; returns the reply's first write error, or else the reply.
fn insert_alone(peer: &mut Peer, collection: &str, document: &[u8]) -> DocumentBuf {
    let body = DocumentBuf::new().with("insert", collection).with("$db", "test");
    let write_body = |out: &mut Vec<u8>| out.extend_from_slice(body.as_ref().as_bytes());
    let mut bytes = Vec::new();
    write_request(&mut bytes, 3, MessageFlags::NONE, write_body, "documents", [document]).expect("within the limit");
    peer.send(&bytes);
    first_write_error(&peer.reply_to(3)).to_owned()
}

/// The first write error in a reply, or else the reply.
fn first_write_error(reply: &DocumentBuf) -> DocumentRef<'_> {
    let errors = reply.as_ref().get("writeErrors").and_then(ValueRef::as_array);
    let first = errors.and_then(|errors| errors.iter().next()).and_then(ValueRef::as_document);
    first.unwrap_or(reply.as_ref())
}

#[test]
fn nesting_is_limited() {
    let running = Running::start();
    let mut peer = running.peer();
    for (levels, expected) in [(180, 0), (181, 15), (200, 15), (201, 15), (400, 15)] {
        let document = nested_document(levels).with("x", 1);
        let outcome = insert_alone(&mut peer, "nested", document.as_ref().as_bytes());
        assert_eq!(code(outcome.as_ref()), expected, "{levels} levels: {outcome:?}");
    }
    // Deep enough to overflow the stack of any recursive reader.
    let deepest = nested_document(2_000);
    assert_eq!(code(insert_alone(&mut peer, "nested", deepest.as_ref().as_bytes()).as_ref()), 15);
    running.assert_serves();
}

/// A document of exactly that length in bytes.
fn document_of(length: usize) -> Vec<u8> {
    let bare = DocumentBuf::new().with("_id", 1).with("pad", "").as_ref().len_bytes();
    let document = DocumentBuf::new().with("_id", 1).with("pad", &*"x".repeat(length - bare)).into_bytes();
    assert_eq!(document.len(), length);
    document
}

#[test]
fn documents_above_16_mib_are_refused_with_their_sizes() {
    let running = Running::start();
    let mut peer = running.peer();
    for length in [MAX_USER_DOCUMENT_BYTES + 1, MAX_USER_DOCUMENT_BYTES + 100_000, 40_000_000] {
        let error = insert_alone(&mut peer, "large", &document_of(length));
        assert_eq!(code(error.as_ref()), 10334, "{error:?}");
        let expected = format!("object to insert too large. size in bytes: {length}, max size: 16777216");
        assert_eq!(errmsg(error.as_ref()), expected);
    }
    let reply = insert_alone(&mut peer, "large", &document_of(MAX_USER_DOCUMENT_BYTES));
    assert_eq!(shell::print(ValueRef::Document(reply.as_ref())), "{n: 1, ok: 1.0}");
    running.assert_serves();
}

#[test]
fn a_message_of_exactly_the_limit_is_taken() {
    let running = Running::start();
    let body = DocumentBuf::new().with("insert", "limit").with("$db", "test");
    // Header, flags and body section; then kind, size and name of the sequence.
    let frame_bytes = HEADER_BYTES + 4 + 1 + body.as_ref().len_bytes() + 1 + 4 + "documents".len() + 1;
    let rest = MAX_FRAME_BYTES - frame_bytes - 2 * 16_000_000;
    let documents: Vec<Vec<u8>> = [16_000_000, 16_000_000, rest]
        .iter()
        .enumerate()
        .map(|(id, &length)| {
            let mut document = document_of(length);
            document[9..13].copy_from_slice(&(id as u32).to_le_bytes());
            document
        })
        .collect();
    let mut bytes = Vec::new();
    let write_body = |out: &mut Vec<u8>| out.extend_from_slice(body.as_ref().as_bytes());
    let documents = documents.iter().map(Vec::as_slice);
    let length = write_request(&mut bytes, 4, MessageFlags::NONE, write_body, "documents", documents);
    assert_eq!(length, Ok(MAX_FRAME_BYTES));
    let mut peer = running.peer();
    peer.send(&bytes);
    assert_eq!(shell::print(ValueRef::Document(peer.reply_to(4).as_ref())), "{n: 3, ok: 1.0}");
    bytes[..4].copy_from_slice(&(MAX_FRAME_BYTES as i32 + 1).to_le_bytes());
    assert_closes(&running, "one byte more", &bytes);
    running.assert_serves();
}

#[test]
fn commands_that_are_refused_leave_their_connection_open() {
    let running = Running::start();
    let mut peer = running.peer();
    let refused: &[(&str, i32, &str)] = &[
        ("{nosuch: 1}", 59, "no such command: 'nosuch'"),
        ("{PING: 1}", 59, "no such command: 'PING'"),
        ("{ping: 1, surprise: 1}", 40415, "'ping.surprise'"),
        ("{find: 't', filtr: {}}", 40415, "'find.filtr'"),
        ("{find: 't', filter: 5}", 14, "'filter' should be an object"),
        ("{find: 't', sort: 'x'}", 14, "'sort' should be an object"),
        ("{find: 't', limit: 'x'}", 14, "limit'"),
        ("{find: 't', batchSize: {}}", 14, "batchSize'"),
        ("{find: 't', singleBatch: 'x'}", 14, "'singleBatch' should be a boolean"),
        ("{insert: 't', documents: 5}", 14, "'insert.documents'"),
        ("{insert: 't', documents: [{}, 1]}", 14, "'insert.documents.1'"),
        ("{insert: 't', documents: [{}], ordered: 'x'}", 14, "'insert.ordered'"),
        ("{insert: 't', documents: [{}], writeConcern: 1}", 14, "'insert.writeConcern'"),
        ("{insert: 't'}", 40414, "'insert.documents'"),
        ("{insert: 't', documents: []}", 16, "between 1 and 100000"),
        ("{update: 't', updates: {}}", 14, "'update.updates'"),
        ("{update: 't', updates: [{q: 1, u: {}}]}", 14, "'update.updates.q'"),
        ("{delete: 't', deletes: 1}", 14, "'delete.deletes'"),
        ("{delete: 't', deletes: [{q: 5, limit: 1}]}", 14, "'delete.deletes.q'"),
        ("{getMore: 'x', collection: 't'}", 14, "'getMore.getMore'"),
        ("{getMore: NumberLong(1), collection: 5}", 14, "'getMore.collection'"),
        ("{killCursors: 't', cursors: 5}", 14, "'killCursors.cursors'"),
        ("{count: 't', query: 5}", 14, "'count.query'"),
        ("{distinct: 't', key: 5}", 14, "'distinct.key'"),
        ("{createIndexes: 't', indexes: 5}", 14, "'createIndexes.indexes'"),
        ("{find: 5}", 73, "collection name has invalid type int"),
        ("{find: ''}", 73, "Invalid"),
        ("{find: 't', filter: {$nosuch: 1}}", 2, "$nosuch"),
        ("{ping: 1, comment: 1, maxTimeMS: -1}", 2, "maxTimeMS"),
        ("{listDatabases: 1}", 13, "admin"),
    ];
    let mut wrong = BTreeMap::new();
    for (text, expected, words) in refused {
        let reply = peer.run("test", text);
        let is_expected = code(reply.as_ref()) == *expected && errmsg(reply.as_ref()).contains(words);
        if !is_expected || !matches!(reply.as_ref().get("ok"), Some(ValueRef::Double(0.0))) {
            wrong.insert(text, shell::print(ValueRef::Document(reply.as_ref())));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(peer.text("admin", "{ping: 1}"), "{ok: 1.0}");
    running.assert_serves();
}

#[test]
fn a_body_without_a_command_or_database_is_answered() {
    let running = Running::start();
    let mut peer = running.peer();
    let parse = |text| shell::parse_document(text).expect("shell syntax");
    for (text, expected, words) in [
        ("{}", 40571, "OP_MSG requests require a $db argument"),
        ("{ping: 1}", 40571, "OP_MSG requests require a $db argument"),
        ("{ping: 1, $db: 5}", 40571, "OP_MSG requests require a $db argument"),
        ("{$db: 'test'}", 59, "no such command: '$db'"),
        ("{find: 't', $db: ''}", 73, "Invalid"),
        ("{find: 't', $db: 'a b'}", 73, "Invalid"),
        ("{find: 't', $db: 'a.b'}", 73, "Invalid"),
    ] {
        let reply = peer.run_body(parse(text).as_ref());
        assert_eq!(code(reply.as_ref()), expected, "{text}: {reply:?}");
        assert!(errmsg(reply.as_ref()).contains(words), "{text}: {reply:?}");
    }
    assert_eq!(peer.text("admin", "{ping: 1}"), "{ok: 1.0}");
    running.assert_serves();
}
