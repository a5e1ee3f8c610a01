//! LMDB's description of a tree.

use crate::page::{KeyOrder, u64_at};

/// LMDB's flag for keys that are numbers.
const INTEGER_KEYS: u16 = 8;
/// Maximum depth of a tree, which LMDB itself imposes.
const DEPTH_MAX: u16 = 32;

/// A tree's root and size; one for each keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Page of the root; without meaning in an empty tree.
    pub root: u64,
    /// Number of levels, with the leaves; zero in an empty tree.
    pub depth: u16,
    pub order: KeyOrder,
    pub branch_pages: u64,
    pub leaf_pages: u64,
    pub overflow_pages: u64,
}

impl Tree {
    /// Size in the data file in bytes.
    pub const ENCODED_BYTES: usize = 48;

    /// Reads LMDB's encoding; `None` if LMDB cannot have written it.
    /// Source: `MDB_db` in LMDB 0.9 (`mdb.c`).
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::ENCODED_BYTES] = bytes.try_into().ok()?;
        let at = |at| u64_at(bytes, at).expect("within 48 bytes");
        let short = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let depth = Some(short(6)).filter(|depth| *depth <= DEPTH_MAX)?;
        Some(Self {
            root: at(40),
            depth,
            order: if short(4) & INTEGER_KEYS == 0 { KeyOrder::Bytes } else { KeyOrder::Numbers },
            branch_pages: at(8),
            leaf_pages: at(16),
            overflow_pages: at(24),
        })
    }

    /// Number of all pages of the tree.
    pub fn pages(&self) -> u64 {
        self.branch_pages.saturating_add(self.leaf_pages).saturating_add(self.overflow_pages)
    }
}
