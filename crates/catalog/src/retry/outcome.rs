//! What a statement answered, for whoever sends it again.

use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef};

/// What a statement that changed something answered.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// One document was inserted, changed or deleted.
    One,
    /// An update inserted a document with this `_id`.
    Upserted(Value),
    /// A findAndModify changed one document.
    Returned {
        /// What it returned of it.
        value: Option<DocumentBuf>,
        /// The `_id` of the document that it inserted instead.
        upserted: Option<Value>,
    },
}

impl Outcome {
    /// As it stands in a record; nothing for the usual.
    pub(super) fn encode(&self) -> Option<DocumentBuf> {
        match self {
            Self::One => None,
            Self::Upserted(id) => Some(DocumentBuf::new().with("upserted", id)),
            Self::Returned { value, upserted } => {
                let mut document = match value {
                    Some(value) => DocumentBuf::new().with("value", value),
                    None => DocumentBuf::new().with("value", ValueRef::Null),
                };
                if let Some(id) = upserted {
                    document.append("upserted", id);
                }
                Some(document)
            }
        }
    }

    pub(super) fn decode(document: Option<DocumentRef<'_>>) -> Self {
        let Some(document) = document else { return Self::One };
        let upserted = document.get("upserted").map(ValueRef::to_value);
        match (document.get("value"), upserted) {
            (Some(value), upserted) => {
                Self::Returned { value: value.as_document().map(DocumentRef::to_owned), upserted }
            }
            (None, Some(id)) => Self::Upserted(id),
            (None, None) => Self::One,
        }
    }
}
