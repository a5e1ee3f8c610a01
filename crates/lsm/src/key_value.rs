//! Values of index keys: a record, and for a primary key its document's location.
//!
//! Variable-length integers keep the usual value within the twenty bytes that the tree holds without an allocation.

use bunko_store::{Location, RecordId, varint};

/// A decoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyValue {
    pub record: RecordId,
    pub location: Option<Location>,
}

/// Longest encoding: three integers of ten bytes and a checksum.
const BYTES_MAX: usize = 34;

impl KeyValue {
    /// Runs `with` on the encoded value.
    pub fn encode<R>(self, with: impl FnOnce(&[u8]) -> R) -> R {
        let mut bytes = [0; BYTES_MAX];
        let mut length = varint::put_at(&mut bytes, 0, self.record.0);
        if let Some(location) = self.location {
            length = varint::put_at(&mut bytes, length, location.position);
            length = varint::put_at(&mut bytes, length, u64::from(location.length));
            bytes[length..length + 4].copy_from_slice(&location.checksum.to_le_bytes());
            length += 4;
        }
        with(&bytes[..length])
    }

    /// `None` for malformed bytes.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let record = RecordId(varint::take(&mut bytes)?);
        if bytes.is_empty() {
            return Some(Self { record, location: None });
        }
        let position = varint::take(&mut bytes)?;
        let length = u32::try_from(varint::take(&mut bytes)?).ok()?;
        let checksum = u32::from_le_bytes(bytes.try_into().ok()?);
        Some(Self { record, location: Some(Location { position, length, checksum }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip() {
        let far = Location { position: u64::MAX, length: u32::MAX, checksum: 7 };
        let usual = Location { position: 1 << 40, length: 1000, checksum: u32::MAX };
        for location in [None, Some(far), Some(usual)] {
            for record in [1, 127, 128, u64::MAX] {
                let value = KeyValue { record: RecordId(record), location };
                assert_eq!(value.encode(KeyValue::decode), Some(value));
            }
        }
        let usual = KeyValue { record: RecordId(100_000_000), location: Some(usual) };
        assert!(usual.encode(<[u8]>::len) <= 20);
        assert_eq!(KeyValue::decode(&[]), None);
        assert_eq!(KeyValue::decode(&[1, 2, 3, 4]), None);
    }
}
