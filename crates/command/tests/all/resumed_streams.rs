//! Resuming change streams: the token of each batch, and the tokens of fragments.

use crate::server::Server;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Timestamp, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_store::LogOptions;
use bunko_testkit::shell;

/// Two such fields exceed the size of an event.
const LARGE_BYTES: usize = 9 << 20;
const SPLIT: &str = "{$changeStreamSplitLargeEvent: {}}";
const IMAGES: &str = "fullDocument: 'required', fullDocumentBeforeChange: 'required'";

struct Client(Server);

/// A batch of a stream.
struct Batch {
    cursor: i64,
    events: Vec<DocumentBuf>,
    token: DocumentBuf,
}

impl Client {
    fn new() -> Self {
        let log = LogOptions { history_bytes_max: Some(1 << 30), ..LogOptions::default() };
        Self(Server::start_as_member(&ENGINES[0], &EngineOptions::default(), log))
    }

    fn reply(&mut self, command: &DocumentBuf) -> DocumentBuf {
        let reply = self.0.run(1, "test", command.as_ref());
        self.0.service.catalog.store().sync_history().expect("synced");
        reply
    }

    fn run(&mut self, command: &str) -> DocumentBuf {
        let reply = self.reply(&shell::parse_document(command).unwrap_or_else(|error| panic!("{command}: {error}")));
        assert_eq!(code(reply.as_ref()), 0, "{command}: {reply:?}");
        reply
    }

    /// The time of the last write.
    fn operation_time(&mut self) -> Timestamp {
        timestamp(self.run("{ping: 1}").as_ref().get("operationTime"))
    }

    /// Opens a stream after a token, with more options and stages. Returns the code if it fails.
    fn watch(&mut self, token: &DocumentBuf, (options, stages): (&str, &str), batch_size: i32) -> Result<Batch, i64> {
        let command = format!(
            "{{aggregate: 't', pipeline: [{{$changeStream: {{resumeAfter: {}, {options}}}}}, {stages}], cursor: {{batchSize: {batch_size}}}}}",
            shell::print(token.as_ref().into())
        );
        let reply =
            self.reply(&shell::parse_document(&command.replace(", ]", "]").replace(", }", "}")).expect("a command"));
        batch(reply.as_ref(), "firstBatch")
    }

    fn more(&mut self, cursor: i64, batch_size: i32) -> Result<Batch, i64> {
        let more = DocumentBuf::new().with("getMore", cursor).with("collection", "t").with("maxTimeMS", 0);
        batch(self.reply(&more.with("batchSize", batch_size)).as_ref(), "nextBatch")
    }

    /// The high-water mark after everything written so far.
    fn now(&mut self) -> DocumentBuf {
        let opened = self.run("{aggregate: 't', pipeline: [{$changeStream: {}}], cursor: {}}");
        batch(opened.as_ref(), "firstBatch").expect("opened").token
    }
}

fn code(reply: DocumentRef<'_>) -> i64 {
    reply.get("code").and_then(number::as_i64_exact).unwrap_or(0)
}

fn batch(reply: DocumentRef<'_>, name: &str) -> Result<Batch, i64> {
    let Some(cursor) = reply.get("cursor").and_then(ValueRef::as_document) else { return Err(code(reply)) };
    let events = cursor.get(name).and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    Ok(Batch {
        cursor: cursor.get("id").and_then(number::as_i64_exact).expect("an id"),
        events: events.iter().filter_map(ValueRef::as_document).map(DocumentRef::to_owned).collect(),
        token: cursor.get("postBatchResumeToken").and_then(ValueRef::as_document).expect("a token").to_owned(),
    })
}

fn timestamp(value: Option<ValueRef<'_>>) -> Timestamp {
    match value {
        Some(ValueRef::Timestamp(at)) => at,
        other => panic!("{other:?}"),
    }
}

fn token_of(event: &DocumentBuf) -> DocumentBuf {
    event.as_ref().get("_id").and_then(ValueRef::as_document).expect("a token").to_owned()
}

/// The digits of the high-water mark with that time.
fn mark(at: Timestamp) -> String {
    format!("82{:08X}{:08X}2B0429296E1404", at.seconds, at.increment)
}

fn digits(token: &DocumentBuf) -> &str {
    token.as_ref().get("_data").and_then(ValueRef::as_str).expect("digits")
}

#[test]
fn a_batch_is_resumed_after_the_last_entry_examined() {
    for stages in ["", "{$match: {'fullDocument.wanted': true}}", "{$project: {clusterTime: 0, ns: 0}}"] {
        let mut client = Client::new();
        client.run("{create: 't'}");
        let begin = client.now();
        let opened = client.watch(&begin, ("", stages), 0).expect("opened");
        assert_eq!(digits(&opened.token), digits(&begin), "{stages}: nothing was looked at");
        client.run("{insert: 't', documents: [{_id: 1, wanted: true}, {_id: 2, wanted: true}]}");
        let first = client.more(opened.cursor, 1).expect("read");
        assert_eq!(digits(&first.token), digits(&token_of(&first.events[0])), "{stages}: the batch is full");
        let second = client.more(opened.cursor, 10).expect("read");
        assert_eq!(second.events.len(), 1);
        assert_eq!(digits(&second.token), digits(&token_of(&second.events[0])), "{stages}: nothing came behind it");
        let again = client.more(opened.cursor, 10).expect("read");
        assert_eq!((again.events.len(), digits(&again.token)), (0, digits(&second.token)), "{stages}: nor since");
        // Writes to other collections advance the mark to the time of the last one.
        client.run("{insert: 'other', documents: [{_id: 1}]}");
        let other = client.operation_time();
        let empty = client.more(opened.cursor, 10).expect("read");
        assert_eq!((empty.events.len(), digits(&empty.token)), (0, mark(other).as_str()), "{stages}");
        client.run("{insert: 't', documents: [{_id: 3, wanted: true}]}");
        client.run("{insert: 't', documents: [{_id: 4, wanted: false}]}");
        let last = client.operation_time();
        let third = client.more(opened.cursor, 10).expect("read");
        if stages.starts_with("{$match") {
            assert_eq!(third.events.len(), 1);
            assert_eq!(digits(&third.token), mark(last), "one that came out of no stage was looked at");
        } else {
            assert_eq!(third.events.len(), 2);
            assert_eq!(digits(&third.token), digits(&token_of(&third.events[1])), "{stages}");
        }
        // With either token, no event is lost and none is returned twice.
        client.run("{insert: 't', documents: [{_id: 5, wanted: true}]}");
        for token in [&second.token, &empty.token] {
            let resumed = client.watch(token, ("", "{$match: {'fullDocument.wanted': true}}"), 10).expect("resumed");
            let keys: Vec<_> = resumed
                .events
                .iter()
                .map(|event| shell::print(event.as_ref().get("documentKey").expect("a key")))
                .collect();
            assert_eq!(keys, ["{_id: 3}", "{_id: 5}"], "{stages}");
        }
    }
}

#[test]
fn a_split_event_is_resumed_behind_each_fragment_with_the_same_options_alone() {
    let mut client = Client::new();
    client.run("{create: 't', changeStreamPreAndPostImages: {enabled: true}}");
    let large = DocumentBuf::new().with("_id", 1).with("large", "x".repeat(LARGE_BYTES).as_str());
    let documents = [&large].into_iter().collect::<bunko_bson::ArrayBuf>();
    client.reply(&DocumentBuf::new().with("insert", "t").with("documents", &documents));
    let begin = client.now();
    client.run("{update: 't', updates: [{q: {_id: 1}, u: {$set: {small: 1}}}]}");
    client.run("{insert: 't', documents: [{_id: 2}]}");
    let mut fragments = Vec::new();
    let mut batch = client.watch(&begin, (IMAGES, SPLIT), 1).expect("opened");
    while fragments.len() < 2 {
        for fragment in &batch.events {
            fragments.push(token_of(fragment));
            assert_eq!(digits(&batch.token), digits(&token_of(fragment)), "the batch ends with that fragment");
        }
        batch = client.more(batch.cursor, 1).expect("read");
    }
    assert_eq!(batch.events.len(), 1, "the insert follows");
    for (number, token) in fragments.iter().enumerate() {
        let empty = client.watch(token, (IMAGES, SPLIT), 0).expect("resumed");
        assert_eq!(digits(&empty.token), digits(token), "nothing of the event is passed by yet");
        let next = client.more(empty.cursor, 1).expect("read");
        let is_fragment = next.events[0].as_ref().get("splitEvent").is_some();
        assert_eq!(
            is_fragment,
            number == 0,
            "{:?}",
            shell::print(next.events[0].as_ref().get("_id").expect("a token"))
        );
        for (options, stages) in [
            ("", SPLIT),
            ("fullDocument: 'required'", SPLIT),
            (IMAGES, "{$match: {operationType: 'insert'}}, {$changeStreamSplitLargeEvent: {}}"),
            (IMAGES, "{$unset: 'fullDocument'}, {$changeStreamSplitLargeEvent: {}}"),
            (IMAGES, ""),
        ] {
            let refused = client.watch(token, (options, stages), 10);
            assert_eq!(refused.err(), Some(280), "{options} {stages}");
        }
    }
}
