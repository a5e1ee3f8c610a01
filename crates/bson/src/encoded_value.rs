//! A value that is not decoded yet.

use crate::reader::{decode, fixed};
use crate::{Type, ValueRef};

/// Type and bytes of a value. Lookups return values in this form: a decoded value is larger, and its contents have to
/// be checked.
#[derive(Clone, Copy, Debug)]
pub struct EncodedValue<'a> {
    kind: Type,
    body: &'a [u8],
}

impl<'a> EncodedValue<'a> {
    #[inline]
    pub(crate) fn new(kind: Type, body: &'a [u8]) -> Self {
        Self { kind, body }
    }

    /// The value's type.
    #[inline]
    pub fn kind(self) -> Type {
        self.kind
    }

    /// The decoded value; `None` if a text in it is not valid.
    pub fn value(self) -> Option<ValueRef<'a>> {
        decode(self.kind, self.body)
    }

    /// Reads the first eight bytes as a double, whatever the type; `None` if the value is shorter.
    #[inline]
    pub fn as_f64(self) -> Option<f64> {
        fixed(self.body).map(f64::from_le_bytes)
    }

    /// Reads the first four bytes as an integer, whatever the type; `None` if the value is shorter.
    #[inline]
    pub fn as_i32(self) -> Option<i32> {
        fixed(self.body).map(i32::from_le_bytes)
    }

    /// Reads the first eight bytes as an integer, whatever the type; `None` if the value is shorter.
    #[inline]
    pub fn as_i64(self) -> Option<i64> {
        fixed(self.body).map(i64::from_le_bytes)
    }
}
