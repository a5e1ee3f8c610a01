//! One committed state of the data file.

mod tree_walk;

pub(crate) use tree_walk::TreeWalk;

use crate::data_file::{DataFile, STATE_NAME, parse_state};
use crate::meta::{META_BYTES, Meta, noted};
use crate::page::{self, HEADER_BYTES, KeyOrder, Kind, Page, Parsed, Slot, Value};
use crate::stored::{self, Content};
use crate::tree::Tree;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_store::{Direction, KeyspaceId, Lsn, Result, StorageError};
use heed::{RoTxn, WithoutTls};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Flags of finished checks, two bits for each page.
const LAYOUT: u64 = 1;
const ENTRIES: u64 = 2;

/// All trees after one commit. Their pages stay unchanged while this `Committed` exists.
pub(crate) struct Committed {
    pub file: Arc<DataFile>,
    /// Keeps LMDB from reusing the pages. The transaction is never used; the mutex only makes it `Sync`.
    _pin: Mutex<RoTxn<'static, WithoutTls>>,
    pub meta: Meta,
    /// All log records below this position have been applied.
    pub watermark: Lsn,
    /// The page that holds the watermark.
    pub state_page: u64,
    /// End of the readable pages, in bytes.
    end_bytes: u64,
    pub trees: FxHashMap<KeyspaceId, Tree>,
    /// Pages that have been checked since this state was committed; two bits each.
    checked: Vec<AtomicU64>,
}

/// An entry of a leaf.
pub(crate) struct Entry<'c> {
    pub key: &'c [u8],
    pub value: &'c [u8],
    /// Offset in the data file, in bytes.
    pub offset_bytes: u64,
    pub is_tree: bool,
}

impl Committed {
    /// The last commit. No thread may be writing.
    pub fn last(file: &Arc<DataFile>) -> Result<Self> {
        let pin = file.env.clone().static_read_txn().map_err(|error| file.error(error))?;
        let length_bytes = file.length_bytes()?;
        let meta_offset = (pin.id() as u64 % 2) * file.page_bytes as u64;
        let meta =
            file.bytes(meta_offset, META_BYTES, length_bytes).and_then(|bytes| Meta::parse(bytes.first_chunk()?));
        let meta = meta.filter(|meta| meta.transaction == pin.id() as u64);
        let meta = meta.ok_or_else(|| file.corrupt(meta_offset, "the meta page of another commit"))?;
        // The last pages may be free and never written, so the file may end before them.
        let end_bytes = meta.pages.saturating_mul(file.page_bytes as u64).min(length_bytes);
        let words = (end_bytes / file.page_bytes as u64).div_ceil(32) as usize;
        let mut committed = Self {
            file: Arc::clone(file),
            _pin: Mutex::new(pin),
            meta,
            watermark: Lsn(0),
            state_page: 0,
            end_bytes,
            trees: FxHashMap::default(),
            checked: std::iter::repeat_with(AtomicU64::default).take(words).collect(),
        };
        committed.read_main()?;
        Ok(committed)
    }

    /// Reads the names and roots of all trees, and the watermark.
    fn read_main(&mut self) -> Result<()> {
        let mut state = None;
        let mut trees = FxHashMap::default();
        let mut walk = TreeWalk::new(self.meta.main, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
        while let Some(slot) = walk.next(self)? {
            let entry = self.entry(slot)?;
            let damaged = || self.file.corrupt(entry.offset_bytes, "an entry that is not a keyspace");
            if entry.key == STATE_NAME {
                state = parse_state(entry.value).map(|watermark| (watermark, slot.page));
            } else {
                let keyspace = keyspace_of(entry.key).filter(|_| entry.is_tree).ok_or_else(damaged)?;
                let tree = Tree::parse(entry.value).ok_or_else(damaged)?;
                if tree.depth > 0 {
                    trees.insert(keyspace, tree);
                }
            }
        }
        (self.watermark, self.state_page) = state.ok_or_else(|| self.file.corrupt(0, "holds no state"))?;
        self.trees = trees;
        Ok(())
    }

    /// This state's note for the manifest. The next start compares the state with it, because LMDB stores the roots of
    /// trees without a checksum.
    pub fn note(&self) -> Result<DocumentBuf> {
        let mut note = self.meta.note(self.file.length_bytes()?);
        note.append("watermark", self.watermark.0 as i64).append("treesChecksum", i64::from(self.trees_checksum()));
        Ok(note)
    }

    /// Compares the state with a note. The state may be newer, because the log then replays changes that it already
    /// contains.
    pub fn check_note(&self, note: DocumentRef<'_>) -> Result<()> {
        let found = if noted(note, "watermark").is_some_and(|watermark| self.watermark.0 < watermark) {
            "an older state than the manifest names"
        } else if noted(note, "transaction") == Some(self.meta.transaction)
            && noted(note, "treesChecksum") != Some(u64::from(self.trees_checksum()))
        {
            "trees that begin elsewhere than the manifest says"
        } else {
            return Ok(());
        };
        Err(self.file.corrupt(0, found))
    }

    fn trees_checksum(&self) -> u32 {
        let mut trees: Vec<_> = self.trees.iter().map(|(keyspace, tree)| (keyspace.0, tree)).collect();
        trees.sort_unstable_by_key(|(keyspace, _)| *keyspace);
        trees.into_iter().fold(0, |checksum, (keyspace, tree)| {
            let numbers = [tree.root, u64::from(tree.depth), tree.branch_pages, tree.leaf_pages, tree.overflow_pages];
            let checksum = bunko_checksum::crc32c_append(checksum, &keyspace.to_le_bytes());
            numbers
                .iter()
                .fold(checksum, |checksum, number| bunko_checksum::crc32c_append(checksum, &number.to_le_bytes()))
        })
    }

    fn offset_of(&self, page: u64) -> u64 {
        page.saturating_mul(self.file.page_bytes as u64)
    }

    fn damaged(&self, page: u64, found: &str) -> StorageError {
        self.file.corrupt(self.offset_of(page), found)
    }

    fn page_bytes(&self, page: u64) -> Result<&[u8]> {
        let bytes = self.file.bytes(self.offset_of(page), self.file.page_bytes, self.end_bytes);
        bytes.ok_or_else(|| self.damaged(page, "a page beyond the end of the file"))
    }

    /// A page; only its header is checked.
    pub fn page(&self, page: u64, kind: Kind) -> Result<Page<'_>> {
        Page::parse(self.page_bytes(page)?, page, kind).map_err(|found| self.damaged(page, found))
    }

    /// A page whose layout has been checked: it is complete and in order.
    pub fn checked_page(&self, page: u64, kind: Kind, order: KeyOrder) -> Result<Page<'_>> {
        let found = self.page(page, kind)?;
        self.check_once(page, LAYOUT, || found.check_layout(order).map_err(|found| self.damaged(page, found)))?;
        Ok(found)
    }

    /// Runs a check of a page, unless that check was done before.
    fn check_once(&self, page: u64, what: u64, check: impl FnOnce() -> Result<()>) -> Result<()> {
        // A page beyond the end was refused before this call.
        let Some(word) = self.checked.get((page / 32) as usize) else { return check() };
        let bit = what << (2 * (page % 32));
        if word.load(Ordering::Relaxed) & bit == 0 {
            check()?;
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A value read from a parsed page, or the error for damage there.
    pub fn read<T>(&self, page: u64, parsed: Parsed<T>) -> Result<T> {
        parsed.map_err(|found| self.damaged(page, found))
    }

    /// The entry in a slot.
    pub fn entry(&self, slot: Slot) -> Result<Entry<'_>> {
        let leaf = self.page(slot.page, Kind::Leaf)?;
        self.entry_of(leaf, slot)
    }

    fn entry_of<'c>(&'c self, leaf: Page<'c>, slot: Slot) -> Result<Entry<'c>> {
        let node = self.read(slot.page, leaf.node(slot.index))?;
        let (value, offset_bytes) = match node.value {
            Value::Inline(value) => (value, self.offset_of(slot.page) + node.at as u64),
            Value::Overflow { page, length } => (self.overflow(page, length)?, self.offset_of(page)),
        };
        Ok(Entry { key: node.key, value, offset_bytes, is_tree: node.is_tree })
    }

    fn overflow(&self, page: u64, length: usize) -> Result<&[u8]> {
        let pages = (HEADER_BYTES + length).div_ceil(self.file.page_bytes);
        self.read(page, page::check_overflow(self.page_bytes(page)?, page, pages))?;
        let value = self.file.bytes(self.offset_of(page) + HEADER_BYTES as u64, length, self.end_bytes);
        value.ok_or_else(|| self.damaged(page, "a value beyond the end of the file"))
    }

    /// Finds a tree's key; `None` only if it is certainly absent.
    pub fn get(&self, keyspace: KeyspaceId, content: Content, key: &[u8]) -> Result<Option<Entry<'_>>> {
        let Some(tree) = self.trees.get(&keyspace) else { return Ok(None) };
        let mut page = tree.root;
        for _ in 1..tree.depth {
            let branch = self.page(page, Kind::Branch)?;
            page = self.read(page, branch.child_of(key).and_then(|index| branch.child(index)))?;
        }
        let leaf = self.page(page, Kind::Leaf)?;
        match self.read(page, leaf.search(key))? {
            Ok(index) => self.entry_of(leaf, Slot { page, index }).map(Some),
            Err(_) => self.confirm_absent(keyspace, *tree, content, key).map(|()| None),
        }
    }

    /// Checks the pages from the root to a key, before LMDB visits them: LMDB trusts all pages.
    pub fn check_way(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        let Some(tree) = self.trees.get(&keyspace) else { return Ok(()) };
        let mut page = tree.root;
        for _ in 1..tree.depth {
            let branch = self.checked_page(page, Kind::Branch, tree.order)?;
            page = self.read(page, branch.child_of(key).and_then(|index| branch.child(index)))?;
        }
        let leaf = self.checked_page(page, Kind::Leaf, tree.order)?;
        match self.read(page, leaf.search(key))? {
            Ok(index) => self.entry_of(leaf, Slot { page, index }).map(drop),
            Err(_) => Ok(()),
        }
    }

    /// Makes sure that a key is absent and not hidden by damage: all pages on the way are complete and in order, all
    /// entries of the leaf are intact, and the entries before and after the gap are on their own side of the key.
    fn confirm_absent(&self, keyspace: KeyspaceId, tree: Tree, content: Content, key: &[u8]) -> Result<()> {
        for direction in [Direction::Forward, Direction::Backward] {
            let range = match direction {
                Direction::Forward => (Bound::Included(key.to_vec()), Bound::Unbounded),
                Direction::Backward => (Bound::Unbounded, Bound::Included(key.to_vec())),
            };
            let Some(slot) = TreeWalk::new(tree, range, direction).next(self)? else { continue };
            let leaf = self.checked_page(slot.page, Kind::Leaf, tree.order)?;
            self.check_once(slot.page, ENTRIES, || self.check_entries(keyspace, content, slot.page, leaf))?;
            let neighbour = self.read(slot.page, leaf.key(slot.index))?;
            let is_beyond = match direction {
                Direction::Forward => neighbour > key,
                Direction::Backward => neighbour < key,
            };
            if !is_beyond {
                return Err(self.damaged(slot.page, "a key where no search finds it"));
            }
        }
        Ok(())
    }

    fn check_entries(&self, keyspace: KeyspaceId, content: Content, page: u64, leaf: Page<'_>) -> Result<()> {
        for index in 0..leaf.len() {
            let entry = self.entry_of(leaf, Slot { page, index })?;
            stored::check(keyspace, content, entry.key, entry.value)
                .map_err(|found| self.file.corrupt(entry.offset_bytes, found))?;
        }
        Ok(())
    }
}

/// The keyspace of the tree with that name; `None` if no keyspace's tree has such a name.
fn keyspace_of(name: &[u8]) -> Option<KeyspaceId> {
    let name = std::str::from_utf8(name).ok().filter(|name| name.len() == 8)?;
    u32::from_str_radix(name, 16).ok().map(KeyspaceId)
}

/// The name of a keyspace's tree.
pub(crate) fn name_of(keyspace: KeyspaceId) -> String {
    format!("{:08x}", keyspace.0)
}
