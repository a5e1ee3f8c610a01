//! What cannot be generated.

use crate::shapes::SHAPES;
use bunko_bson::MAX_USER_DOCUMENT_BYTES;
use std::fmt;

/// Why there is no such dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatasetError {
    /// No shape has that name.
    UnknownShape {
        /// What was asked for.
        name: String,
    },
    /// The fields alone take more than the document may.
    TooSmall {
        /// The shape's name.
        shape: &'static str,
        /// What was asked for.
        document_bytes: usize,
        /// The smallest size that holds the fields.
        least_bytes: usize,
    },
    /// More than a server stores.
    TooLarge {
        /// What was asked for.
        document_bytes: usize,
    },
    /// The shape has no pad that could be made longer.
    FixedSize {
        /// The shape's name.
        shape: &'static str,
        /// What was asked for.
        document_bytes: usize,
        /// The only size there is.
        fixed_bytes: usize,
    },
}

impl fmt::Display for DatasetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownShape { name } => {
                let names: Vec<_> = SHAPES.iter().map(|shape| shape.name).collect();
                write!(f, "'{name}' is no shape; there are {}", names.join(", "))
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
