//! Reads values from their keys, for queries that an index alone can answer.

use super::number::{
    COEFFICIENT_BYTES, EXPONENT_BIAS, FRACTION_BYTES, FRACTION_DIGITS, INFINITY, LARGE, NAN, SMALL, WHOLE, ZERO, mirror,
};
use super::{Direction, END, ESCAPE, LONG_LENGTH};
use crate::decimal128::{DIGITS, Finite, POWERS_OF_TEN, Sign};
use crate::number::TWO_TO_63;
use crate::order::bracket;
use crate::{ArrayBuf, Decimal128, DocumentBuf, ObjectId, Timestamp, Value};

/// Reads back one value for each direction. Bytes after them, such as a record id, are ignored.
///
/// Types that compare equal are not told apart: a number returns as an int32, an int64, a double or a decimal, the
/// first that holds it, and a symbol as a string. `None` for bytes that [`super::append`] did not write.
pub fn decode(key: &[u8], directions: &[Direction]) -> Option<Vec<Value>> {
    let mut reader = Reader { rest: key, mask: 0 };
    let read = |direction: &Direction| {
        reader.mask = if *direction == Direction::Descending { 0xff } else { 0 };
        reader.value()
    };
    directions.iter().map(read).collect()
}

/// Number of bytes of the values of the first fields, one for each direction; `None` as for [`decode`].
pub fn leading_bytes(key: &[u8], directions: &[Direction]) -> Option<usize> {
    let mut reader = Reader { rest: key, mask: 0 };
    for direction in directions {
        reader.mask = if *direction == Direction::Descending { 0xff } else { 0 };
        reader.value()?;
    }
    Some(key.len() - reader.rest.len())
}

/// Takes bytes off a key's front. They are inverted if the field is descending or the number is negative.
struct Reader<'k> {
    rest: &'k [u8],
    mask: u8,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first ^ self.mask)
    }

    fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes.iter().map(|byte| byte ^ self.mask).collect())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(bytes.map(|byte| byte ^ self.mask))
    }

    /// Reads a big endian number of `count` bytes, at most sixteen.
    fn unsigned(&mut self, count: usize) -> Option<u128> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u128::from(byte ^ self.mask)))
    }

    /// Reads a text up to its end, which is the first unescaped zero.
    fn text(&mut self) -> Option<String> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                END => return String::from_utf8(text).ok(),
                ESCAPE => text.push(self.byte()?.checked_sub(1)?),
                byte => text.push(byte),
            }
        }
    }

    fn length(&mut self) -> Option<usize> {
        match self.byte()? {
            LONG_LENGTH => Some(u32::from_be_bytes(self.array()?) as usize),
            short => Some(usize::from(short)),
        }
    }

    fn value(&mut self) -> Option<Value> {
        let first = self.byte()?;
        self.value_of(first)
    }

    fn value_of(&mut self, first: u8) -> Option<Value> {
        Some(match first {
            bracket::MIN_KEY => Value::MinKey,
            bracket::UNDEFINED => Value::Undefined,
            bracket::NULL => Value::Null,
            NAN..=INFINITY => return self.number(first),
            bracket::STRING => Value::String(self.text()?),
            bracket::DOCUMENT => Value::Document(self.document()?),
            bracket::ARRAY => Value::Array(self.elements()?),
            bracket::BINARY => {
                let length = self.length()?;
                Value::Binary { subtype: self.byte()?, bytes: self.bytes(length)? }
            }
            bracket::OBJECT_ID => Value::ObjectId(ObjectId(self.array()?)),
            bracket::BOOLEAN => Value::Boolean(false),
            bracket::BOOLEAN_TRUE => Value::Boolean(true),
            bracket::DATE_TIME => Value::DateTime(i64::from_be_bytes(self.array()?) ^ i64::MIN),
            bracket::TIMESTAMP => Value::Timestamp(Timestamp {
                seconds: u32::from_be_bytes(self.array()?),
                increment: u32::from_be_bytes(self.array()?),
            }),
            bracket::REGEX => Value::Regex { pattern: self.text()?, options: self.text()? },
            bracket::DB_POINTER => {
                let length = self.length()?;
                let namespace = String::from_utf8(self.bytes(length)?).ok()?;
                Value::DbPointer { namespace, id: ObjectId(self.array()?) }
            }
            bracket::JAVASCRIPT => Value::JavaScript(self.text()?),
            bracket::JAVASCRIPT_WITH_SCOPE => {
                Value::JavaScriptWithScope { code: self.text()?, scope: self.document()? }
            }
            bracket::MAX_KEY => Value::MaxKey,
            _ => return None,
        })
    }

    fn document(&mut self) -> Option<DocumentBuf> {
        let mut document = DocumentBuf::new();
        // The bracket before the name is only for the order. The value has its own.
        while self.byte()? != END {
            let name = self.text()?;
            if name.contains('\0') {
                return None;
            }
            document.append(&name, &self.value()?);
        }
        Some(document)
    }

    fn elements(&mut self) -> Option<ArrayBuf> {
        let mut array = ArrayBuf::new();
        loop {
            match self.byte()? {
                END => return Some(array),
                first => array.push(&self.value_of(first)?),
            };
        }
    }

    fn number(&mut self, class: u8) -> Option<Value> {
        match class {
            NAN => return Some(Value::Double(f64::NAN)),
            ZERO => return Some(Value::Int32(0)),
            _ => {}
        }
        if class > ZERO {
            return self.magnitude(class, Sign::Positive);
        }
        self.mask ^= 0xff;
        let value = self.magnitude(mirror(class), Sign::Negative);
        self.mask ^= 0xff;
        value
    }

    fn magnitude(&mut self, class: u8, sign: Sign) -> Option<Value> {
        match class {
            INFINITY => Some(Value::Double(signed(f64::INFINITY, sign))),
            SMALL | LARGE => self.double_or_decimal(sign),
            _ => self.whole(usize::from(class - WHOLE) + 1, sign),
        }
    }

    fn double_or_decimal(&mut self, sign: Sign) -> Option<Value> {
        let bits = u64::from_be_bytes(self.array()?);
        if bits & 1 == 0 {
            let double = signed(f64::from_bits(bits >> 1), sign);
            return Some(if double == -TWO_TO_63 { Value::Int64(i64::MIN) } else { Value::Double(double) });
        }
        let adjusted = i32::from(u16::from_be_bytes(self.array()?)) - EXPONENT_BIAS;
        let coefficient = self.unsigned(COEFFICIENT_BYTES)?;
        shortest_decimal(sign, coefficient, adjusted - (DIGITS - 1) as i32)
    }

    /// Reads a number from 1 to below 2^63, whose integer part takes `count` bytes.
    fn whole(&mut self, count: usize, sign: Sign) -> Option<Value> {
        let bits = u64::try_from(self.unsigned(count)?).ok()?;
        let integer = bits >> 1;
        if bits & 1 == 0 {
            let number = if sign == Sign::Negative { -(integer as i64) } else { integer as i64 };
            return Some(i32::try_from(number).map_or(Value::Int64(number), Value::Int32));
        }
        let fraction = u64::from_be_bytes(self.array()?);
        if fraction & 1 == 0 {
            return whole_and_binary_fraction(sign, integer, fraction >> 1);
        }
        let fraction = self.unsigned(FRACTION_BYTES)?;
        whole_and_decimal_fraction(sign, integer, fraction)
    }
}

fn signed(magnitude: f64, sign: Sign) -> f64 {
    if sign == Sign::Negative { -magnitude } else { magnitude }
}

/// An integer and 63 binary digits after the point: a double if one holds both, else a decimal whose fraction happens
/// to be binary.
fn whole_and_binary_fraction(sign: Sign, integer: u64, fraction: u64) -> Option<Value> {
    let fraction_bits = 63 - fraction.trailing_zeros().min(63);
    let integer_bits = 64 - integer.leading_zeros();
    if integer_bits + fraction_bits <= f64::MANTISSA_DIGITS {
        return Some(Value::Double(signed(integer as f64 + fraction as f64 / TWO_TO_63, sign)));
    }
    if fraction_bits > FRACTION_DIGITS {
        return None;
    }
    // n / 2^k is n * 5^k / 10^k.
    let numerator = u128::from(fraction >> (63 - fraction_bits)) * 5_u128.pow(fraction_bits);
    whole_and_decimal_fraction(sign, integer, numerator * POWERS_OF_TEN[(FRACTION_DIGITS - fraction_bits) as usize])
}

/// An integer and 33 decimal digits after the point, together at most 34 digits without trailing zeros.
fn whole_and_decimal_fraction(sign: Sign, integer: u64, mut fraction: u128) -> Option<Value> {
    let mut fraction_digits = FRACTION_DIGITS;
    while fraction_digits > 0 && fraction.is_multiple_of(10) {
        fraction /= 10;
        fraction_digits -= 1;
    }
    let coefficient =
        u128::from(integer).checked_mul(POWERS_OF_TEN[fraction_digits as usize])?.checked_add(fraction)?;
    shortest_decimal(sign, coefficient, -(fraction_digits as i32))
}

fn shortest_decimal(sign: Sign, mut coefficient: u128, mut exponent: i32) -> Option<Value> {
    if coefficient == 0 {
        return None;
    }
    while coefficient.is_multiple_of(10) {
        coefficient /= 10;
        exponent += 1;
    }
    Some(Value::Decimal128(Decimal128::from_parts(Finite { sign, coefficient, exponent })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueRef;
    use crate::key_string::append;

    fn round_trip(value: ValueRef<'_>) -> String {
        let (ascending, descending) = (Direction::Ascending, Direction::Descending);
        let mut key = Vec::new();
        append(&mut key, value, ascending);
        append(&mut key, value, descending);
        key.extend_from_slice(&[1, 2, 3]);
        let values = decode(&key, &[ascending, descending]).expect("a key of ours");
        let text = |value: &Value| match value {
            Value::Decimal128(number) => format!("decimal {number}"),
            value => format!("{value:?}"),
        };
        assert_eq!(text(&values[0]), text(&values[1]));
        text(&values[0])
    }

    #[test]
    fn numbers_return_as_the_simplest_type() {
        let decimal = |text| ValueRef::Decimal128(Decimal128::parse(text).expect(text));
        for (value, expected) in [
            (ValueRef::Int64(7), "Int32(7)"),
            (ValueRef::Double(-7.0), "Int32(-7)"),
            (ValueRef::Double(4e9), "Int64(4000000000)"),
            (ValueRef::Int64(i64::MIN), "Int64(-9223372036854775808)"),
            (ValueRef::Double(-1.25), "Double(-1.25)"),
            (ValueRef::Double(5e-324), "Double(5e-324)"),
            (ValueRef::Double(1e300), "Double(1e300)"),
            (ValueRef::Double(-0.0), "Int32(0)"),
            (decimal("1.5"), "Double(1.5)"),
            (decimal("-0.10"), "decimal -0.1"),
            (decimal("12.30"), "decimal 12.3"),
            (decimal("4611686018427387904.5"), "decimal 4611686018427387904.5"),
            (decimal("1.000000000000000000000000000000001"), "decimal 1.000000000000000000000000000000001"),
            (decimal("1E+6144"), "decimal 1.000000000000000000000000000000000E+6144"),
            (decimal("1E-6176"), "decimal 1E-6176"),
            (decimal("-Infinity"), "Double(-inf)"),
            (decimal("NaN"), "Double(NaN)"),
        ] {
            assert_eq!(round_trip(value), expected);
        }
    }

    #[test]
    fn foreign_bytes_are_refused() {
        for key in [&[][..], &[0x00], &[0x21, b'a'], &[0x29, 1, 2], &[0x16], &[0x23, 0x08, b'a', 0], &[0xff]] {
            assert!(decode(key, &[Direction::Ascending]).is_none(), "{key:02x?}");
        }
    }
}
