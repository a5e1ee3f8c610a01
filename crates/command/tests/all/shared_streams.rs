//! Change streams that read the log together: each returns all events once and in order, however slow it is and
//! whichever streams open or close meanwhile.

use crate::server::Server;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_store::LogOptions;
use bunko_testkit::random::Random;
use std::collections::BTreeMap;

const ROUNDS: u32 = 400;
const STREAMS_MAX: usize = 12;
/// Large documents, which together exceed the events that are kept for slow streams.
const LARGE_BYTES: usize = 300 << 10;

/// A stream, and the number of the document in its next event.
struct Stream {
    cursor: i64,
    next: i64,
}

struct Streams {
    server: Server,
    random: Random,
    open: Vec<Stream>,
    /// Number of inserted documents.
    inserted: i64,
    /// The token of each returned event, by the document's number.
    tokens: BTreeMap<i64, DocumentBuf>,
}

impl Streams {
    fn run(&mut self, command: &DocumentBuf) -> DocumentBuf {
        let reply = self.server.run(1, "test", command.as_ref());
        let ok = reply.as_ref().get("ok").and_then(number::as_i64_exact);
        assert_eq!(ok, Some(1), "{command:?}: {reply:?}");
        reply
    }

    fn insert(&mut self) {
        let documents: ArrayBuf = (0..=self.random.below(5))
            .map(|_| {
                let pad = if self.random.below(12) == 0 { LARGE_BYTES } else { 10 };
                self.inserted += 1;
                DocumentBuf::new().with("_id", self.inserted - 1).with("pad", "x".repeat(pad).as_str())
            })
            .collect::<Vec<_>>()
            .iter()
            .collect();
        self.run(&DocumentBuf::new().with("insert", "t").with("documents", &documents));
        self.server.service.catalog.store().sync_history().expect("synced");
    }

    /// Opens a stream at the present end, or after an earlier event.
    fn open(&mut self) {
        let behind = (!self.tokens.is_empty() && self.random.below(2) == 0).then(|| {
            let place = self.random.below(self.tokens.len() as u64) as usize;
            let (number, token) = self.tokens.iter().nth(place).expect("so many");
            (*number, token.clone())
        });
        let mut stage = DocumentBuf::new();
        let next = match &behind {
            Some((number, token)) => {
                stage.append("resumeAfter", token);
                number + 1
            }
            None => self.inserted,
        };
        // Half of the streams have another stage.
        let mut pipeline: ArrayBuf = [&DocumentBuf::new().with("$changeStream", &stage)].into_iter().collect();
        if self.random.below(2) == 0 {
            pipeline.push(&DocumentBuf::new().with("$set", &DocumentBuf::new().with("more", 1)));
        }
        let command = DocumentBuf::new().with("aggregate", "t").with("pipeline", &pipeline);
        let reply = self.run(&command.with("cursor", &DocumentBuf::new().with("batchSize", 0)));
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        let cursor = cursor.get("id").and_then(number::as_i64_exact).expect("an id");
        self.open.push(Stream { cursor, next });
    }

    /// Reads a batch of a stream. Returns the number of events.
    fn read(&mut self, place: usize, documents: i32) -> usize {
        let cursor = self.open[place].cursor;
        let more = DocumentBuf::new().with("getMore", cursor).with("collection", "t").with("maxTimeMS", 0);
        let reply = self.run(&more.with("batchSize", documents));
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        let batch = cursor.get("nextBatch").and_then(ValueRef::as_array).expect("a batch");
        let events: Vec<DocumentRef<'_>> = batch.iter().filter_map(ValueRef::as_document).collect();
        for event in &events {
            let key = event.get("documentKey").and_then(ValueRef::as_document).expect("a key");
            let number = key.get("_id").and_then(number::as_i64_exact).expect("a number");
            assert_eq!(number, self.open[place].next, "one after the other");
            self.open[place].next += 1;
            let token = event.get("_id").and_then(ValueRef::as_document).expect("a token");
            let known = self.tokens.entry(number).or_insert_with(|| token.to_owned());
            assert_eq!(known.as_ref().as_bytes(), token.as_bytes(), "of one event, the same");
        }
        events.len()
    }

    fn close(&mut self, place: usize) {
        let cursor = self.open.swap_remove(place).cursor;
        let cursors: ArrayBuf = [cursor].into_iter().collect();
        self.run(&DocumentBuf::new().with("killCursors", "t").with("cursors", &cursors));
    }
}

#[test]
fn streams_that_read_together_are_told_all_events_in_order() {
    let engine = ENGINES.iter().find(|entry| entry.name == "lsm").expect("an engine");
    let log = LogOptions { history_bytes_max: Some(4 << 30), ..LogOptions::default() };
    let server = Server::start_as_member(engine, &EngineOptions::default(), log);
    let mut streams = Streams { server, random: Random(11), open: Vec::new(), inserted: 0, tokens: BTreeMap::new() };
    streams.insert();
    let mut told = 0;
    for _ in 0..ROUNDS {
        match streams.random.below(10) {
            0..4 => streams.insert(),
            4 if streams.open.len() < STREAMS_MAX => streams.open(),
            5 if streams.open.len() > 6 => {
                let place = streams.random.below(streams.open.len() as u64) as usize;
                streams.close(place);
            }
            _ if streams.open.is_empty() => {}
            _ => {
                // The first streams are read most, the last hardly ever.
                let all = streams.open.len() as u64;
                let place = streams.random.below(all).min(streams.random.below(all)) as usize;
                let documents = 1 + streams.random.below(9) as i32;
                told += streams.read(place, documents);
            }
        }
    }
    for place in 0..streams.open.len() {
        while streams.read(place, 1000) > 0 {}
        assert_eq!(streams.open[place].next, streams.inserted, "it has been told all");
    }
    assert!(streams.open.len() > 3 && told > 300, "{} streams, {told} events", streams.open.len());
}
