//! Binary data as the bytes of a number, for `$convert` and its short forms.

use bunko_bson::{Type, Value, ValueRef};

/// Which byte comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    /// The least significant.
    Little,
    /// The most significant.
    Big,
}

/// Decodes the bytes as `target`: Int32 from 1, 2 or 4 bytes, Int64 from 1, 2, 4 or 8, Double from 4 or 8. `None` for
/// other lengths and types.
pub(crate) fn read(bytes: &[u8], target: Type, order: ByteOrder) -> Option<Value> {
    let mut little = bytes.to_vec();
    if order == ByteOrder::Big {
        little.reverse();
    }
    match (target, little.as_slice()) {
        (Type::Int32, [byte]) => Some(Value::Int32(i32::from(*byte as i8))),
        (Type::Int32, &[a, b]) => Some(Value::Int32(i32::from(i16::from_le_bytes([a, b])))),
        (Type::Int32, &[a, b, c, d]) => Some(Value::Int32(i32::from_le_bytes([a, b, c, d]))),
        (Type::Int64, [_] | [_, _] | [_, _, _, _]) => match read(bytes, Type::Int32, order)? {
            Value::Int32(number) => Some(Value::Int64(i64::from(number))),
            _ => None,
        },
        (Type::Int64, eight) => Some(Value::Int64(i64::from_le_bytes(eight.try_into().ok()?))),
        (Type::Double, &[a, b, c, d]) => Some(Value::Double(f64::from(f32::from_le_bytes([a, b, c, d])))),
        (Type::Double, eight) => Some(Value::Double(f64::from_le_bytes(eight.try_into().ok()?))),
        _ => None,
    }
}

/// Encodes an int, a long or a double; `None` for other types.
pub(crate) fn write(number: ValueRef<'_>, order: ByteOrder) -> Option<Vec<u8>> {
    let mut bytes = match number {
        ValueRef::Int32(number) => number.to_le_bytes().to_vec(),
        ValueRef::Int64(number) => number.to_le_bytes().to_vec(),
        ValueRef::Double(number) => number.to_le_bytes().to_vec(),
        _ => return None,
    };
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    Some(bytes)
}
