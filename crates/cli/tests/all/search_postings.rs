//! Postings of a search index on a server that is killed, that has no room, whose searches are killed, and that is
//! written to meanwhile: each search gives the result of a search through all documents.

use crate::peer::{Peer, binary};
use bunko_testkit::process::{Server, temporary_dbpath};
use std::path::Path;

const INDEX: &str =
    "{createSearchIndexes: 'texts', indexes: [{name: 'default', definition: {mappings: {dynamic: true}}}]}";
/// More documents than are searched without postings.
const COUNT: usize = 600;

fn start(dbpath: &Path) -> (Server, Peer) {
    let server = Server::start(&binary(), dbpath, &[]).expect("the server starts");
    let peer = Peer::connect(server.address());
    (server, peer)
}

fn insert(peer: &mut Peer, numbers: std::ops::Range<usize>) {
    let count = numbers.len();
    let document = |n: usize| format!("{{_id: {n}, t: 'word{} common text{} word{}'}}", n % 50, n % 7, n % 3);
    let documents = numbers.map(document).collect::<Vec<_>>().join(", ");
    let reply = peer.text("words", &format!("{{insert: 'texts', documents: [{documents}]}}"));
    assert!(reply.contains(&format!("n: {count},")), "{reply}");
}

fn search(collection: &str, operator: &str) -> String {
    format!(
        "{{aggregate: '{collection}', pipeline: [{{$search: {{{operator}}}}}, {{$project: {{score: {{$meta: \
         'searchScore'}}}}}}], cursor: {{batchSize: 10000}}}}"
    )
}

/// Limits the memory of postings. With 0, each search reads all documents.
fn limit(peer: &mut Peer, bytes: i64) {
    let reply = peer.text("admin", &format!("{{setParameter: 1, searchMemoryLimitBytes: {bytes}}}"));
    assert!(reply.contains("ok: 1.0"), "{reply}");
}

/// Checks that searches find the same documents with postings and without.
fn assert_same(peer: &mut Peer, collection: &str) {
    for operator in [
        "text: {query: 'word1 text3', path: 't'}",
        "phrase: {query: 'common text3', path: 't'}",
        "text: {query: 'wort1', path: 't', fuzzy: {maxEdits: 1}}",
        "compound: {must: [{text: {query: 'text3', path: 't'}}], mustNot: [{text: {query: 'word1', path: 't'}}]}",
    ] {
        let answered = peer.text("words", &search(collection, operator));
        assert!(answered.contains("score: "), "{answered}");
        // An update of the index makes the server discard its postings.
        limit(peer, 0);
        peer.text(
            "words",
            &format!(
                "{{updateSearchIndex: '{collection}', name: 'default', definition: {{mappings: {{dynamic: true}}}}}}"
            ),
        );
        assert_eq!(peer.text("words", &search(collection, operator)), answered, "{operator}");
        let listed = peer.text("words", &format!("{{listSearchIndexes: '{collection}'}}"));
        assert!(listed.contains("no room in memory") && listed.contains("queryable: true"), "{listed}");
        limit(peer, 1 << 30);
        assert_eq!(peer.text("words", &search(collection, operator)), answered, "{operator}");
        let listed = peer.text("words", &format!("{{listSearchIndexes: '{collection}'}}"));
        assert!(!listed.contains("no room") && listed.contains("status: \"READY\""), "{listed}");
    }
}

#[test]
fn postings_follow_writes_renames_drops_and_kills() {
    let dbpath = temporary_dbpath();
    let (mut server, mut peer) = start(dbpath.path());
    assert!(peer.text("admin", "{setParameter: 1, searchMemoryLimitBytes: -1}").contains("code: 2,"));
    insert(&mut peer, 0..COUNT);
    let reply = peer.text("words", INDEX);
    assert!(reply.contains("ok: 1.0"), "{reply}");
    assert_same(&mut peer, "texts");
    peer.text("words", "{delete: 'texts', deletes: [{q: {_id: {$lt: 100}}, limit: 0}]}");
    peer.text(
        "words",
        "{update: 'texts', updates: [{q: {_id: {$gte: 500}}, u: {$set: {t: 'word1 once more text3'}}, multi: true}]}",
    );
    assert_same(&mut peer, "texts");
    let reply = peer.text("admin", "{renameCollection: 'words.texts', to: 'words.others'}");
    assert!(reply.contains("ok: 1.0"), "{reply}");
    assert_same(&mut peer, "others");
    peer.text("words", "{update: 'others', updates: [{q: {_id: 200}, u: {$set: {t: 'unheard'}}}]}");
    server.kill();
    let (_server, mut peer) = start(dbpath.path());
    let reply = peer.text("words", &search("others", "text: {query: 'unheard', path: 't'}"));
    assert!(reply.contains("[{_id: 200,"), "{reply}");
    assert_same(&mut peer, "others");
    peer.text("words", "{drop: 'others'}");
    let reply = peer.text("words", &search("others", "text: {query: 'unheard', path: 't'}"));
    assert!(reply.contains("firstBatch: []"), "{reply}");
}

#[test]
fn searches_beside_writers_see_each_document_once() {
    let dbpath = temporary_dbpath();
    let (server, mut peer) = start(dbpath.path());
    insert(&mut peer, 0..COUNT);
    peer.text("words", INDEX);
    let address = server.address();
    let writer = std::thread::spawn(move || {
        let mut peer = Peer::connect(address);
        for round in 0..100 {
            let reply = peer.text("words", &format!("{{update: 'texts', updates: [{{q: {{_id: {{$lt: 20}}}}, u: {{$set: {{t: 'common round{round}'}}}}, multi: true}}]}}"));
            assert!(reply.contains("n: 20,"), "{reply}");
        }
    });
    while !writer.is_finished() {
        let reply = peer.text("words", &search("texts", "text: {query: 'common', path: 't'}"));
        assert_eq!(reply.matches("_id: ").count(), COUNT, "{reply}");
    }
    writer.join().expect("the writer");
    let reply = peer.text("words", &search("texts", "text: {query: 'round99', path: 't'}"));
    assert_eq!(reply.matches("_id: ").count(), 20, "{reply}");
    assert_same(&mut peer, "texts");
}

#[test]
fn a_first_search_that_is_ended_leaves_an_index_that_answers() {
    let dbpath = temporary_dbpath();
    let (_server, mut peer) = start(dbpath.path());
    for start in (0..20 * COUNT).step_by(COUNT) {
        insert(&mut peer, start..start + COUNT);
    }
    peer.text("words", INDEX);
    let asked = search("texts", "text: {query: 'word1', path: 't'}");
    let mut ended = 0;
    for _ in 0..20 {
        let reply = peer.text("words", &format!("{}, maxTimeMS: 3}}", &asked[..asked.len() - 1]));
        assert!(reply.contains("ok: 1.0") || reply.contains("code: 50,"), "{reply}");
        ended += usize::from(reply.contains("code: 50,"));
    }
    assert!(ended > 0);
    assert_same(&mut peer, "texts");
}
