//! Reasons why a dataset cannot be generated.

use crate::shapes::SHAPES;
use bunko_bson::MAX_USER_DOCUMENT_BYTES;
use std::fmt;

/// Reason why a dataset cannot be generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatasetError {
    /// No shape has that name.
    UnknownShape {
        /// The requested name.
        name: String,
    },
    /// The fields alone are longer than the requested size.
    TooSmall {
        /// The shape's name.
        shape: &'static str,
        /// The requested size.
        document_bytes: usize,
        /// The smallest possible size.
        least_bytes: usize,
    },
    /// The documents would be larger than a server stores.
    TooLarge {
        /// The requested size.
        document_bytes: usize,
    },
    /// The shape has no pad, so its size is fixed.
    FixedSize {
        /// The shape's name.
        shape: &'static str,
        /// The requested size.
        document_bytes: usize,
        /// The only possible size.
        fixed_bytes: usize,
    },
}

impl fmt::Display for DatasetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownShape { name } => {
                let names: Vec<_> = SHAPES.iter().map(|shape| shape.name).collect();
                write!(f, "'{name}' is not a shape; there are {}", names.join(", "))
            }
            Self::TooSmall { shape, document_bytes, least_bytes } => {
                write!(f, "{document_bytes} bytes do not hold the fields of '{shape}', which take {least_bytes}")
            }
            Self::TooLarge { document_bytes } => {
                write!(f, "{document_bytes} bytes are more than a document may have: {MAX_USER_DOCUMENT_BYTES}")
            }
            Self::FixedSize { shape, document_bytes, fixed_bytes } => {
                write!(f, "documents of '{shape}' have {fixed_bytes} bytes, not {document_bytes}: nothing pads them")
            }
        }
    }
}

impl std::error::Error for DatasetError {}
