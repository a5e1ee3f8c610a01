//! What becomes of a statement that has met another transaction.

use super::Transaction;
use super::owners::{Owned, rung};
use crate::Catalog;
use bunko_store::Bell;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Who was in the way of a statement.
pub(super) enum Obstacle {
    /// Somebody who is through.
    Past,
    /// Whoever owns that.
    Owner(Owned),
}

/// How who waits for its turn comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// The statement is tried again as soon as it is called: whoever does not take it then leaves it to the next one.
    AtOnce,
    /// Its transaction has failed, and is likely to be begun anew and to come to that statement. Until then the next one is
    /// not called, or both would fail again and again.
    Anew,
}

/// A place in the queue of those who wait for the same. It is given up when this is dropped.
pub struct Turn {
    catalog: Arc<Catalog>,
    /// `None` where there is nothing to wait for.
    owned: Option<Owned>,
    comes_back: Return,
    until: Instant,
    bell: Arc<Bell>,
}

impl Turn {
    /// Rings, or has rung, once it is time to try again.
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// How long it waits at most.
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
    /// After a `WriteConflict`: a turn at what the statement was kept from. To try again before is in vain.
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
