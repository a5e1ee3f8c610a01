//! What the last stage of a pipeline writes.

use crate::{Merge, SourceName};
use std::sync::Arc;

/// A stage that writes; it stands last.
#[derive(Clone)]
pub enum WriteStage {
    /// `$out`, into that collection.
    Out(SourceName),
    /// `$merge`.
    Merge(Arc<Merge>),
}
