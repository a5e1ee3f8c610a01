//! The result of an expression.

use bunko_bson::{Value, ValueRef};

/// A borrowed value, an owned value, or none. Field paths and literals are never copied.
#[derive(Clone, Debug)]
pub enum Evaluated<'a> {
    /// No value: a computed field with this result is left out.
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

    /// The value, or null: for elements of arrays and the `_id` of groups.
    #[inline]
    pub fn or_null(&self) -> ValueRef<'_> {
        self.get().unwrap_or(ValueRef::Null)
    }

    /// The value for comparisons: a missing one sorts as undefined, below null.
    pub fn comparable(&self) -> ValueRef<'_> {
        self.get().unwrap_or(ValueRef::Undefined)
    }

    /// Whether there is no value.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// Whether the result is missing, null or undefined. Most operators return null for such an argument.
    #[inline]
    pub fn is_nullish(&self) -> bool {
        self.get().is_none_or(ValueRef::is_nullish)
    }

    /// The type's alias, or `missing`.
    pub fn type_name(&self) -> &'static str {
        self.get().map_or("missing", |value| value.kind().alias())
    }

    /// Whether the result counts as true: all values do except missing, null, undefined, false and zero. NaN is true.
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

    /// The value with its own bytes; `None` if it is missing.
    pub fn into_value(self) -> Option<Value> {
        match self {
            Self::Missing => None,
            Self::Ref(value) => Some(value.to_value()),
            Self::Owned(value) => Some(value),
        }
    }

    /// A copy that borrows nothing.
    pub fn into_owned<'b>(self) -> Evaluated<'b> {
        self.into_value().map_or(Evaluated::Missing, Evaluated::Owned)
    }

    /// Null.
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

/// `From` for the types that operators return.
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
