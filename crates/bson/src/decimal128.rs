//! IEEE 754-2008 decimal floating point in its binary integer form, as BSON stores it.

/// Sixteen bytes, little endian, kept as they came: `1.0` and `1.00` are equal but not the same.
/// Source: BSON specification, type 0x13; IEEE 754-2008 binary integer decimal encoding.
#[derive(Clone, Copy, Debug)]
pub struct Decimal128(pub [u8; 16]);
