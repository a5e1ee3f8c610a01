//! Counters for `serverStatus` and `top`.
//!
//! **Invariant:** counting usually never waits for another thread. Each thread has its own shard while there are no
//! more threads than shards, and only a report visits all of them. A single counter, even a relaxed atomic, would move
//! its cache line from core to core with every operation.

use crate::class_latency::{ClassLatency, Latency};
use crate::namespace_usage::{NamespaceUsage, Usage};
use bunko_errors::ErrorCode;
use bunko_operation::Examined;
use bunko_request::counted_as::{Opcounter, OperationClass};
use bunko_request::facts::CommandFacts;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// More shards than the measured machines have worker threads. A shard takes a few hundred bytes.
const SHARDS: usize = 32;

/// Runs of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandRuns {
    /// All runs.
    pub total: u64,
    /// Runs that failed.
    pub failed: u64,
}

/// `opcounters`. Writes count per statement, as in MongoDB, whether sent alone or in a batch.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct OperationCounts {
    pub inserts: u64,
    pub queries: u64,
    pub updates: u64,
    pub deletes: u64,
    pub get_mores: u64,
    pub commands: u64,
}

/// `metrics.document`.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct DocumentCounts {
    /// Index keys and documents that were examined.
    pub keys_examined: u64,
    pub examined: u64,
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
    pub returned: u64,
}

/// `network`.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct NetworkCounts {
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub requests: u64,
}

/// `connections`.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct ConnectionCounts {
    pub current: u64,
    pub total_created: u64,
}

/// The counts of one shard, or the sum over all.
#[derive(Debug, Default)]
pub struct Tally {
    /// `opcounters`.
    pub operations: OperationCounts,
    /// `metrics.document`.
    pub documents: DocumentCounts,
    /// `network`.
    pub network: NetworkCounts,
    /// By class, as numbered by [`OperationClass::index`].
    pub latencies: [ClassLatency; OperationClass::COUNT],
    /// Runs of each command, by its name.
    pub commands: FxHashMap<&'static str, CommandRuns>,
    /// Requests whose command does not exist.
    pub unknown_commands: u64,
    /// Commands that failed or were refused.
    pub user_asserts: u64,
    /// Use of each collection.
    pub namespaces: NamespaceUsage,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<Tally>);

/// The supported TLS versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// Counters since the start.
#[derive(Debug)]
pub struct Counters {
    shards: Box<[Shard]>,
    connections_current: AtomicU64,
    connections_created: AtomicU64,
    tls_1_2: AtomicU64,
    tls_1_3: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            connections_current: AtomicU64::new(0),
            connections_created: AtomicU64::new(0),
            tls_1_2: AtomicU64::new(0),
            tls_1_3: AtomicU64::new(0),
        }
    }
}

/// The number of the running thread's shard.
fn own_shard() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: usize = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    SHARD.with(|shard| *shard)
}

impl Counters {
    fn own(&self) -> MutexGuard<'_, Tally> {
        self.shards[own_shard()].0.lock()
    }

    /// Counts an insert of `operations` documents, of which `inserted` succeeded.
    pub fn note_inserts(&self, operations: u64, inserted: u64) {
        let mut tally = self.own();
        tally.operations.inserts += operations;
        tally.documents.inserted += inserted;
    }

    /// Counts update statements, and the documents that they changed.
    pub fn note_updates(&self, operations: u64, updated: u64) {
        let mut tally = self.own();
        tally.operations.updates += operations;
        tally.documents.updated += updated;
    }

    /// Counts delete statements, and the documents that they deleted.
    pub fn note_deletes(&self, operations: u64, deleted: u64) {
        let mut tally = self.own();
        tally.operations.deletes += operations;
        tally.documents.deleted += deleted;
    }

    /// Counts the documents of a batch sent to a client.
    pub fn note_returned(&self, documents: u64) {
        self.own().documents.returned += documents;
    }

    /// Counts messages read and written; sizes in bytes, headers included.
    pub fn note_network(&self, in_bytes: u64, out_bytes: u64, requests: u64) {
        let network = &mut self.own().network;
        network.bytes_in += in_bytes;
        network.bytes_out += out_bytes;
        network.requests += requests;
    }

    /// Counts a new connection.
    pub fn connection_opened(&self) {
        self.connections_current.fetch_add(1, Ordering::Relaxed);
        self.connections_created.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a connection.
    pub fn connection_closed(&self) {
        self.connections_current.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a connection with that TLS version.
    pub fn note_tls(&self, version: TlsVersion) {
        self.tls(version).fetch_add(1, Ordering::Relaxed);
    }

    /// Number of connections with that TLS version since the start.
    pub fn tls(&self, version: TlsVersion) -> &AtomicU64 {
        match version {
            TlsVersion::V1_2 => &self.tls_1_2,
            TlsVersion::V1_3 => &self.tls_1_3,
        }
    }

    /// Counts a command that ended, successfully or not.
    pub fn note_command(
        &self,
        command: &CommandFacts,
        namespace: Option<(&str, &str)>,
        elapsed: Duration,
        examined: Examined,
        failure: Option<ErrorCode>,
    ) {
        let class = command.class;
        let latency = Latency { micros: elapsed.as_micros() as u64, operations: 1 };
        let mut tally = self.own();
        match command.opcounter {
            Opcounter::Query => tally.operations.queries += 1,
            Opcounter::GetMore => tally.operations.get_mores += 1,
            Opcounter::ByStatement => {}
            Opcounter::Command => tally.operations.commands += 1,
        }
        let runs = tally.commands.entry(command.name).or_default();
        runs.total += 1;
        runs.failed += u64::from(failure.is_some());
        tally.user_asserts += u64::from(failure.is_some());
        tally.latencies[class.index()].note(latency);
        tally.documents.keys_examined += examined.keys;
        tally.documents.examined += examined.documents;
        if let Some((database, collection)) = namespace {
            tally.namespaces.note(database, collection, command.usage, class, latency);
        }
    }

    /// Drops the counts of a collection, or of a whole database.
    pub fn forget_namespace(&self, database: &str, collection: Option<&str>) {
        self.shards.iter().for_each(|shard| shard.0.lock().namespaces.forget(database, collection));
    }

    /// Counts a command that was refused before it ran.
    pub fn note_refused(&self, name: Option<&'static str>) {
        let mut tally = self.own();
        tally.user_asserts += 1;
        match name {
            Some(name) => {
                let runs = tally.commands.entry(name).or_default();
                runs.total += 1;
                runs.failed += 1;
            }
            None => tally.unknown_commands += 1,
        }
    }

    /// Connections now and since the start.
    pub fn connections(&self) -> ConnectionCounts {
        ConnectionCounts {
            current: self.connections_current.load(Ordering::Relaxed),
            total_created: self.connections_created.load(Ordering::Relaxed),
        }
    }

    /// The sum of all threads' counts, without the namespaces.
    pub fn totals(&self) -> Tally {
        let mut sum = Tally::default();
        for shard in &self.shards {
            sum.add(&shard.0.lock());
        }
        sum
    }

    /// The usage of each namespace, for `top`.
    pub fn namespaces(&self) -> BTreeMap<String, Usage> {
        let mut sum = BTreeMap::new();
        for shard in &self.shards {
            shard.0.lock().namespaces.add_to(&mut sum);
        }
        sum
    }
}

impl Tally {
    fn add(&mut self, other: &Self) {
        let (sum, more) = (&mut self.operations, &other.operations);
        sum.inserts += more.inserts;
        sum.queries += more.queries;
        sum.updates += more.updates;
        sum.deletes += more.deletes;
        sum.get_mores += more.get_mores;
        sum.commands += more.commands;
        let (sum, more) = (&mut self.documents, &other.documents);
        sum.keys_examined += more.keys_examined;
        sum.examined += more.examined;
        sum.inserted += more.inserted;
        sum.updated += more.updated;
        sum.deleted += more.deleted;
        sum.returned += more.returned;
        let (sum, more) = (&mut self.network, &other.network);
        sum.bytes_in += more.bytes_in;
        sum.bytes_out += more.bytes_out;
        sum.requests += more.requests;
        for (sum, more) in self.latencies.iter_mut().zip(&other.latencies) {
            sum.add(more);
        }
        for (name, more) in &other.commands {
            let sum = self.commands.entry(name).or_default();
            sum.total += more.total;
            sum.failed += more.failed;
        }
        self.unknown_commands += other.unknown_commands;
        self.user_asserts += other.user_asserts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Commands that are counted as the server counts `insert` and `ping`.
    const INSERT: CommandFacts = CommandFacts {
        name: "insert",
        class: OperationClass::Write,
        opcounter: Opcounter::ByStatement,
        ..CommandFacts::PLAIN
    };
    const PING: CommandFacts = CommandFacts { name: "ping", ..CommandFacts::PLAIN };

    #[test]
    fn threads_add_up() {
        const NOTHING: Examined = Examined { keys: 0, documents: 0 };
        let counters = Arc::new(Counters::default());
        let threads: Vec<_> = (0..SHARDS + 3)
            .map(|_| {
                let counters = Arc::clone(&counters);
                std::thread::spawn(move || {
                    counters.note_inserts(3, 2);
                    counters.note_command(&INSERT, Some(("test", "c")), Duration::from_micros(7), NOTHING, None);
                    counters.note_command(&PING, None, Duration::ZERO, NOTHING, Some(ErrorCode::BAD_VALUE));
                    counters.note_refused(None);
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("counted");
        }
        let threads = (SHARDS + 3) as u64;
        let totals = counters.totals();
        assert_eq!(totals.operations.inserts, 3 * threads);
        assert_eq!(totals.documents.inserted, 2 * threads);
        assert_eq!(totals.operations.commands, threads);
        assert_eq!(totals.commands["ping"], CommandRuns { total: threads, failed: threads });
        assert_eq!(totals.commands["insert"], CommandRuns { total: threads, failed: 0 });
        assert_eq!(totals.unknown_commands, threads);
        assert_eq!(totals.user_asserts, 2 * threads);
        let write = totals.latencies[OperationClass::Write.index()].sum();
        assert_eq!(write, Latency { micros: 7 * threads, operations: threads });
        assert_eq!(counters.namespaces()["test.c"].total(), write);
    }

    #[test]
    fn connections_come_and_go() {
        let counters = Counters::default();
        counters.connection_opened();
        counters.connection_opened();
        counters.connection_closed();
        let counts = counters.connections();
        assert_eq!((counts.current, counts.total_created), (1, 2));
    }
}
