//! The block of users' writes that `setUserWriteBlockMode` sets. It is kept across restarts.
//!
//! An operation reads the block when it begins, or with its first write, and the catalog refuses its writes. The block
//! does not apply to users who may bypass it, nor to the server's own work.

use crate::stored::find_stored;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Catalog;
use std::sync::atomic::{AtomicU8, Ordering};

/// The database and collection that keep the block, as in MongoDB: one document, as long as the block is on.
pub const DATABASE: &str = "config";
/// See [`DATABASE`].
pub const COLLECTION: &str = "user_writes_critical_sections";
/// The `_id` of the document, which applies to all collections.
pub const ID: &str = "";
const BLOCKS: &str = "blockUserWrites";
const REASON: &str = "userWritesBlockReason";

/// Why writes are blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The client gave no reason.
    Unspecified,
    /// The data are being migrated to another cluster.
    ClusterToClusterMigrationInProgress,
    /// The disk is nearly full.
    DiskUseThresholdExceeded,
}

impl Reason {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Unspecified, "Unspecified"),
        (Self::ClusterToClusterMigrationInProgress, "ClusterToClusterMigrationInProgress"),
        (Self::DiskUseThresholdExceeded, "DiskUseThresholdExceeded"),
    ];

    /// The reason of that name; `None` if there is none.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, other)| *other == name).map(|(reason, _)| reason)
    }

    fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The number that `serverStatus` shows.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The document that is stored while writes are blocked for this reason.
    pub fn to_document(self) -> DocumentBuf {
        DocumentBuf::new()
            .with("_id", ID)
            .with(BLOCKS, true)
            .with("blockNewUserShardedDDL", false)
            .with(REASON, self.name())
    }
}

/// Whether writes of users are blocked, and why.
#[derive(Debug, Default)]
pub struct UserWriteBlock {
    /// 0 if writes are not blocked, else the reason's number plus one.
    state: AtomicU8,
}

impl UserWriteBlock {
    /// The stored block. A document without a known reason counts as `Unspecified`.
    pub fn kept(catalog: &Catalog) -> Self {
        let block = Self::default();
        // If this document cannot be read, no command can read anything either, so the failure is ignored here.
        let kept = find_stored(catalog, DATABASE, COLLECTION, ID).ok().flatten();
        block.set(kept.as_ref().and_then(|kept| reason_of(kept.as_ref())));
        block
    }

    /// Why writes are blocked; `None` if they are not.
    pub fn reason(&self) -> Option<Reason> {
        let place = usize::from(self.state.load(Ordering::SeqCst)).checked_sub(1)?;
        Reason::ALL.get(place).map(|(reason, _)| *reason)
    }

    /// Blocks the writes of operations that begin from now on; `None` ends the block.
    pub fn set(&self, reason: Option<Reason>) {
        self.state.store(reason.map_or(0, |reason| reason as u8 + 1), Ordering::SeqCst);
    }
}

fn reason_of(kept: DocumentRef<'_>) -> Option<Reason> {
    if !matches!(kept.get(BLOCKS), Some(ValueRef::Boolean(true))) {
        return None;
    }
    let named = kept.get(REASON).and_then(ValueRef::as_str).and_then(Reason::of);
    Some(named.unwrap_or(Reason::Unspecified))
}
