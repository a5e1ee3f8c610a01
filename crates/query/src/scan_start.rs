//! Where a scan in record order starts.

use bunko_store::RecordId;

/// The start of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanStart {
    /// At the first record.
    First,
    /// After this record, which must exist. `None` is a position that no record has.
    Behind(Option<RecordId>),
    /// After the position of this record, which may be gone; `None` is before the first record.
    BehindPlace(Option<RecordId>),
}
