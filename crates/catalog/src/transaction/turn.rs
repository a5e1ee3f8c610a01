//! Turns of statements that met another transaction's claim.
//!
//! The refused statement queues for the record or key that it met. When that is released, one statement is called, and
//! the next one only after the next release, because all others would be refused again. The first statement of a
//! transaction is attempted again when it is called. A later statement has failed already: only its reply waits, so
//! that the client's next attempt usually finds the record free.

use super::Transaction;
use super::owners::{Owned, rung};
use crate::Catalog;
use bunko_store::Bell;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// The obstacle that a statement met.
pub(super) enum Obstacle {
    /// A change that is already committed.
    Past,
    /// A record or key that another transaction owns.
    Owner(Owned),
}

/// How a waiting statement comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// The statement is tried again as soon as it is called. If it does not claim the record then, the next statement
    /// in the queue is called.
    AtOnce,
    /// The statement's transaction has failed; the client will probably begin it again and reach the statement again.
    /// Until then the next statement in the queue is not called, because otherwise both would fail again and again.
    Anew,
}

/// A place in the queue for one record or key. Dropping it gives the place up.
pub struct Turn {
    catalog: Arc<Catalog>,
    /// `None` if there is nothing to wait for.
    owned: Option<Owned>,
    comes_back: Return,
    until: Instant,
    bell: Arc<Bell>,
}

impl Turn {
    /// Rings when it is time to try again; has already rung if there is nothing to wait for.
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// When the wait ends at the latest.
    pub fn until(&self) -> Instant {
        self.until
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(owned) = &self.owned else { return };
        match self.comes_back {
            Return::AtOnce => self.catalog.owners.leave(owned, &self.bell),
            Return::Anew => self.catalog.owners.withdraw(owned, &self.bell),
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("owned", &self.owned).field("until", &self.until).finish_non_exhaustive()
    }
}

impl Transaction {
    /// After a `WriteConflict`: a turn at the record or key that the statement met, because a retry before that turn
    /// would fail again. `None` if no statement has met an obstacle since the last call.
    pub fn turn_after_obstacle(&self, comes_back: Return, until: Instant) -> Option<Turn> {
        let obstacle = self.obstacle.lock().take()?;
        let catalog = Arc::clone(&self.catalog);
        Some(match obstacle {
            Obstacle::Past => Turn { catalog, owned: None, comes_back, until, bell: rung() },
            Obstacle::Owner(owned) => {
                let bell = catalog.owners.queue(&owned, until);
                Turn { catalog, owned: Some(owned), comes_back, until, bell }
            }
        })
    }
}
