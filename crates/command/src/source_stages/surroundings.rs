//! What stages see of the server around a collection.

use crate::counters::Counters;
use crate::service::{Facts, Service};
use crate::sessions::SessionTable;
use bunko_catalog::Catalog;
use std::sync::Arc;

/// Kept by pipelines, whose cursors outlive the command.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub catalog: Arc<Catalog>,
    pub sessions: Arc<SessionTable>,
    pub counters: Arc<Counters>,
    pub clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub facts: Arc<Facts>,
    /// When the service began, in milliseconds since 1970.
    pub started_at_ms: i64,
}

impl Surroundings {
    pub(crate) fn of(service: &Service) -> Self {
        Self {
            catalog: Arc::clone(&service.catalog),
            sessions: Arc::clone(&service.sessions),
            counters: Arc::clone(&service.counters),
            clock: Arc::clone(&service.world.clock),
            facts: Arc::clone(&service.facts),
            started_at_ms: service.started_at_ms,
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        (self.clock)() as i64
    }
}
