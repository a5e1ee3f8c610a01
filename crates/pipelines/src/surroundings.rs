//! The parts of the server that stages use besides their collection.

use bunko_catalog::Catalog;
use bunko_observe::Counters;
use bunko_operation::OperationContext;
use bunko_oplog::EntryCount;
use bunko_session::sessions::SessionTable;
use bunko_store::Clock;
use std::sync::Arc;

/// The parts of the server that a pipeline holds: its cursor may outlive the command.
#[derive(Clone)]
pub struct Surroundings {
    /// Databases, collections, indexes.
    pub catalog: Arc<Catalog>,
    /// The sessions of clients.
    pub sessions: Arc<SessionTable>,
    /// Counters of operations.
    pub counters: Arc<Counters>,
    /// Counter of oplog entries.
    pub entry_count: Arc<EntryCount>,
    /// The server's clock.
    pub clock: Clock,
    /// `host:port` as clients name this server.
    pub host: Arc<str>,
    /// The operation that the documents are made for.
    pub operation: Arc<OperationContext>,
    /// When the service began, in milliseconds since 1970.
    pub started_at_ms: i64,
}

impl Surroundings {
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms() as i64
    }
}
