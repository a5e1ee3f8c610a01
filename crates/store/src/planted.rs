//! Bugs that are planted on purpose, to see that the test suites which guard a promise fail.
//!
//! Compiled in only with debug assertions, so no release build has them; the environment variable `BUNKO_PLANTED_BUG`
//! chooses one.
//!
//! `tests/planted/run` plants one at a time, and demands that the suite which guards the promise fails.

/// A promise that can be broken on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Acknowledge a write whose record is not in the kernel.
    AckBeforeAppend,
    /// Report durability without fdatasync.
    NoFdatasync,
    /// Rename files into the log, and the manifest, without a sync of the directory.
    NoDirectorySync,
    /// Remove a segment before the extent that took its documents is durable and named by the manifest.
    SegmentBeforeExtent,
    /// Write a checkpoint's manifest before the engines have flushed the data that it calls durable.
    ManifestBeforeFlush,
    /// Treat a failed write to the log as a success.
    FailedWriteIgnored,
    /// Offer a retired segment for reuse before its file has the name under which it is looked for.
    OfferedBeforeRename,
    /// Let every logged-in user run one command, whatever its entry declares.
    CheckLeftOut,
    /// Let a transaction change a document that another writer has changed since its snapshot, or is changing.
    LostUpdate,
    /// Keep the changes of an aborted transaction.
    DirtyRead,
    /// Make the changes of a commit visible one after the other.
    TornCommit,
    /// Replay the records of a chain whose last record is missing.
    UnfinishedChainCounts,
    /// Show a transaction's changes in the oplog before it is committed.
    EventBeforeCommit,
    /// Let an index build put keys of a record that has changed since they were derived.
    ChangedRecordBuilt,
    /// Let every write use the disk reserve.
    ReserveForAll,
    /// Let a secondary commit.
    SecondaryWrites,
    /// Show writes above the commit point to reads of what is committed.
    UncommittedRead,
    /// Give up segments above the commit point.
    UncommittedGivenUp,
    /// Begin a term in the second of the last record.
    TermInSameSecond,
    /// Let a secondary apply the record after the commit point too.
    AppliedBeyondCommit,
    /// Keep the types and arrays of an index that a secondary learns of from the log out of its plans.
    MultikeyNotAbsorbed,
    /// Let a secondary forget the record ids that it has seen.
    RecordIdNotAbsorbed,
    /// Change a byte of a shipped record, under a valid checksum.
    ShippedDiffers,
}

/// Whether that bug is chosen; always false in a build without debug assertions.
#[inline]
pub fn active(bug: Bug) -> bool {
    #[cfg(debug_assertions)]
    {
        use std::sync::OnceLock;
        static CHOSEN: OnceLock<Option<Bug>> = OnceLock::new();
        let chosen = CHOSEN.get_or_init(|| match std::env::var("BUNKO_PLANTED_BUG").as_deref() {
            Ok("ack_before_append") => Some(Bug::AckBeforeAppend),
            Ok("no_fdatasync") => Some(Bug::NoFdatasync),
            Ok("no_directory_sync") => Some(Bug::NoDirectorySync),
            Ok("segment_before_extent") => Some(Bug::SegmentBeforeExtent),
            Ok("manifest_before_flush") => Some(Bug::ManifestBeforeFlush),
            Ok("offered_before_rename") => Some(Bug::OfferedBeforeRename),
            Ok("check_left_out") => Some(Bug::CheckLeftOut),
            Ok("failed_write_ignored") => Some(Bug::FailedWriteIgnored),
            Ok("lost_update") => Some(Bug::LostUpdate),
            Ok("dirty_read") => Some(Bug::DirtyRead),
            Ok("torn_commit") => Some(Bug::TornCommit),
            Ok("unfinished_chain_counts") => Some(Bug::UnfinishedChainCounts),
            Ok("event_before_commit") => Some(Bug::EventBeforeCommit),
            Ok("changed_record_built") => Some(Bug::ChangedRecordBuilt),
            Ok("reserve_for_all") => Some(Bug::ReserveForAll),
            Ok("secondary_writes") => Some(Bug::SecondaryWrites),
            Ok("uncommitted_read") => Some(Bug::UncommittedRead),
            Ok("uncommitted_given_up") => Some(Bug::UncommittedGivenUp),
            Ok("term_in_same_second") => Some(Bug::TermInSameSecond),
            Ok("applied_beyond_commit") => Some(Bug::AppliedBeyondCommit),
            Ok("multikey_not_absorbed") => Some(Bug::MultikeyNotAbsorbed),
            Ok("record_id_not_absorbed") => Some(Bug::RecordIdNotAbsorbed),
            Ok("shipped_differs") => Some(Bug::ShippedDiffers),
            _ => None,
        });
        *chosen == Some(bug)
    }
    #[cfg(not(debug_assertions))]
    {
        let _ = bug;
        false
    }
}
