//! Compactions leave dropped keyspaces behind, and take their time.
//!
//! A drop removes the tables that hold nothing else at once; what shares a table with a keyspace that is there goes when
//! that table is merged the next time.

use crate::accounts::Accounts;
use crate::backlog::{Backlog, PacedWork};
use crate::key::KEYSPACE_BYTES;
use bunko_store::KeyspaceId;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};
use rustc_hash::FxHashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Makes a filter for each compaction.
pub(crate) struct WithoutDropped {
    accounts: AssertUnwindSafe<Arc<Accounts>>,
    backlog: Arc<Backlog>,
}

impl WithoutDropped {
    pub fn new(accounts: &Arc<Accounts>, backlog: &Arc<Backlog>) -> Arc<Self> {
        Arc::new(Self { accounts: AssertUnwindSafe(Arc::clone(accounts)), backlog: Arc::clone(backlog) })
    }
}

impl Factory for WithoutDropped {
    fn name(&self) -> &'static str {
        "without dropped keyspaces"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        let work = self.backlog.begin(None);
        Box::new(Filter { needed: self.accounts.needed_keyspaces(), last: None, work })
    }
}

struct Filter {
    needed: FxHashSet<KeyspaceId>,
    /// Neighbours are mostly of one keyspace.
    last: Option<(KeyspaceId, bool)>,
    work: PacedWork,
}

impl Filter {
    fn is_needed(&mut self, keyspace: KeyspaceId) -> bool {
        match self.last {
            Some((last, is_needed)) if last == keyspace => is_needed,
            _ => {
                let is_needed = self.needed.contains(&keyspace);
                self.last = Some((keyspace, is_needed));
                is_needed
            }
        }
    }
}

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        self.work.did(1);
        let Some(prefix) = item.key().first_chunk::<KEYSPACE_BYTES>() else { return Ok(Verdict::Keep) };
        // Ids are never used again, so nobody asks for what an older table may still have of it.
        let is_needed = self.is_needed(KeyspaceId(u32::from_be_bytes(*prefix)));
        Ok(if is_needed { Verdict::Keep } else { Verdict::Destroy })
    }
}
