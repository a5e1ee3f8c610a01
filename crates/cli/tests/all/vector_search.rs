//! Vector search on a server that is killed, that has no room, and whose searches are killed.

use crate::peer::{Peer, binary};
use bunko_testkit::process::{Server, temporary_dbpath};
use std::path::Path;

const INDEX: &str = "{createSearchIndexes: 'things', indexes: [{name: 'i', type: 'vectorSearch', definition: {fields: [\
                     {type: 'vector', path: 'v', numDimensions: 2, similarity: 'euclidean'}, {type: 'filter', path: 'n'}]}}]}";

fn start(dbpath: &Path) -> (Server, Peer) {
    let server = Server::start(&binary(), dbpath, &["--replSet", "rs0", "--replSetHost", "127.0.0.1:1"])
        .expect("the server starts");
    let peer = Peer::connect(server.address());
    (server, peer)
}

fn insert(peer: &mut Peer, count: usize) {
    let documents: Vec<String> = (0..count).map(|n| format!("{{_id: {n}, v: [1, {n}], n: {}}}", n % 2)).collect();
    let documents = documents.join(", ");
    let reply = peer.text("vectors", &format!("{{insert: 'things', documents: [{documents}]}}"));
    assert!(reply.contains(&format!("n: {count},")), "{reply}");
}

fn search(more: &str) -> String {
    format!(
        "{{aggregate: 'things', pipeline: [{{$vectorSearch: {{index: 'i', path: 'v', queryVector: [1, 0], limit: 3, \
         numCandidates: 10 {more}}}}}, {{$project: {{_id: 1}}}}], cursor: {{}}}}"
    )
}

fn assert_finds(peer: &mut Peer, more: &str, ids: [i32; 3]) {
    let reply = peer.text("vectors", &search(more));
    let [one, two, three] = ids;
    assert!(reply.contains(&format!("firstBatch: [{{_id: {one}}}, {{_id: {two}}}, {{_id: {three}}}]")), "{reply}");
}

#[test]
fn a_kill_leaves_the_index_and_all_that_was_acknowledged() {
    let dbpath = temporary_dbpath();
    let (mut server, mut peer) = start(dbpath.path());
    insert(&mut peer, 100);
    let reply = peer.text("vectors", INDEX);
    assert!(reply.contains("ok: 1.0"), "{reply}");
    assert_finds(&mut peer, "", [0, 1, 2]);
    peer.text("vectors", "{delete: 'things', deletes: [{q: {_id: 1}, limit: 1}]}");
    peer.text("vectors", "{update: 'things', updates: [{q: {_id: 99}, u: {$set: {v: [1, 0.5]}}}]}");
    server.kill();
    let (_server, mut peer) = start(dbpath.path());
    assert_finds(&mut peer, "", [0, 99, 2]);
    assert_finds(&mut peer, ", filter: {n: 1}", [99, 3, 5]);
}

#[test]
fn without_room_the_answers_are_the_same() {
    let dbpath = temporary_dbpath();
    let (_server, mut peer) = start(dbpath.path());
    insert(&mut peer, 1_000);
    peer.text("vectors", INDEX);
    let set = |limit: &str| format!("{{setParameter: 1, vectorSearchMemoryLimitBytes: {limit}}}");
    assert!(peer.text("admin", &set("-1")).contains("code: 2,"));
    for limit in ["0", "1", "20000", "1000000000"] {
        let reply = peer.text("admin", &set(limit));
        assert!(reply.contains("ok: 1.0"), "{reply}");
        assert_finds(&mut peer, "", [0, 1, 2]);
        assert_finds(&mut peer, ", filter: {n: {$gt: 0}}", [1, 3, 5]);
        peer.text("vectors", "{update: 'things', updates: [{q: {_id: 500}, u: {$set: {v: [1, -0.5]}}}]}");
        assert_finds(&mut peer, "", [0, 500, 1]);
        peer.text("vectors", "{update: 'things', updates: [{q: {_id: 500}, u: {$set: {v: [1, 500]}}}]}");
    }
}

#[test]
fn a_view_that_begins_with_a_search_searches_what_it_is_on() {
    let dbpath = temporary_dbpath();
    let (_server, mut peer) = start(dbpath.path());
    insert(&mut peer, 20);
    peer.text("vectors", INDEX);
    let stage = "{$vectorSearch: {index: 'i', path: 'v', queryVector: [1, 0], limit: 3, exact: true}}";
    let reply = peer.text("vectors", &format!("{{create: 'near', viewOn: 'things', pipeline: [{stage}]}}"));
    assert!(reply.contains("ok: 1.0"), "{reply}");
    let reply = peer.text("vectors", "{find: 'near', filter: {_id: {$gt: 0}}, projection: {_id: 1}}");
    assert!(reply.contains("firstBatch: [{_id: 1}, {_id: 2}]"), "{reply}");
    // A view has no index of its own.
    let other = stage.replace("limit: 3", "limit: 2");
    let reply = peer.text("vectors", &format!("{{aggregate: 'near', pipeline: [{other}], cursor: {{}}}}"));
    assert!(reply.contains("firstBatch: []"), "{reply}");
}

#[test]
fn a_cursor_finds_no_more_once_the_collection_is_dropped() {
    let dbpath = temporary_dbpath();
    let (_server, mut peer) = start(dbpath.path());
    insert(&mut peer, 50);
    peer.text("vectors", INDEX);
    let reply = peer
        .run("vectors", &search("").replace("limit: 3", "limit: 10").replace("cursor: {}", "cursor: {batchSize: 2}"));
    let cursor = reply.as_ref().get("cursor").and_then(|cursor| cursor.as_document()?.get("id"));
    let Some(bunko_bson::ValueRef::Int64(cursor)) = cursor else { panic!("{reply:?}") };
    peer.text("vectors", "{drop: 'things'}");
    let reply = peer.text("vectors", &format!("{{getMore: NumberLong({cursor}), collection: 'things'}}"));
    assert!(reply.contains("nextBatch: []") || reply.contains("ok: 0.0"), "{reply}");
}

#[test]
fn past_states_and_transactions_are_refused() {
    let dbpath = temporary_dbpath();
    let (_server, mut peer) = start(dbpath.path());
    insert(&mut peer, 5);
    peer.text("vectors", INDEX);
    let with = |more: &str| {
        let search = search("");
        format!("{}, {more}}}", &search[..search.len() - 1])
    };
    let reply = peer.text("vectors", &with("readConcern: {level: 'snapshot'}"));
    assert!(reply.contains("code: 72,"), "{reply}");
    let transaction = "lsid: {id: UUID('00112233-4455-6677-8899-aabbccddeeff')}, txnNumber: NumberLong(1), \
                       autocommit: false, startTransaction: true";
    let reply = peer.text("vectors", &with(transaction));
    assert!(reply.contains("code: 263,"), "{reply}");
}
