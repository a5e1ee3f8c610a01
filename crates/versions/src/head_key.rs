//! Byte keys that are compared as numbers first.

use std::cmp::Ordering;
use std::ops::{Bound, Deref};

/// Bytes that are compared as one number.
const HEAD_BYTES: usize = 8;

/// A byte key, preceded by its first eight bytes as a number; both sort as the bytes do. Nearly all comparisons of a
/// search end with the number. Comparing bytes would take a function call each time, about thirty for one search.
///
/// A search needs a key of the map's type, so `B` should hold keys of usual length without an allocation.
#[derive(Clone, Debug)]
pub struct HeadKey<B> {
    head: u64,
    bytes: B,
}

impl<B> HeadKey<B> {
    /// The key's first bytes as a number ([`head_of`]).
    #[inline]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The bytes without the number.
    pub fn into_bytes(self) -> B {
        self.bytes
    }
}

impl<B: for<'a> From<&'a [u8]>> HeadKey<B> {
    /// A range of byte keys as a range of `HeadKey`s.
    pub fn range(range: &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> (Bound<Self>, Bound<Self>) {
        let bound = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| Self::from(key.as_slice()));
        (bound(&range.0), bound(&range.1))
    }
}

/// The first eight bytes of a key as a big-endian number; missing bytes count as 0. If the numbers of two keys differ,
/// the keys sort as the numbers do.
#[inline]
pub fn head_of(key: &[u8]) -> u64 {
    let head = key.first_chunk().copied().unwrap_or_else(|| {
        let mut head = [0; HEAD_BYTES];
        head[..key.len()].copy_from_slice(key);
        head
    });
    u64::from_be_bytes(head)
}

impl<B: for<'a> From<&'a [u8]>> From<&[u8]> for HeadKey<B> {
    fn from(key: &[u8]) -> Self {
        Self { head: head_of(key), bytes: B::from(key) }
    }
}

impl<B: Deref<Target = [u8]>> Deref for HeadKey<B> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<B: Deref<Target = [u8]>> Ord for HeadKey<B> {
    // A search consists of such comparisons.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.cmp_behind_head(other))
    }
}

impl<B: Deref<Target = [u8]>> HeadKey<B> {
    fn cmp_behind_head(&self, other: &Self) -> Ordering {
        // ObjectIds of one process and second have equal heads, and differ within their last eight bytes, so these are
        // compared as a number too.
        match (tail(self), tail(other)) {
            (Some(own), Some(others)) if self.len() == other.len() => own.cmp(&others),
            _ => (**self).cmp(&**other),
        }
    }
}

/// The last eight bytes as a number, if they and the first eight cover the whole key.
fn tail(key: &[u8]) -> Option<u64> {
    if key.len() > 2 * HEAD_BYTES {
        return None;
    }
    key.last_chunk().map(|tail| u64::from_be_bytes(*tail))
}

impl<B: Deref<Target = [u8]>> PartialOrd for HeadKey<B> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<B: Deref<Target = [u8]>> PartialEq for HeadKey<B> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<B: Deref<Target = [u8]>> Eq for HeadKey<B> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_their_bytes() {
        let mut keys: Vec<&[u8]> = vec![
            b"",
            b"\0",
            b"a",
            b"a\0",
            b"a\0\x01",
            b"abcdefgh",
            b"abcdefgh\0",
            b"abcdefgh01234",
            b"abcdefgh01235",
            b"abcdefgh0123567",
            b"abcdefgh01235678",
            b"abcdefgh012356780",
            b"abcdefgh112356780",
            b"abcdefghi",
            b"abcdefgz",
            b"b",
        ];
        assert!(keys.is_sorted());
        for key in &keys {
            for other in &keys {
                let (head_key, other_head_key) = (HeadKey::<Box<[u8]>>::from(*key), HeadKey::from(*other));
                assert_eq!(head_key.cmp(&other_head_key), key.cmp(other));
            }
        }
        keys.reverse();
        keys.sort_by_key(|key| HeadKey::<Box<[u8]>>::from(*key));
        assert!(keys.is_sorted());
    }
}
