//! An index key, and the record id that it leads to.

use bunko_store::RecordId;
use bunko_versions::HeadKey;
use byteview::ByteView;
use std::num::NonZeroU64;

/// Stores keys of usual length (up to 20 bytes) without an allocation.
pub(crate) type IndexKey = HeadKey<ByteView>;

/// A record id in a form in which an `Option` takes no more memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedRecordId(NonZeroU64);

impl PackedRecordId {
    pub fn record(self) -> RecordId {
        RecordId(!self.0.get())
    }
}

impl From<RecordId> for PackedRecordId {
    fn from(record: RecordId) -> Self {
        Self(NonZeroU64::new(!record.0).expect("record ids count from 1 and never get to the last number"))
    }
}
