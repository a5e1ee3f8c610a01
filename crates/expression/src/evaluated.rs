//! What an expression yields.

use bunko_bson::{Value, ValueRef};

/// A value read in place, a value made, or nothing. Field paths and literals are never copied.
#[derive(Clone, Debug)]
pub enum Evaluated<'a> {
    /// No such field: a computed field that yields this is left out.
    Missing,
    /// Borrowed from the document, a variable or the expression.
    Ref(ValueRef<'a>),
    /// Made by an operator.
    Owned(Value),
}

impl<'a> Evaluated<'a> {
    /// The value, if there is one.
    #[inline]
    pub fn get(&self) -> Option<ValueRef<'_>> {
        match self {
            Self::Missing => None,
            Self::Ref(value) => Some(*value),
            Self::Owned(value) => Some(value.as_ref()),
        }
    }

    /// The value, null where there is none: what fills an array or a group's `_id`.
    #[inline]
    pub fn or_null(&self) -> ValueRef<'_> {
        self.get().unwrap_or(ValueRef::Null)
    }

    /// The value as comparisons see it: a missing one sorts with undefined, below null.
    pub fn comparable(&self) -> ValueRef<'_> {
        self.get().unwrap_or(ValueRef::Undefined)
    }

    /// Whether there is no value.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// Whether it is missing, null or undefined, which most operators answer with null.
    #[inline]
    pub fn is_nullish(&self) -> bool {
        self.get().is_none_or(ValueRef::is_nullish)
    }

    /// The type's alias, or `missing`.
    pub fn type_name(&self) -> &'static str {
        self.get().map_or("missing", |value| value.kind().alias())
    }

    /// Truth: all but missing, null, undefined, false and zero. NaN is true.
    pub fn is_true(&self) -> bool {
        match self.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => false,
            Some(ValueRef::Boolean(boolean)) => boolean,
            Some(ValueRef::Int32(number)) => number != 0,
            Some(ValueRef::Int64(number)) => number != 0,
            Some(ValueRef::Double(number)) => number != 0.0,
            Some(ValueRef::Decimal128(number)) => !number.is_zero(),
            Some(_) => true,
        }
    }

    /// The value as one that owns its bytes.
    pub fn into_value(self) -> Option<Value> {
        match self {
            Self::Missing => None,
            Self::Ref(value) => Some(value.to_value()),
            Self::Owned(value) => Some(value),
        }
    }

    /// The same, free of what it was read from.
    pub fn into_owned<'b>(self) -> Evaluated<'b> {
        self.into_value().map_or(Evaluated::Missing, Evaluated::Owned)
    }

    /// The value read in place or null's, for operators that pass an argument on.
    pub(crate) const fn null() -> Evaluated<'a> {
        Evaluated::Ref(ValueRef::Null)
    }
}

impl<'a> From<Option<ValueRef<'a>>> for Evaluated<'a> {
    #[inline]
    fn from(value: Option<ValueRef<'a>>) -> Self {
        value.map_or(Self::Missing, Self::Ref)
    }
}

impl<'a> From<ValueRef<'a>> for Evaluated<'a> {
    #[inline]
    fn from(value: ValueRef<'a>) -> Self {
        Self::Ref(value)
    }
}

/// `From` for the types that operators make.
macro_rules! evaluated_from {
    ($($from:ty => $variant:path),* $(,)?) => {
        $(impl From<$from> for Evaluated<'_> {
            #[inline]
            fn from(value: $from) -> Self {
                Self::Owned($variant(value))
            }
        })*
    };
}
evaluated_from!(
    Value => std::convert::identity, bool => Value::Boolean, i32 => Value::Int32, i64 => Value::Int64,
    f64 => Value::Double,
);
