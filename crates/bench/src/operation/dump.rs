//! Dumps all collections.

use super::transfer::check_parallel_collections;
use super::{CompressionSetting, Effect, Form, Moves, Operation, Transfer};
use bunko_dataset::Dataset;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Settings of the operation `dump`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Dump {
    /// Compression of the dump.
    pub compression: CompressionSetting,
    /// Files of the dump.
    pub form: Form,
    /// Maximum number of collections that are read at the same time.
    pub parallel_collections: NonZeroUsize,
}

impl Default for Dump {
    fn default() -> Self {
        Self {
            compression: CompressionSetting::default(),
            form: Form::default(),
            parallel_collections: NonZeroUsize::new(4).expect("four is not zero"),
        }
    }
}

impl Operation for Dump {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Reads]
    }

    fn moves(&self) -> Moves {
        Moves::WholeDocuments
    }

    fn check(&self, _dataset: &Dataset) -> Result<(), String> {
        check_parallel_collections(self.parallel_collections)
    }

    fn transfer(&self) -> Option<Transfer<'_>> {
        Some(Transfer::Dump(self))
    }
}
