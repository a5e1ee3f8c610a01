//! A client that changes the source while it is copied.

use crate::peer::Peer;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Kinds of changes that the client makes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// Documents.
    Documents,
    /// Documents, collections, views, indexes and options.
    Everything,
}

/// The client's thread.
pub struct Writer {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Writer {
    pub fn start(address: SocketAddr, writes: Writes) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut client = Client { peer: Peer::connect(address), seed: 7, turn: 0 };
            while !over.load(Ordering::Relaxed) {
                client.write_documents();
                if writes == Writes::Everything && client.turn.is_multiple_of(5) {
                    client.change_definitions();
                }
                client.turn += 1;
            }
            client.turn
        });
        Self { is_over, thread }
    }

    /// Stops, and returns the number of turns.
    pub fn stop(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("the writer does not panic")
    }
}

struct Client {
    peer: Peer,
    seed: u64,
    turn: u64,
}

impl Client {
    fn below(&mut self, limit: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % limit
    }

    /// Sends a command. Refusals, such as of a key that is taken, are part of the load.
    fn send(&mut self, text: &str) {
        drop(self.peer.run("shop", text));
    }

    /// Few `_id`s and few unique keys, so that both are used again and again, by other documents and in other types.
    fn write_documents(&mut self) {
        let (id, other, key, turn) = (self.below(60), self.below(60), self.below(40), self.turn);
        let id = match self.below(4) {
            0 => format!("NumberLong({id})"),
            1 => format!("{id}.0"),
            _ => format!("{id}"),
        };
        match self.below(8) {
            0..=2 => self.send(&format!("{{insert: 'orders', documents: [{{_id: {id}, u: {key}, n: {turn}}}]}}")),
            3 => self.send(&format!("{{delete: 'orders', deletes: [{{q: {{_id: {id}}}, limit: 1}}]}}")),
            4 => self.send(&format!(
                "{{update: 'orders', updates: [{{q: {{_id: {id}}}, u: {{$set: {{u: {key}, n: {turn}}}}}}}]}}"
            )),
            // Two documents swap their key, with a moment without it.
            5 => {
                for update in [
                    format!("{{q: {{_id: {id}}}, u: {{$unset: {{u: 1}}}}}}"),
                    format!("{{q: {{_id: {other}}}, u: {{$set: {{u: {key}}}}}}}"),
                    format!("{{q: {{_id: {id}}}, u: {{$set: {{u: {other}}}}}}}"),
                ] {
                    self.send(&format!("{{update: 'orders', updates: [{update}]}}"));
                }
            }
            6 => self.send(&format!(
                "{{update: 'orders', updates: [{{q: {{_id: {id}}}, u: {{u: {key}, list: [1, {{a: {turn}}}]}}, upsert: true}}]}}"
            )),
            _ => self.send(&format!(
                "{{update: 'large', updates: [{{q: {{_id: {}}}, u: [{{$set: {{turn: {turn}}}}}]}}]}}",
                turn * 37 % 20_000
            )),
        }
        let name = ["a", "A", "b", "B"][self.below(4) as usize];
        self.send(&format!("{{delete: 'names', deletes: [{{q: {{_id: '{name}'}}, limit: 1}}]}}"));
        self.send(&format!("{{insert: 'names', documents: [{{_id: '{name}', turn: {turn}}}]}}"));
        if turn % 10 == 0 {
            self.send(&format!(
                "{{insert: 'series', documents: [{{_id: {turn}, t: ISODate('2026-11-30T10:00:00Z'), m: {key}, n: {turn}}}]}}"
            ));
        }
    }

    fn change_definitions(&mut self) {
        let turn = self.turn;
        // Capped collections cannot be read as of a moment.
        self.send(&format!("{{insert: 'capped', documents: [{{_id: 'c{turn}', n: {turn}}}]}}"));
        self.send(&format!("{{update: 'types', updates: [{{q: {{}}, u: {{$set: {{turn: {turn}}}}}}}]}}"));
        match self.below(9) {
            0 => {
                self.send(&format!("{{insert: 'made', documents: [{{_id: {turn}}}, {{_id: 'fixed', turn: {turn}}}]}}"));
                self.peer.run("admin", "{renameCollection: 'shop.made', to: 'shop.swapped', dropTarget: true}");
                self.send(&format!("{{insert: 'made', documents: [{{_id: {turn}}}]}}"));
            }
            1 => self.send("{drop: 'made'}"),
            2 => self.send("{createIndexes: 'orders', indexes: [{key: {n: 1}, name: 'n'}]}"),
            3 => self.send("{dropIndexes: 'orders', index: 'n'}"),
            4 => self.send(&format!("{{collMod: 'strict', validator: {{n: {{$lt: {turn}}}}}}}")),
            5 => self.send(&format!("{{collMod: 'recent', viewOn: 'orders', pipeline: [{{$match: {{n: {turn}}}}}]}}")),
            6 => self.send("{collMod: 'large', index: {name: 'ttl', expireAfterSeconds: 3600}}"),
            7 => {
                self.send("{drop: 'volatile'}");
                self.send(&format!("{{create: 'volatile', capped: true, size: 4096, max: {}}}", 3 + turn % 5));
                self.send(&format!("{{insert: 'volatile', documents: [{{_id: {turn}}}, {{_id: -1}}]}}"));
            }
            _ => {
                self.send("{aggregate: 'orders', pipeline: [{$match: {n: {$gt: 0}}}, {$out: 'out'}], cursor: {}}");
            }
        }
    }
}
