//! Reads LMDB's pages in the data file, with every bound checked.
//!
//! Reads do not use LMDB's C code, because it trusts the pages: a flipped byte there could cause a read outside of the
//! map. Here it causes an error with an offset. Besides, a committed page is plain memory that any number of threads
//! may read, while LMDB needs a transaction for each thread.
//!
//! Source: `MDB_page` and `MDB_node` in LMDB 0.9 (`mdb.c`), data format version 1, 64-bit, native byte order.

use std::cmp::Ordering;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("page numbers are read as LMDB writes them on 64-bit machines");

/// Bytes before a page's nodes, or before the content of an overflow page.
pub(crate) const HEADER_BYTES: usize = 16;
const NODE_HEADER_BYTES: usize = 8;
const PAGE_NUMBER_BYTES: usize = 8;

/// Flag: the node's value is on overflow pages.
const BIG_VALUE: u16 = 1;
/// Flag: the node's value is the root of a tree.
const TREE: u16 = 2;

/// Kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Branch = 1,
    Leaf = 2,
    Overflow = 4,
}

/// Order of a tree's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyOrder {
    /// As bytes.
    Bytes,
    /// As numbers in the machine's byte order, in LMDB's tree of free pages.
    Numbers,
}

impl KeyOrder {
    pub fn compare(self, left: &[u8], right: &[u8]) -> Ordering {
        match self {
            Self::Bytes => left.cmp(right),
            Self::Numbers => u64_at(left, 0).cmp(&u64_at(right, 0)),
        }
    }
}

/// The parsed page, or a description of the damage.
pub(crate) type Parsed<T> = Result<T, &'static str>;

/// Place of an entry: page and index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub page: u64,
    /// Index in the page.
    pub index: usize,
}

/// A branch or leaf page.
#[derive(Clone, Copy)]
pub(crate) struct Page<'m> {
    bytes: &'m [u8],
    kind: Kind,
    len: usize,
    /// Offset of the nodes.
    upper: usize,
}

/// A leaf's value.
pub(crate) enum Value<'m> {
    /// Beside its key.
    Inline(&'m [u8]),
    /// On overflow pages.
    Overflow { page: u64, length: usize },
}

/// An entry of a leaf.
pub(crate) struct Node<'m> {
    pub key: &'m [u8],
    pub value: Value<'m>,
    /// Offset of the node in its page.
    pub at: usize,
    pub is_tree: bool,
}

/// Compares keys. The first eight bytes, as a number, decide nearly all comparisons of a search; comparing bytes would
/// be a call each time.
fn compare(left: &[u8], right: &[u8]) -> Ordering {
    match (left.first_chunk::<8>(), right.first_chunk::<8>()) {
        (Some(left), Some(right)) if left != right => u64::from_be_bytes(*left).cmp(&u64::from_be_bytes(*right)),
        _ => left.cmp(right),
    }
}

/// The number at an offset, which must be within `bytes`.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

/// Checks that the page has that number and kind. Returns how many pages an overflow value takes.
fn header(bytes: &[u8], number: u64, kind: Kind) -> Parsed<u32> {
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or("a page that is cut off")?;
    if u64_at(header, 0) != Some(number) {
        return Err("a page with the number of another");
    }
    if u16_at(header, 10) != kind as u16 {
        return Err("a page of the wrong kind");
    }
    Ok(u32::from_ne_bytes([header[12], header[13], header[14], header[15]]))
}

/// Checks the header of a value's first overflow page.
pub(crate) fn check_overflow(bytes: &[u8], number: u64, pages: usize) -> Parsed<()> {
    if (header(bytes, number, Kind::Overflow)? as usize) < pages {
        return Err("an overflow page shorter than its value");
    }
    Ok(())
}

impl<'m> Page<'m> {
    /// Reads a page's header.
    pub fn parse(bytes: &'m [u8], number: u64, kind: Kind) -> Parsed<Self> {
        header(bytes, number, kind)?;
        let (lower, upper) = (usize::from(u16_at(bytes, 12)), usize::from(u16_at(bytes, 14)));
        // An upper bound of 64 KiB does not fit into 16 bits, and is stored as zero.
        let upper = if upper == 0 { bytes.len() } else { upper };
        if lower <= HEADER_BYTES || lower % 2 != 0 || lower > upper || upper > bytes.len() {
            return Err("a page whose bounds are not its own");
        }
        Ok(Self { bytes, kind, len: (lower - HEADER_BYTES) / 2, upper })
    }

    /// Number of nodes; at least one.
    pub fn len(&self) -> usize {
        self.len
    }

    /// A node's offset, header and key. `index` must be below [`Self::len`].
    fn key_and_header(&self, index: usize) -> Parsed<(usize, &'m [u8; NODE_HEADER_BYTES], &'m [u8])> {
        let at = usize::from(u16_at(self.bytes, HEADER_BYTES + 2 * index));
        let node = self.bytes.get(at..).filter(|_| at >= self.upper).ok_or("a node outside of its page")?;
        let (header, rest) = node.split_first_chunk().ok_or("a node that is cut off")?;
        let key = rest.get(..usize::from(u16_at(header, 6))).ok_or("a key longer than its page")?;
        Ok((at, header, key))
    }

    /// A node's key; a branch's first node has a key without meaning.
    pub fn key(&self, index: usize) -> Parsed<&'m [u8]> {
        self.key_and_header(index).map(|(_, _, key)| key)
    }

    /// The page number of a branch's child.
    pub fn child(&self, index: usize) -> Parsed<u64> {
        let (_, header, _) = self.key_and_header(index)?;
        let part = |at| u64::from(u16_at(header, at));
        Ok(part(0) | part(2) << 16 | part(4) << 32)
    }

    /// A leaf's entry.
    pub fn node(&self, index: usize) -> Parsed<Node<'m>> {
        let (at, header, key) = self.key_and_header(index)?;
        let length = usize::from(u16_at(header, 0)) | usize::from(u16_at(header, 2)) << 16;
        let flags = u16_at(header, 4);
        let rest = &self.bytes[at + NODE_HEADER_BYTES + key.len()..];
        let value = if flags == BIG_VALUE {
            Value::Overflow { page: u64_at(rest, 0).ok_or("a node that is cut off")?, length }
        } else if flags == 0 || flags == TREE {
            Value::Inline(rest.get(..length).ok_or("a value longer than its page")?)
        } else {
            return Err("a node with unknown flags");
        };
        Ok(Node { key, value, at, is_tree: flags == TREE })
    }

    /// Index of a key in a leaf, or `Err` with the index at which it would be inserted.
    pub fn search(&self, key: &[u8]) -> Parsed<Result<usize, usize>> {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low.midpoint(high);
            match compare(self.key(middle)?, key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(Ok(middle)),
                Ordering::Greater => high = middle,
            }
        }
        Ok(Err(low))
    }

    /// Index of the branch's child that a key belongs to.
    pub fn child_of(&self, key: &[u8]) -> Parsed<usize> {
        let (mut low, mut high) = (1, self.len);
        while low < high {
            let middle = low.midpoint(high);
            if compare(self.key(middle)?, key).is_le() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low - 1)
    }

    /// Checks that the nodes are in order and fill the space that the header gives them, so that none is missing or
    /// duplicated.
    pub fn check_layout(&self, order: KeyOrder) -> Parsed<()> {
        let mut filled = 0;
        let mut last = None;
        for index in 0..self.len {
            let value_bytes = match self.kind {
                Kind::Leaf => match self.node(index)?.value {
                    Value::Inline(value) => value.len(),
                    Value::Overflow { .. } => PAGE_NUMBER_BYTES,
                },
                _ => 0,
            };
            let key = self.key(index)?;
            // LMDB places nodes at even offsets.
            filled += (NODE_HEADER_BYTES + key.len() + value_bytes).next_multiple_of(2);
            if self.kind == Kind::Leaf || index > 0 {
                if last.is_some_and(|last| order.compare(last, key).is_ge()) {
                    return Err("keys out of order");
                }
                last = Some(key);
            }
        }
        if filled == self.bytes.len() - self.upper { Ok(()) } else { Err("a page with other nodes than it had") }
    }
}
