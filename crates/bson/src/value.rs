//! One value of any BSON type, borrowed or owned.

use crate::{ArrayBuf, ArrayRef, Decimal128, DocumentBuf, DocumentRef, ObjectId};

/// A BSON element type, numbered as on the wire.
/// Source: BSON specification 1.1, "element".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Type {
    Double = 0x01,
    String = 0x02,
    Document = 0x03,
    Array = 0x04,
    Binary = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Boolean = 0x08,
    DateTime = 0x09,
    Null = 0x0a,
    Regex = 0x0b,
    DbPointer = 0x0c,
    JavaScript = 0x0d,
    Symbol = 0x0e,
    JavaScriptWithScope = 0x0f,
    Int32 = 0x10,
    Timestamp = 0x11,
    Int64 = 0x12,
    Decimal128 = 0x13,
    MinKey = 0xff,
    MaxKey = 0x7f,
}

impl Type {
    /// The type with this number, which is an element's first byte.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0x01 => Self::Double,
            0x02 => Self::String,
            0x03 => Self::Document,
            0x04 => Self::Array,
            0x05 => Self::Binary,
            0x06 => Self::Undefined,
            0x07 => Self::ObjectId,
            0x08 => Self::Boolean,
            0x09 => Self::DateTime,
            0x0a => Self::Null,
            0x0b => Self::Regex,
            0x0c => Self::DbPointer,
            0x0d => Self::JavaScript,
            0x0e => Self::Symbol,
            0x0f => Self::JavaScriptWithScope,
            0x10 => Self::Int32,
            0x11 => Self::Timestamp,
            0x12 => Self::Int64,
            0x13 => Self::Decimal128,
            0xff => Self::MinKey,
            0x7f => Self::MaxKey,
            _ => return None,
        })
    }

    /// The alias that `$type` takes and that error messages print.
    /// Source: MongoDB manual, "BSON Types".
    pub fn alias(self) -> &'static str {
        match self {
            Self::Double => "double",
            Self::String => "string",
            Self::Document => "object",
            Self::Array => "array",
            Self::Binary => "binData",
            Self::Undefined => "undefined",
            Self::ObjectId => "objectId",
            Self::Boolean => "bool",
            Self::DateTime => "date",
            Self::Null => "null",
            Self::Regex => "regex",
            Self::DbPointer => "dbPointer",
            Self::JavaScript => "javascript",
            Self::Symbol => "symbol",
            Self::JavaScriptWithScope => "javascriptWithScope",
            Self::Int32 => "int",
            Self::Timestamp => "timestamp",
            Self::Int64 => "long",
            Self::Decimal128 => "decimal",
            Self::MinKey => "minKey",
            Self::MaxKey => "maxKey",
        }
    }
}

/// Subtypes of binary data that the server itself reads or writes.
pub struct BinarySubtype;

impl BinarySubtype {
    /// Plain bytes.
    pub const GENERIC: u8 = 0x00;
    /// Plain bytes after a second length, which drivers strip.
    pub const OLD: u8 = 0x02;
    /// A UUID in network order.
    pub const UUID: u8 = 0x04;
}

/// A position in an operation log: seconds since 1970 and a counter within that second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: u32,
    /// Counts operations within the second, from 1.
    pub increment: u32,
}

/// A value that borrows from a document's bytes. Cheap to copy.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum ValueRef<'a> {
    Double(f64),
    String(&'a str),
    Document(DocumentRef<'a>),
    Array(ArrayRef<'a>),
    Binary {
        subtype: u8,
        bytes: &'a [u8],
    },
    Undefined,
    ObjectId(ObjectId),
    Boolean(bool),
    /// Milliseconds since 1970, negative before.
    DateTime(i64),
    Null,
    Regex {
        pattern: &'a str,
        options: &'a str,
    },
    DbPointer {
        namespace: &'a str,
        id: ObjectId,
    },
    JavaScript(&'a str),
    Symbol(&'a str),
    JavaScriptWithScope {
        code: &'a str,
        scope: DocumentRef<'a>,
    },
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
}

impl<'a> ValueRef<'a> {
    /// Length in bytes of a value without a fixed size, else 0: about the memory that a copy takes beside the value
    /// itself.
    #[inline]
    pub fn content_bytes(self) -> usize {
        match self {
            Self::String(text) | Self::JavaScript(text) | Self::Symbol(text) => text.len(),
            Self::Document(document) | Self::JavaScriptWithScope { scope: document, .. } => document.len_bytes(),
            Self::Array(array) => array.as_document().len_bytes(),
            Self::Binary { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }

    /// The value's type.
    pub fn kind(self) -> Type {
        match self {
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Document(_) => Type::Document,
            Self::Array(_) => Type::Array,
            Self::Binary { .. } => Type::Binary,
            Self::Undefined => Type::Undefined,
            Self::ObjectId(_) => Type::ObjectId,
            Self::Boolean(_) => Type::Boolean,
            Self::DateTime(_) => Type::DateTime,
            Self::Null => Type::Null,
            Self::Regex { .. } => Type::Regex,
            Self::DbPointer { .. } => Type::DbPointer,
            Self::JavaScript(_) => Type::JavaScript,
            Self::Symbol(_) => Type::Symbol,
            Self::JavaScriptWithScope { .. } => Type::JavaScriptWithScope,
            Self::Int32(_) => Type::Int32,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Int64(_) => Type::Int64,
            Self::Decimal128(_) => Type::Decimal128,
            Self::MinKey => Type::MinKey,
            Self::MaxKey => Type::MaxKey,
        }
    }

    /// The string, if it is one.
    pub fn as_str(self) -> Option<&'a str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The document, if it is one (an array is not).
    pub fn as_document(self) -> Option<DocumentRef<'a>> {
        if let Self::Document(document) = self { Some(document) } else { None }
    }

    /// The array, if it is one.
    pub fn as_array(self) -> Option<ArrayRef<'a>> {
        if let Self::Array(array) = self { Some(array) } else { None }
    }

    /// Whether the value is of one of the four number types.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Double(_) | Self::Int32(_) | Self::Int64(_) | Self::Decimal128(_))
    }

    /// Whether the value is null or the deprecated undefined.
    pub fn is_nullish(self) -> bool {
        matches!(self, Self::Null | Self::Undefined)
    }

    /// A copy that owns its bytes.
    pub fn to_value(self) -> Value {
        match self {
            Self::Double(number) => Value::Double(number),
            Self::String(text) => Value::String(text.to_owned()),
            Self::Document(document) => Value::Document(document.to_owned()),
            Self::Array(array) => Value::Array(array.to_owned()),
            Self::Binary { subtype, bytes } => Value::Binary { subtype, bytes: bytes.to_vec() },
            Self::Undefined => Value::Undefined,
            Self::ObjectId(id) => Value::ObjectId(id),
            Self::Boolean(boolean) => Value::Boolean(boolean),
            Self::DateTime(milliseconds) => Value::DateTime(milliseconds),
            Self::Null => Value::Null,
            Self::Regex { pattern, options } => {
                Value::Regex { pattern: pattern.to_owned(), options: options.to_owned() }
            }
            Self::DbPointer { namespace, id } => Value::DbPointer { namespace: namespace.to_owned(), id },
            Self::JavaScript(code) => Value::JavaScript(code.to_owned()),
            Self::Symbol(text) => Value::Symbol(text.to_owned()),
            Self::JavaScriptWithScope { code, scope } => {
                Value::JavaScriptWithScope { code: code.to_owned(), scope: scope.to_owned() }
            }
            Self::Int32(number) => Value::Int32(number),
            Self::Timestamp(timestamp) => Value::Timestamp(timestamp),
            Self::Int64(number) => Value::Int64(number),
            Self::Decimal128(number) => Value::Decimal128(number),
            Self::MinKey => Value::MinKey,
            Self::MaxKey => Value::MaxKey,
        }
    }
}

/// A value that owns its bytes; documents and arrays stay encoded.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Value {
    Double(f64),
    String(String),
    Document(DocumentBuf),
    Array(ArrayBuf),
    Binary {
        subtype: u8,
        bytes: Vec<u8>,
    },
    Undefined,
    ObjectId(ObjectId),
    Boolean(bool),
    /// Milliseconds since 1970, negative before.
    DateTime(i64),
    Null,
    Regex {
        pattern: String,
        options: String,
    },
    DbPointer {
        namespace: String,
        id: ObjectId,
    },
    JavaScript(String),
    Symbol(String),
    JavaScriptWithScope {
        code: String,
        scope: DocumentBuf,
    },
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
}

impl Value {
    /// The borrowed form, which order, key strings and writers take.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Double(number) => ValueRef::Double(*number),
            Self::String(text) => ValueRef::String(text),
            Self::Document(document) => ValueRef::Document(document.as_ref()),
            Self::Array(array) => ValueRef::Array(array.as_ref()),
            Self::Binary { subtype, bytes } => ValueRef::Binary { subtype: *subtype, bytes },
            Self::Undefined => ValueRef::Undefined,
            Self::ObjectId(id) => ValueRef::ObjectId(*id),
            Self::Boolean(boolean) => ValueRef::Boolean(*boolean),
            Self::DateTime(milliseconds) => ValueRef::DateTime(*milliseconds),
            Self::Null => ValueRef::Null,
            Self::Regex { pattern, options } => ValueRef::Regex { pattern, options },
            Self::DbPointer { namespace, id } => ValueRef::DbPointer { namespace, id: *id },
            Self::JavaScript(code) => ValueRef::JavaScript(code),
            Self::Symbol(text) => ValueRef::Symbol(text),
            Self::JavaScriptWithScope { code, scope } => ValueRef::JavaScriptWithScope { code, scope: scope.as_ref() },
            Self::Int32(number) => ValueRef::Int32(*number),
            Self::Timestamp(timestamp) => ValueRef::Timestamp(*timestamp),
            Self::Int64(number) => ValueRef::Int64(*number),
            Self::Decimal128(number) => ValueRef::Decimal128(*number),
            Self::MinKey => ValueRef::MinKey,
            Self::MaxKey => ValueRef::MaxKey,
        }
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        value.to_value()
    }
}

/// `From` for the plain types that replies are made of.
macro_rules! value_ref_from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl<'a> From<$from> for ValueRef<'a> {
            fn from(value: $from) -> Self {
                Self::$variant(value)
            }
        })*
    };
}
value_ref_from!(
    f64 => Double, &'a str => String, DocumentRef<'a> => Document, ArrayRef<'a> => Array, ObjectId => ObjectId,
    bool => Boolean, i32 => Int32, i64 => Int64, Timestamp => Timestamp, Decimal128 => Decimal128,
);

impl<'a> From<&'a String> for ValueRef<'a> {
    fn from(text: &'a String) -> Self {
        Self::String(text)
    }
}
impl<'a> From<&'a DocumentBuf> for ValueRef<'a> {
    fn from(document: &'a DocumentBuf) -> Self {
        Self::Document(document.as_ref())
    }
}
impl<'a> From<&'a ArrayBuf> for ValueRef<'a> {
    fn from(array: &'a ArrayBuf) -> Self {
        Self::Array(array.as_ref())
    }
}
impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        value.as_ref()
    }
}
