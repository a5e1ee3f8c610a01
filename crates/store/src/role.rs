//! The member's role, which every commit asks for while it holds the store's gate.
//!
//! ```text
//!   (Store::open)                               (Store::open_member)
//!        ▼                                                ▼
//!    Standalone ──begin_term──▶ Primary { term } ───▶ Secondary
//!                                      ▲    step_down     │
//!                                      └────begin_term────┘
//!                                 once all of the log is applied
//! ```
//! A standalone store becomes a primary's when its server is the only member of a set, which elects itself.
//!
//! Only a secondary takes records of another member, and applies them. A change to the primary excludes both.
//!
//! A change of role holds the chains' lock and the gate exclusively: no batch is in flight, and an open chain has ended
//! or was abandoned before.
//!
//! **Invariant:** a record is appended only in the role that its commit found under the gate.

use crate::planted::{self, Bug};
use crate::{Result, StorageError};
use std::sync::atomic::{AtomicU64, Ordering};

/// The role of a store, which decides whether it takes commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The store of a server outside a set: it takes writes, and has no term.
    Standalone,
    /// The store of a set's primary.
    Primary {
        /// The term in which it was elected, from 1.
        term: u64,
    },
    /// The store of a set's member that is not its primary: it refuses commits.
    Secondary,
}

/// The role, in a form that a commit reads with one load.
#[derive(Default)]
pub(crate) struct RoleCell(AtomicU64);

const STANDALONE: u64 = 0;
const SECONDARY: u64 = u64::MAX;

impl RoleCell {
    pub fn new(role: Role) -> Self {
        let cell = Self::default();
        cell.set(role);
        cell
    }

    pub fn get(&self) -> Role {
        match self.0.load(Ordering::Acquire) {
            STANDALONE => Role::Standalone,
            SECONDARY => Role::Secondary,
            term => Role::Primary { term },
        }
    }

    /// Called with the gate held exclusively.
    pub fn set(&self, role: Role) {
        let encoded = match role {
            Role::Standalone => STANDALONE,
            Role::Primary { term } => term,
            Role::Secondary => SECONDARY,
        };
        self.0.store(encoded, Ordering::Release);
    }

    /// Called with the gate or the chains' lock held, so that the answer stays true until the record is applied.
    ///
    /// # Errors
    /// [`StorageError::NotPrimary`]
    pub fn check(&self) -> Result<()> {
        // The lock orders this load.
        let is_secondary = self.0.load(Ordering::Relaxed) == SECONDARY;
        if is_secondary && !planted::active(Bug::SecondaryWrites) { Err(StorageError::NotPrimary) } else { Ok(()) }
    }
}
