//! The version of the collations.

/// The version that MongoDB shows for its collations. A dump or a driver that compares versions must find this one.
/// Bunko's sort keys differ from MongoDB's; their version is [`crate::SORT_KEYS`].
pub const VERSION: &str = "57.1";
