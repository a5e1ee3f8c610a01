//! The opcodes of old clients before a login: access control applies to them, too.

use super::Guarded;
use crate::logins::run;
use crate::peer::{Peer, frame};
use bunko_bson::{ValueRef, number};

const OP_QUERY: i32 = 2004;
const OP_GET_MORE: i32 = 2005;
const OP_KILL_CURSORS: i32 = 2007;

#[test]
fn old_opcodes_go_by_the_same_door() {
    let mut guarded = Guarded::start();
    run(&mut guarded.root, "own", "{insert: 'c', documents: [{}, {}, {}]}");
    let found = run(&mut guarded.root, "own", "{find: 'c', batchSize: 1}");
    let cursor = found.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
    let id = cursor.get("id").and_then(number::as_i64_exact).expect("an id");
    let integers = |numbers: &[i32]| -> Vec<u8> { numbers.iter().flat_map(|number| number.to_le_bytes()).collect() };
    let find = b"\x11\0\0\0\x02find\0\x02\0\0\0c\0\0";
    let attacks = [
        (OP_QUERY, [&integers(&[0])[..], b"own.c\0", &integers(&[0, 5]), b"\x05\0\0\0\0"].concat()),
        (OP_QUERY, [&integers(&[0])[..], b"own.$cmd\0", &integers(&[0, -1]), find].concat()),
        (OP_QUERY, [&integers(&[0])[..], b"admin.$cmd.sys.killop\0", &integers(&[0, -1]), b"\x05\0\0\0\0"].concat()),
        (OP_GET_MORE, [&integers(&[0])[..], b"own.c\0", &integers(&[10]), &id.to_le_bytes()].concat()),
    ];
    for (op_code, content) in &attacks {
        let mut peer = Peer::connect(guarded.server.address());
        peer.send(&frame(*op_code, content));
        let reply = String::from_utf8_lossy(&peer.frame()).into_owned();
        assert!(reply.contains("requires authentication"), "{op_code}: {reply}");
    }
    // OP_KILL_CURSORS has no reply. The server reads the next command on the connection after it.
    let mut peer = Peer::connect(guarded.server.address());
    peer.send(&frame(OP_KILL_CURSORS, &[&integers(&[0, 1])[..], &id.to_le_bytes()].concat()));
    peer.run("admin", "{ping: 1}");
    run(&mut guarded.root, "own", &format!("{{getMore: NumberLong('{id}'), collection: 'c'}}"));
}
