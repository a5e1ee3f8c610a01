//! Namespaces that an earlier run restored in part.

/// Progress of earlier runs with one namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Earlier {
    /// It was dropped, if that was asked for, and created: neither is repeated.
    pub(super) is_prepared: bool,
    /// Number of bytes of documents that are done.
    pub(super) done_bytes: u64,
    /// Its indexes are built.
    pub(super) is_indexed: bool,
}
