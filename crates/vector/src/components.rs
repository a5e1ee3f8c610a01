//! The vectors of documents and queries.
//! Source: BSON specification, "Binary Vector": a byte for the type of the elements, a byte for the number of unused
//! bits in the last byte, the elements.

use crate::query_error;
use bunko_bson::{ArrayRef, ValueRef};
use bunko_errors::Result;

/// Subtype of binary data that is a vector.
const VECTOR_SUBTYPE: u8 = 0x09;
const INT8: u8 = 0x03;
const PACKED_BIT: u8 = 0x10;
const FLOAT32: u8 = 0x27;

/// Type of a vector's components. Vectors are compared only with vectors of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentKind {
    /// 32-bit floating-point numbers. Arrays of numbers are vectors of this kind.
    Float32,
    /// Signed bytes.
    Int8,
    /// Bits, eight in a byte.
    Bits,
}

/// The components of one vector.
#[derive(Clone, Debug, PartialEq)]
pub enum Components {
    /// 32-bit floating-point numbers.
    Float32(Vec<f32>),
    /// Signed bytes.
    Int8(Vec<i8>),
    /// Bits, eight in a byte.
    Bits(Vec<u8>),
}

impl Components {
    /// The type of the components.
    pub fn kind(&self) -> ComponentKind {
        match self {
            Self::Float32(_) => ComponentKind::Float32,
            Self::Int8(_) => ComponentKind::Int8,
            Self::Bits(_) => ComponentKind::Bits,
        }
    }

    /// Number of components.
    pub fn dimensions(&self) -> usize {
        match self {
            Self::Float32(numbers) => numbers.len(),
            Self::Int8(bytes) => bytes.len(),
            Self::Bits(bytes) => bytes.len() * 8,
        }
    }

    /// Whether all components are finite.
    pub fn are_finite(&self) -> bool {
        match self {
            Self::Float32(numbers) => numbers.iter().all(|number| number.is_finite()),
            Self::Int8(_) | Self::Bits(_) => true,
        }
    }

    /// The vector that a document holds; `None` if the value is not a vector or has components that are not finite.
    pub fn stored(value: ValueRef<'_>) -> Option<Self> {
        let components = match value {
            ValueRef::Array(array) => array.iter().map(narrowed).collect::<Option<Vec<f32>>>().map(Self::Float32)?,
            ValueRef::Binary { subtype: VECTOR_SUBTYPE, bytes } => Self::packed(bytes).ok()?,
            _ => return None,
        };
        components.are_finite().then_some(components)
    }

    /// The vector of a query.
    /// # Errors
    /// [`query_error()`] if the value is not a vector.
    pub fn queried(value: ValueRef<'_>) -> Result<Self> {
        match value {
            ValueRef::Array(array) => queried_array(array),
            ValueRef::Binary { subtype: VECTOR_SUBTYPE, bytes } => {
                Self::packed(bytes).map_err(|wrong| query_error(format!("\"queryVector\" {wrong}")))
            }
            ValueRef::Binary { subtype, .. } => Err(query_error(format!(
                "\"queryVector\" must be binary data of subtype {VECTOR_SUBTYPE}, but has subtype {subtype}"
            ))),
            other => {
                let kind = other.kind().alias();
                Err(query_error(format!(
                    "\"queryVector\" must be an array of numbers or a binary vector, but is {kind}"
                )))
            }
        }
    }

    /// Reads a binary vector. The error completes a sentence that begins with the field's name.
    fn packed(bytes: &[u8]) -> std::result::Result<Self, &'static str> {
        let [kind, padding, elements @ ..] = bytes else { return Err("is a binary vector without a header") };
        match (*kind, *padding) {
            (FLOAT32 | INT8, 1..) => Err("must not have padding"),
            (FLOAT32, 0) => {
                let (numbers, []) = elements.as_chunks::<4>() else {
                    return Err("is a binary vector whose last number is cut");
                };
                Ok(Self::Float32(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()))
            }
            (INT8, 0) => Ok(Self::Int8(elements.iter().map(|byte| *byte as i8).collect())),
            (PACKED_BIT, 0) => Ok(Self::Bits(elements.to_vec())),
            (PACKED_BIT, _) => Err("must have a number of bits that is a multiple of 8"),
            _ => Err("is a binary vector of an unknown type"),
        }
    }
}

/// Reads a number and rounds it to 32 bits; `None` if the value is not a number.
fn narrowed(value: ValueRef<'_>) -> Option<f32> {
    match value {
        ValueRef::Double(number) => Some(number as f32),
        ValueRef::Int32(number) => Some(number as f32),
        ValueRef::Int64(number) => Some(number as f32),
        _ => None,
    }
}

fn queried_array(array: ArrayRef<'_>) -> Result<Components> {
    let numbers = array.iter().map(|element| {
        let unsupported = || {
            let kind = element.kind().alias();
            query_error(format!("\"queryVector\" has an element that is not a number: unsupported BSON type {kind}"))
        };
        narrowed(element).ok_or_else(unsupported)
    });
    numbers.collect::<Result<Vec<f32>>>().map(Components::Float32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::ArrayBuf;

    fn binary(bytes: &[u8]) -> ValueRef<'_> {
        ValueRef::Binary { subtype: VECTOR_SUBTYPE, bytes }
    }

    #[test]
    fn arrays_and_binary_data_are_vectors() {
        let mut array = ArrayBuf::new();
        array.push(1_i32).push(2_i64).push(0.5);
        let numbers = Components::Float32(vec![1.0, 2.0, 0.5]);
        assert_eq!(Components::stored(ValueRef::Array(array.as_ref())), Some(numbers.clone()));
        let mut packed = vec![FLOAT32, 0];
        packed.extend([1.0_f32, 2.0, 0.5].iter().flat_map(|number| number.to_le_bytes()));
        assert_eq!(Components::stored(binary(&packed)), Some(numbers));
        assert_eq!(Components::stored(binary(&[INT8, 0, 255, 3])), Some(Components::Int8(vec![-1, 3])));
        let bits = Components::stored(binary(&[PACKED_BIT, 0, 255])).unwrap();
        assert_eq!((bits.dimensions(), bits.kind()), (8, ComponentKind::Bits));
    }

    #[test]
    fn values_that_are_not_vectors_are_not_indexed_and_not_queried() {
        let mut array = ArrayBuf::new();
        array.push("text");
        for value in [
            ValueRef::Array(array.as_ref()),
            ValueRef::Null,
            ValueRef::String("$field"),
            binary(&[]),
            binary(&[FLOAT32]),
            binary(&[FLOAT32, 0, 1]),
            binary(&[FLOAT32, 2]),
            binary(&[PACKED_BIT, 3, 8]),
            binary(&[99, 0]),
            ValueRef::Binary { subtype: 0, bytes: &[FLOAT32, 0] },
        ] {
            assert_eq!(Components::stored(value), None);
            assert_eq!(Components::queried(value).unwrap_err().code().0, 8);
        }
        let mut array = ArrayBuf::new();
        array.push(1e300);
        assert_eq!(Components::stored(ValueRef::Array(array.as_ref())), None);
        assert!(!Components::queried(ValueRef::Array(array.as_ref())).unwrap().are_finite());
    }
}
