//! The opcodes before OP_MSG, as old drivers use them.

use crate::peer::{Peer, Running, code, frame};
use crate::protocol::{at, shown, text};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_testkit::shell;
use bunko_wire::{MAX_FRAME_BYTES, OpCode, Query, QueryFlags, Reply, ReplyFlags};

/// Sends an OP_QUERY and splits its OP_REPLY into flags, cursor and documents.
fn legacy(peer: &mut Peer, name: &str, query: &str, number_to_return: i32) -> (ReplyFlags, i64, Vec<DocumentBuf>) {
    let document = shell::parse_document(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let query = Query {
        request_id: 40,
        flags: QueryFlags::SECONDARY_OK,
        full_collection_name: name,
        skip: 0,
        number_to_return,
        query: document.as_ref(),
        return_fields: None,
    };
    let mut bytes = Vec::new();
    query.write(&mut bytes).expect("within the limit");
    peer.send(&bytes);
    legacy_reply(peer, 40)
}

fn legacy_reply(peer: &mut Peer, request_id: i32) -> (ReplyFlags, i64, Vec<DocumentBuf>) {
    let bytes = peer.frame();
    let reply = Reply::parse(&bytes).expect("an OP_REPLY");
    assert_eq!((reply.header.response_to, reply.header.op_code), (request_id, OpCode::Reply));
    let documents = reply.documents.iter().copied().map(DocumentRef::to_owned).collect();
    (reply.head.flags, reply.head.cursor_id, documents)
}

fn get_more(name: &str, number_to_return: i32, cursor_id: i64) -> Vec<u8> {
    let content = [&[0; 4], name.as_bytes(), &[0], &number_to_return.to_le_bytes(), &cursor_id.to_le_bytes()[..]];
    let mut bytes = frame(OpCode::GetMore.code(), &content.concat());
    bytes[4..8].copy_from_slice(&41_i32.to_le_bytes());
    bytes
}

#[test]
fn commands_in_op_query_are_answered_by_one_document() {
    let running = Running::start();
    let mut peer = running.peer();
    let mut one = |query: &str| {
        let (flags, cursor_id, documents) = legacy(&mut peer, "admin.$cmd", query, -1);
        assert_eq!((flags, cursor_id, documents.len()), (ReplyFlags::AWAIT_CAPABLE, 0, 1), "{query}");
        documents.into_iter().next().expect("one document")
    };
    let hello = one("{isMaster: 1, helloOk: true, client: {driver: {name: 'old', version: '1'}, os: {type: 'Linux'}}}");
    assert_eq!(shown(hello.as_ref(), "ismaster"), "true");
    assert_eq!(shown(hello.as_ref(), "maxMessageSizeBytes"), MAX_FRAME_BYTES.to_string());
    let nonce = one("{getnonce: 1}");
    let nonce = at(nonce.as_ref(), "nonce").as_str().expect("a string").to_owned();
    assert!(nonce.len() == 16 && nonce.bytes().all(|byte| byte.is_ascii_hexdigit()), "{nonce}");
    assert_ne!(at(one("{getnonce: 1}").as_ref(), "nonce").as_str(), Some(&*nonce), "a nonce is used once");
    assert_eq!(text(one("{ping: 1}").as_ref()), "{ok: 1.0}");
    assert_eq!(text(one("{$query: {ping: 1}, $readPreference: {mode: 'secondary'}}").as_ref()), "{ok: 1.0}");
    let refused = one("{nosuch: 1}");
    assert_eq!(code(refused.as_ref()), 59);
    running.assert_serves();
}

#[test]
fn op_query_on_a_collection_opens_a_cursor() {
    let running = Running::start();
    let mut peer = running.peer();
    let documents: Vec<String> = (0..10).map(|id| format!("{{_id: {id}}}")).collect();
    peer.run("test", &format!("{{insert: 'old', documents: [{}]}}", documents.join(", ")));
    let texts = |documents: &[DocumentBuf]| documents.iter().map(|found| text(found.as_ref())).collect::<Vec<_>>();

    let query = "{$query: {_id: {$gte: 2}}, $orderby: {_id: -1}}";
    let (flags, cursor_id, first) = legacy(&mut peer, "test.old", query, 3);
    assert_eq!(texts(&first), ["{_id: 9}", "{_id: 8}", "{_id: 7}"]);
    assert_eq!(flags, ReplyFlags::AWAIT_CAPABLE);
    assert_ne!(cursor_id, 0);
    peer.send(&get_more("test.old", 2, cursor_id));
    let (_, same, next) = legacy_reply(&mut peer, 41);
    assert_eq!((texts(&next), same), (vec!["{_id: 6}".to_owned(), "{_id: 5}".to_owned()], cursor_id));
    peer.send(&get_more("test.old", 0, cursor_id));
    let (_, end, rest) = legacy_reply(&mut peer, 41);
    assert_eq!((rest.len(), end), (3, 0), "an exhausted cursor is closed");

    // A negative number is a limit, and leaves no cursor.
    let (_, cursor_id, limited) = legacy(&mut peer, "test.old", "{}", -2);
    assert_eq!((limited.len(), cursor_id), (2, 0));

    // OP_KILL_CURSORS has no reply; OP_GET_MORE no longer finds the cursor.
    let (_, cursor_id, _) = legacy(&mut peer, "test.old", "{}", 2);
    let mut kill =
        frame(OpCode::KillCursors.code(), &[&[0; 4], &1_i32.to_le_bytes(), &cursor_id.to_le_bytes()[..]].concat());
    peer.send(&kill);
    peer.send(&get_more("test.old", 2, cursor_id));
    let (flags, zero, none) = legacy_reply(&mut peer, 41);
    assert!(flags.contains(ReplyFlags::CURSOR_NOT_FOUND), "{flags:?}");
    assert_eq!((zero, none.len()), (0, 0));

    let (flags, _, failed) = legacy(&mut peer, "test.old", "{_id: {$nosuch: 1}}", 0);
    assert!(flags.contains(ReplyFlags::QUERY_FAILURE), "{flags:?}");
    assert!(matches!(failed[0].as_ref().first(), Some(field) if field.name == "$err"), "{failed:?}");

    // A wrong number of cursors, and writes without a reply, close the connection.
    kill[20..24].copy_from_slice(&2_i32.to_le_bytes());
    peer.send(&kill);
    peer.assert_closed("two cursors announced, one sent");
    let mut peer = running.peer();
    let document = shell::parse_document("{_id: 100}").expect("shell syntax");
    peer.send(&frame(OpCode::Insert.code(), &[&[0; 4], &b"test.old\0"[..], document.as_ref().as_bytes()].concat()));
    peer.assert_closed("OP_INSERT");
    assert_eq!(running.peer().text("test", "{count: 'old'}"), "{n: 10, ok: 1.0}");
    running.assert_serves();
}
