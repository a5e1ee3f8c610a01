//! The parts of the server that stages use besides their collection.

use crate::service::{Facts, Service};
use bunko_catalog::Catalog;
use bunko_observe::Counters;
use bunko_operation::OperationContext;
use bunko_oplog::EntryCount;
use bunko_session::sessions::SessionTable;
use bunko_store::Clock;
use std::sync::Arc;

/// Held by pipelines, whose cursors outlive the command.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub catalog: Arc<Catalog>,
    pub sessions: Arc<SessionTable>,
    pub counters: Arc<Counters>,
    pub entry_count: Arc<EntryCount>,
    pub clock: Clock,
    pub facts: Arc<Facts>,
    /// The operation that the documents are made for.
    pub operation: Arc<OperationContext>,
    /// When the service began, in milliseconds since 1970.
    pub started_at_ms: i64,
}

impl Surroundings {
    pub(crate) fn of(service: &Service, operation: &Arc<OperationContext>) -> Self {
        Self {
            catalog: Arc::clone(&service.catalog),
            sessions: Arc::clone(&service.sessions),
            counters: Arc::clone(&service.counters),
            entry_count: Arc::clone(&service.entry_count),
            clock: service.world.clock.clone(),
            facts: Arc::clone(&service.facts),
            operation: Arc::clone(operation),
            started_at_ms: service.started_at_ms,
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms() as i64
    }
}
