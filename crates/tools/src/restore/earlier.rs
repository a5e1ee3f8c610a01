//! Namespaces that an earlier run restored in part.

/// Progress of earlier runs with one namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Earlier {
    /// The collection was dropped, if the options ask for that, and created: neither step is repeated.
    pub(super) is_prepared: bool,
    /// Number of bytes of documents that are done.
    pub(super) done_bytes: u64,
    /// The namespace's indexes are built.
    pub(super) is_indexed: bool,
}
