//! The columns of a Parquet file: their types, and their values until a row group is written.
//! Source: Apache Parquet, "Encodings" (PLAIN, RLE / bit-packing hybrid) and "Logical types".

use super::thrift::varint;
use bunko_bson::{ValueRef, extended_json};

/// The type of a column, by the types of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Boolean,
    Int32,
    Int64,
    Double,
    /// Milliseconds since 1970, UTC.
    Date,
    Text,
    /// An `ObjectId`, as 24 hexadecimal digits.
    ObjectId,
    /// A decimal number as text: Parquet's own decimals have no exponent.
    Decimal,
    Binary,
    /// Relaxed Extended JSON: documents, arrays, rare types, and columns of several types.
    Json,
}

/// How a type is stored, by the numbers that Parquet gives to its types.
pub(super) struct Stored {
    pub physical: i32,
    pub converted: Option<i32>,
}

impl ColumnType {
    /// The type of a value; `None` for null.
    pub fn of(value: ValueRef<'_>) -> Option<Self> {
        Some(match value {
            ValueRef::Null | ValueRef::Undefined => return None,
            ValueRef::Boolean(_) => Self::Boolean,
            ValueRef::Int32(_) => Self::Int32,
            ValueRef::Int64(_) => Self::Int64,
            ValueRef::Double(_) => Self::Double,
            ValueRef::DateTime(_) => Self::Date,
            ValueRef::String(_) | ValueRef::Symbol(_) => Self::Text,
            ValueRef::ObjectId(_) => Self::ObjectId,
            ValueRef::Decimal128(_) => Self::Decimal,
            ValueRef::Binary { .. } => Self::Binary,
            _ => Self::Json,
        })
    }

    /// The type that holds the values of both without a loss.
    pub fn with(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Int32, Self::Int64) | (Self::Int64, Self::Int32) => Self::Int64,
            // A double holds every int32, and not every int64.
            (Self::Int32, Self::Double) | (Self::Double, Self::Int32) => Self::Double,
            _ => Self::Json,
        }
    }

    pub fn stored(self) -> Stored {
        const BOOLEAN: i32 = 0;
        const INT32: i32 = 1;
        const INT64: i32 = 2;
        const DOUBLE: i32 = 5;
        const BYTE_ARRAY: i32 = 6;
        const UTF8: i32 = 0;
        const TIMESTAMP_MILLIS: i32 = 9;
        const JSON: i32 = 19;
        let (physical, converted) = match self {
            Self::Boolean => (BOOLEAN, None),
            Self::Int32 => (INT32, None),
            Self::Int64 => (INT64, None),
            Self::Double => (DOUBLE, None),
            Self::Date => (INT64, Some(TIMESTAMP_MILLIS)),
            Self::Text | Self::ObjectId | Self::Decimal => (BYTE_ARRAY, Some(UTF8)),
            Self::Binary => (BYTE_ARRAY, None),
            Self::Json => (BYTE_ARRAY, Some(JSON)),
        };
        Stored { physical, converted }
    }
}

/// Bits, the lowest of each byte first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.count.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (self.count % 8);
        }
        self.count += 1;
    }
}

/// A column with the values of one row group.
pub(super) struct Column {
    pub name: String,
    pub kind: ColumnType,
    /// Whether each row has a value.
    present: Bits,
    absent_count: usize,
    values: Vec<u8>,
    booleans: Bits,
}

impl Column {
    pub fn new(name: String, kind: ColumnType) -> Self {
        let (present, booleans) = (Bits::default(), Bits::default());
        Self { name, kind, present, absent_count: 0, values: Vec::new(), booleans }
    }

    /// Bytes that the values take.
    pub fn len_bytes(&self) -> usize {
        self.values.len() + self.booleans.bytes.len() + self.present.bytes.len()
    }

    /// Adds a row's value. Returns whether the column can hold it.
    pub fn append(&mut self, value: Option<ValueRef<'_>>) -> bool {
        let Some((value, kind)) = value.and_then(|value| Some((value, ColumnType::of(value)?))) else {
            self.present.push(false);
            self.absent_count += 1;
            return true;
        };
        if kind.with(self.kind) != self.kind {
            return false;
        }
        self.present.push(true);
        match (self.kind, value) {
            (ColumnType::Json, value) => self.append_bytes(extended_json::to_relaxed(value).as_bytes()),
            (_, ValueRef::Boolean(boolean)) => self.booleans.push(boolean),
            (ColumnType::Int64, ValueRef::Int32(number)) => self.values.extend(i64::from(number).to_le_bytes()),
            (ColumnType::Double, ValueRef::Int32(number)) => self.values.extend(f64::from(number).to_le_bytes()),
            (_, ValueRef::Int32(number)) => self.values.extend(number.to_le_bytes()),
            (_, ValueRef::Int64(number) | ValueRef::DateTime(number)) => self.values.extend(number.to_le_bytes()),
            (_, ValueRef::Double(number)) => self.values.extend(number.to_le_bytes()),
            (_, ValueRef::String(text) | ValueRef::Symbol(text)) => self.append_bytes(text.as_bytes()),
            (_, ValueRef::ObjectId(id)) => self.append_bytes(id.to_string().as_bytes()),
            (_, ValueRef::Decimal128(number)) => self.append_bytes(number.to_string().as_bytes()),
            (_, ValueRef::Binary { bytes, .. }) => self.append_bytes(bytes),
            (_, other) => self.append_bytes(extended_json::to_relaxed(other).as_bytes()),
        }
        true
    }

    fn append_bytes(&mut self, bytes: &[u8]) {
        // A value is shorter than a document, whose length is an int32.
        self.values.extend((bytes.len() as u32).to_le_bytes());
        self.values.extend_from_slice(bytes);
    }

    /// Moves the rows to `out` as the content of a data page.
    pub fn take_page(&mut self, out: &mut Vec<u8>) {
        let mut levels = Vec::new();
        if self.absent_count == 0 {
            // One run: the level 1 for every row.
            varint((self.present.count as u64) << 1, &mut levels);
            levels.push(1);
        } else {
            varint((self.present.bytes.len() as u64) << 1 | 1, &mut levels);
            levels.extend_from_slice(&self.present.bytes);
        }
        out.extend((levels.len() as u32).to_le_bytes());
        out.append(&mut levels);
        out.append(&mut self.values);
        out.append(&mut self.booleans.bytes);
        (self.present, self.booleans, self.absent_count) = (Bits::default(), Bits::default(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_widen_without_a_loss() {
        use ColumnType::{Date, Double, Int32, Int64, Json, Text};
        for (one, other, both) in [
            (Int32, Int64, Int64),
            (Double, Int32, Double),
            (Int64, Double, Json),
            (Text, Date, Json),
            (Text, Text, Text),
        ] {
            assert_eq!((one.with(other), other.with(one)), (both, both));
        }
    }

    #[test]
    fn a_page_has_levels_and_values() {
        let mut column = Column::new("a".into(), ColumnType::Int32);
        assert!(column.append(Some(ValueRef::Int32(7))) && column.append(None) && column.append(Some(ValueRef::Null)));
        assert!(!column.append(Some(ValueRef::String("x"))), "another type");
        let mut page = Vec::new();
        column.take_page(&mut page);
        assert_eq!(page, [2, 0, 0, 0, 3, 0b001, 7, 0, 0, 0]);
        assert_eq!(column.len_bytes(), 0);
        let mut column = Column::new("b".into(), ColumnType::Boolean);
        for boolean in [true, false, true] {
            assert!(column.append(Some(ValueRef::Boolean(boolean))));
        }
        let mut page = Vec::new();
        column.take_page(&mut page);
        assert_eq!(page, [2, 0, 0, 0, 6, 1, 0b101]);
    }
}
