//! Values of the trees' entries. Each has its own checksum, because LMDB has none.
//!
//! - A record: `id (8, big-endian)` → `location (16), crc (4), document`. The checksum covers keyspace, id and location;
//!   the document's own stands in the location.
//! - An index key shorter than [`PREFIX_BYTES`]: `key` → `record id (8), crc (4)`, the checksum over keyspace, key and
//!   record id.
//! - Longer keys, which LMDB does not accept, share one entry with all keys that begin with the same [`PREFIX_BYTES`]
//!   bytes: `prefix` → for each key in order `rest's length (4), record id (8), crc (4), rest`. A shorter key never
//!   equals a prefix and sorts before or after all keys of the prefix, so the order of entries is the order of keys. A
//!   change of one key rewrites the entry: many keys with a common prefix of that length are slow, but correct.

use bunko_store::{KeyspaceId, Location, RecordId};

/// Length of LMDB's longest key, in bytes.
pub(crate) const PREFIX_BYTES: usize = 511;

/// Bytes before a record's document.
pub(crate) const RECORD_HEADER_BYTES: usize = Location::ENCODED_BYTES + CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = 4;
const KEY_VALUE_BYTES: usize = 8 + CHECKSUM_BYTES;
/// Bytes before the rest of a long key.
const REST_HEADER_BYTES: usize = 4 + KEY_VALUE_BYTES;

/// Kind of a keyspace's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Records,
    Keys,
}

/// A decoded value, or a description of the damage.
type Decoded<T> = Result<T, &'static str>;

const DAMAGED_RECORD: &str = "a record that fails its checksum";
const DAMAGED_DOCUMENT: &str = "a document that fails its checksum";
const DAMAGED_KEY: &str = "an index key that fails its checksum";

/// The part of an index key that is the tree's key.
pub(crate) fn prefix(key: &[u8]) -> &[u8] {
    &key[..key.len().min(PREFIX_BYTES)]
}

/// Whether a tree's key stands for all index keys that begin with it.
pub(crate) fn is_shared(tree_key: &[u8]) -> bool {
    tree_key.len() == PREFIX_BYTES
}

fn record_checksum(keyspace: KeyspaceId, id: [u8; 8], location: &[u8; Location::ENCODED_BYTES]) -> u32 {
    let mut covered = [0; 4 + 8 + Location::ENCODED_BYTES];
    covered[..4].copy_from_slice(&keyspace.0.to_le_bytes());
    covered[4..12].copy_from_slice(&id);
    covered[12..].copy_from_slice(location);
    bunko_checksum::crc32c(&covered)
}

/// The bytes before a record's document.
pub(crate) fn record_header(keyspace: KeyspaceId, record: RecordId, location: Location) -> [u8; RECORD_HEADER_BYTES] {
    let mut header = [0; RECORD_HEADER_BYTES];
    let encoded = location.encode();
    header[..Location::ENCODED_BYTES].copy_from_slice(&encoded);
    let checksum = record_checksum(keyspace, record.0.to_be_bytes(), &encoded);
    header[Location::ENCODED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// A record's id.
pub(crate) fn record_id(key: &[u8]) -> Decoded<RecordId> {
    key.try_into().map(|id| RecordId(u64::from_be_bytes(id))).map_err(|_| DAMAGED_RECORD)
}

/// A record's location, and its document, which still has to pass [`verify`].
pub(crate) fn unverified_record<'v>(
    keyspace: KeyspaceId,
    key: &[u8],
    value: &'v [u8],
) -> Decoded<(Location, &'v [u8])> {
    let (encoded, rest) = value.split_first_chunk().ok_or(DAMAGED_RECORD)?;
    let (checksum, document) = rest.split_first_chunk().ok_or(DAMAGED_RECORD)?;
    let id = key.try_into().map_err(|_| DAMAGED_RECORD)?;
    let location = Location::decode(encoded).ok_or(DAMAGED_RECORD)?;
    let is_intact = record_checksum(keyspace, id, encoded) == u32::from_le_bytes(*checksum);
    if is_intact && document.len() == location.length as usize { Ok((location, document)) } else { Err(DAMAGED_RECORD) }
}

/// Verifies a document.
pub(crate) fn verify(location: Location, document: &[u8]) -> Decoded<()> {
    if bunko_checksum::crc32c(document) == location.checksum { Ok(()) } else { Err(DAMAGED_DOCUMENT) }
}

/// A record's location and document.
pub(crate) fn record<'v>(keyspace: KeyspaceId, key: &[u8], value: &'v [u8]) -> Decoded<(Location, &'v [u8])> {
    let (location, document) = unverified_record(keyspace, key, value)?;
    verify(location, document).map(|()| (location, document))
}

/// An index key's checksum; the key is given in two parts.
fn key_checksum(keyspace: KeyspaceId, key: [&[u8]; 2], record: [u8; 8]) -> u32 {
    let begun = bunko_checksum::crc32c_append(bunko_checksum::crc32c(&keyspace.0.to_le_bytes()), key[0]);
    let keyed = if key[1].is_empty() { begun } else { bunko_checksum::crc32c_append(begun, key[1]) };
    bunko_checksum::crc32c_append(keyed, &record)
}

/// The value of a key shorter than [`PREFIX_BYTES`].
pub(crate) fn key_value(keyspace: KeyspaceId, key: &[u8], record: RecordId) -> [u8; KEY_VALUE_BYTES] {
    encode_key_value(keyspace, [key, &[]], record)
}

fn encode_key_value(keyspace: KeyspaceId, key: [&[u8]; 2], record: RecordId) -> [u8; KEY_VALUE_BYTES] {
    let record = record.0.to_le_bytes();
    let mut value = [0; KEY_VALUE_BYTES];
    value[..8].copy_from_slice(&record);
    value[8..].copy_from_slice(&key_checksum(keyspace, key, record).to_le_bytes());
    value
}

fn decode_key_value(keyspace: KeyspaceId, key: [&[u8]; 2], value: &[u8; KEY_VALUE_BYTES]) -> Decoded<RecordId> {
    let (record, checksum) = value.split_first_chunk().ok_or(DAMAGED_KEY)?;
    if key_checksum(keyspace, key, *record).to_le_bytes() != checksum {
        return Err(DAMAGED_KEY);
    }
    Ok(RecordId(u64::from_le_bytes(*record)))
}

/// The record that a key shorter than [`PREFIX_BYTES`] leads to.
pub(crate) fn key(keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Decoded<RecordId> {
    decode_key_value(keyspace, [key, &[]], value.try_into().map_err(|_| DAMAGED_KEY)?)
}

/// Adds a key to the entry of its prefix. Keys must be added in order.
pub(crate) fn push_long_key(keyspace: KeyspaceId, prefix: &[u8], rest: &[u8], record: RecordId, entry: &mut Vec<u8>) {
    entry.extend_from_slice(&(rest.len() as u32).to_le_bytes());
    entry.extend_from_slice(&encode_key_value(keyspace, [prefix, rest], record));
    entry.extend_from_slice(rest);
}

/// The rests of the keys that share a prefix, and the records that they lead to.
pub(crate) fn long_keys<'v>(
    keyspace: KeyspaceId,
    prefix: &[u8],
    mut entry: &'v [u8],
) -> impl Iterator<Item = Decoded<(&'v [u8], RecordId)>> {
    std::iter::from_fn(move || {
        if entry.is_empty() {
            return None;
        }
        let next = next_long_key(keyspace, prefix, &mut entry);
        if next.is_err() {
            entry = &[];
        }
        Some(next)
    })
}

fn next_long_key<'v>(keyspace: KeyspaceId, prefix: &[u8], entry: &mut &'v [u8]) -> Decoded<(&'v [u8], RecordId)> {
    let (header, rest) = entry.split_first_chunk::<REST_HEADER_BYTES>().ok_or(DAMAGED_KEY)?;
    let (length, value) = header.split_first_chunk::<4>().ok_or(DAMAGED_KEY)?;
    let (key, following) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(DAMAGED_KEY)?;
    let record = decode_key_value(keyspace, [prefix, key], value.try_into().map_err(|_| DAMAGED_KEY)?)?;
    *entry = following;
    Ok((key, record))
}

/// Verifies an entry, except a record's document.
pub(crate) fn check(keyspace: KeyspaceId, content: Content, tree_key: &[u8], value: &[u8]) -> Decoded<()> {
    match content {
        Content::Records => unverified_record(keyspace, tree_key, value).map(drop),
        Content::Keys if is_shared(tree_key) => {
            long_keys(keyspace, tree_key, value).try_for_each(|entry| entry.map(drop))
        }
        Content::Keys => key(keyspace, tree_key, value).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYSPACE: KeyspaceId = KeyspaceId(9);

    /// Checks that a flip of any bit, in the key or the value, is noticed, and another keyspace too.
    fn assert_every_flip_is_noticed(key: &[u8], value: &[u8], is_intact: impl Fn(KeyspaceId, &[u8], &[u8]) -> bool) {
        assert!(is_intact(KEYSPACE, key, value));
        assert!(!is_intact(KeyspaceId(8), key, value));
        for bit in 0..8 * value.len() {
            let mut flipped = value.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_intact(KEYSPACE, key, &flipped), "bit {bit} of the value");
        }
        for bit in 0..8 * key.len() {
            let mut flipped = key.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_intact(KEYSPACE, &flipped, value), "bit {bit} of the key");
        }
    }

    #[test]
    fn no_bit_of_a_record_flips_unnoticed() {
        let document = b"a document";
        let location = Location { position: 77, length: 10, checksum: bunko_checksum::crc32c(document) };
        let mut value = record_header(KEYSPACE, RecordId(5), location).to_vec();
        value.extend_from_slice(document);
        let key = 5_u64.to_be_bytes();
        assert_eq!(record(KEYSPACE, &key, &value), Ok((location, document.as_slice())));
        assert_every_flip_is_noticed(&key, &value, |keyspace, key, value| record(keyspace, key, value).is_ok());
    }

    #[test]
    fn no_bit_of_an_index_key_flips_unnoticed() {
        let value = key_value(KEYSPACE, b"key", RecordId(5));
        assert_eq!(key(KEYSPACE, b"key", &value), Ok(RecordId(5)));
        assert_every_flip_is_noticed(b"key", &value, |keyspace, bytes, value| key(keyspace, bytes, value).is_ok());
    }

    #[test]
    fn no_bit_of_long_keys_flips_unnoticed() {
        let shared = [7; PREFIX_BYTES];
        let mut entry = Vec::new();
        for (rest, record) in [(&b""[..], 1), (b"a", 2), (b"ab", 3)] {
            push_long_key(KEYSPACE, &shared, rest, RecordId(record), &mut entry);
        }
        let keys = |keyspace, prefix: &[u8], entry: &[u8]| {
            long_keys(keyspace, prefix, entry)
                .map(|entry| entry.map(|(rest, record)| (rest.to_vec(), record.0)))
                .collect::<Result<Vec<_>, _>>()
        };
        assert_eq!(keys(KEYSPACE, &shared, &entry), Ok(vec![(vec![], 1), (b"a".to_vec(), 2), (b"ab".to_vec(), 3)]));
        assert_every_flip_is_noticed(&shared, &entry, |keyspace, prefix, entry| keys(keyspace, prefix, entry).is_ok());
    }
}
