//! Change streams that begin at a position that the log no longer has, and the times of writes there.

use crate::server::Server;
use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_errors::ErrorCode;
use bunko_store::{LogOptions, SEGMENT_BYTES, Survival};
use bunko_testkit::shell;

/// Documents of 1 MiB each, which push everything before them out of the history.
const DOCUMENTS: usize = 240;

fn run(server: &mut Server, command: &DocumentBuf) -> DocumentBuf {
    server.run(1, "test", command.as_ref())
}

fn open(server: &mut Server, option: &str, place: ValueRef<'_>) -> DocumentBuf {
    let stage = DocumentBuf::new().with("$changeStream", &DocumentBuf::new().with(option, place));
    let pipeline: bunko_bson::ArrayBuf = [&stage].into_iter().collect();
    let command = DocumentBuf::new().with("aggregate", "t").with("pipeline", &pipeline);
    run(server, &command.with("cursor", &DocumentBuf::new()))
}

fn code(reply: &DocumentBuf) -> Option<i64> {
    reply.as_ref().get("code").and_then(number::as_i64_exact)
}

fn cursor(reply: &DocumentBuf) -> DocumentRef<'_> {
    reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor")
}

/// The field names of the only document in `config.transactions`.
fn fields_of_write(server: &mut Server) -> Vec<String> {
    let find = shell::parse_document("{find: 'transactions'}").expect("BSON");
    let found = server.run(1, "config", find.as_ref());
    let batch = cursor(&found).get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
    let [only] = batch.iter().collect::<Vec<_>>()[..] else { panic!("{found:?}") };
    only.as_document().expect("a document").iter().map(|field| field.name.to_owned()).collect()
}

#[test]
fn the_time_of_a_write_goes_with_the_history() {
    let log = LogOptions { history_bytes_max: Some(SEGMENT_BYTES), ..LogOptions::default() };
    let mut server = Server::start_as_member(&ENGINES[0], &EngineOptions::default(), log);
    let session = "lsid: {id: UUID('00112233-4455-6677-8899-aabbccddeeff')}, txnNumber: NumberLong(1)";
    let insert = format!("{{insert: 't', documents: [{{_id: 'first'}}], {session}}}");
    run(&mut server, &shell::parse_document(&insert).expect("BSON"));
    assert_eq!(fields_of_write(&mut server), ["_id", "txnNum", "lastWriteOpTime", "lastWriteDate"]);
    push_out(&mut server);
    assert_eq!(fields_of_write(&mut server), ["_id", "txnNum"]);
}

/// Makes the log drop everything that it has so far.
fn push_out(server: &mut Server) {
    let pad = "x".repeat(1 << 20);
    for id in 0..DOCUMENTS {
        let document = DocumentBuf::new().with("_id", id as i32).with("pad", pad.as_str());
        let documents: bunko_bson::ArrayBuf = [&document].into_iter().collect();
        run(server, &DocumentBuf::new().with("insert", "t").with("documents", &documents));
    }
    server.service.catalog.store().compact().expect("compacts");
}

#[test]
fn a_token_older_than_the_history_gets_286_change_stream_history_lost() {
    let is_durable =
        |entry: &&bunko_engines::Entry| (entry.kind)(&EngineOptions::default()).survival == Survival::Durable;
    for engine in ENGINES.iter().filter(is_durable) {
        let log = LogOptions { history_bytes_max: Some(SEGMENT_BYTES), ..LogOptions::default() };
        let mut server = Server::start_as_member(engine, &EngineOptions::default(), log);
        let stage =
            shell::parse_document("{aggregate: 't', pipeline: [{$changeStream: {}}], cursor: {}}").expect("BSON");
        let opened = run(&mut server, &stage);
        let slow = cursor(&opened).get("id").and_then(number::as_i64_exact).expect("an id");
        let mark = cursor(&opened).get("postBatchResumeToken").and_then(ValueRef::as_document).expect("a token");
        run(&mut server, &shell::parse_document("{insert: 't', documents: [{_id: 'first'}]}").expect("BSON"));
        let resumed = open(&mut server, "resumeAfter", ValueRef::Document(mark));
        let first = cursor(&resumed).get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
        let first = first.iter().next().and_then(ValueRef::as_document).expect("the event is still there");
        let token = first.get("_id").and_then(ValueRef::as_document).expect("a token");
        let Some(ValueRef::Timestamp(time)) = first.get("clusterTime") else { panic!("a time") };
        push_out(&mut server);
        let lost = Some(i64::from(ErrorCode::CHANGE_STREAM_HISTORY_LOST.0));
        for (option, place) in [
            ("resumeAfter", ValueRef::Document(mark)),
            ("resumeAfter", ValueRef::Document(token)),
            ("startAfter", ValueRef::Document(token)),
            ("startAtOperationTime", ValueRef::Timestamp(time)),
            ("startAtOperationTime", ValueRef::Timestamp(Timestamp { seconds: 1, increment: 1 })),
        ] {
            let refused = open(&mut server, option, place);
            assert_eq!(code(&refused), lost, "{}: {option}: {refused:?}", engine.name);
            let labels = refused.as_ref().get("errorLabels").and_then(ValueRef::as_array).expect("labels");
            assert!(labels.iter().any(|label| label.as_str() == Some("NonResumableChangeStreamError")));
        }
        // A stream that was opened before and falls too far behind gets that error too.
        let more = DocumentBuf::new().with("getMore", slow).with("collection", "t");
        assert_eq!(code(&run(&mut server, &more)), lost, "{}", engine.name);
    }
}
