//! Restores the last dump.

use super::transfer::check_parallel_collections;
use super::{ArchiveCache, BulkSetting, Effect, Moves, Operation, Transfer, Workers};
use bunko_dataset::Dataset;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Settings of the operation `restore`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Restore {
    /// Connections that insert into one collection.
    pub workers: Workers,
    /// Number of collections that are restored at the same time, each from a file of a directory. A number of workers
    /// is multiplied by it.
    pub parallel_collections: NonZeroUsize,
    /// Whether the server's own command for many documents is used.
    pub bulk: BulkSetting,
    /// State of the kernel's cache of the dump.
    pub archive_cache: ArchiveCache,
}

impl Default for Restore {
    fn default() -> Self {
        Self {
            workers: Workers::default(),
            parallel_collections: NonZeroUsize::new(4).expect("four is not zero"),
            bulk: BulkSetting::default(),
            archive_cache: ArchiveCache::default(),
        }
    }
}

impl Operation for Restore {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Restores]
    }

    fn moves(&self) -> Moves {
        Moves::WholeDocuments
    }

    fn check(&self, _dataset: &Dataset) -> Result<(), String> {
        check_parallel_collections(self.parallel_collections)
    }

    fn transfer(&self) -> Option<Transfer<'_>> {
        Some(Transfer::Restore(self))
    }
}
