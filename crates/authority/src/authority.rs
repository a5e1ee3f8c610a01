//! The state that all connections share: access control, the audit log, and the sources that both read.

use crate::access_control::AccessControl;
use crate::audit::Audit;
use bunko_catalog::Catalog;
use bunko_store::Clock;
use std::sync::Arc;

/// A source of random bits.
type Source = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Users, roles, logins and the audit log of a server.
pub struct Authority {
    /// The state of access control.
    pub access: AccessControl,
    /// The audit log.
    pub audit: Audit,
    /// The databases, among them the one that keeps users and roles.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) clock: Clock,
    /// Random bits, for nonces, salts and UUIDs.
    pub(crate) random: Source,
}

impl Authority {
    /// An authority that does not check privileges yet, without an audit log.
    pub fn new(catalog: Arc<Catalog>, clock: Clock, random: Source) -> Self {
        Self { access: AccessControl::default(), audit: Audit::default(), catalog, clock, random }
    }
}
