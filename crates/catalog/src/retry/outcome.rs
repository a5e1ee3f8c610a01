//! Outcomes of statements, kept so that a repeated statement gets the same answer.

use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef};

/// The outcome of a statement that changed something.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// One document was inserted, changed or deleted.
    One,
    /// An update inserted a document with this `_id`.
    Upserted(Value),
    /// A findAndModify changed one document.
    Returned {
        /// The document that the findAndModify returned; `None` if it returned null.
        value: Option<DocumentBuf>,
        /// The `_id` of the document that the findAndModify inserted; `None` if it changed one.
        upserted: Option<Value>,
        /// Its change to the document; `None` if an earlier version of Bunko, which did not record this, made the
        /// change.
        did: Option<Did>,
    },
}

/// The change that a findAndModify made to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// Removed the document, and returned it.
    Removed,
    /// Updated or inserted the document, and returned the document in this state.
    Updated(Image),
}

/// A state of an updated document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// Before the update.
    Before,
    /// After the update.
    After,
}

impl Did {
    /// All values, with their names in records.
    const NAMES: [(Self, &'static str); 3] =
        [(Self::Removed, "removed"), (Self::Updated(Image::Before), "before"), (Self::Updated(Image::After), "after")];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(did, _)| *did == self).expect("all have a name").1
    }

    fn of_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, own)| *own == name).map(|(did, _)| *did)
    }
}

impl Outcome {
    /// The outcome as a record stores it; `None` for [`Outcome::One`].
    pub(super) fn encode(&self) -> Option<DocumentBuf> {
        match self {
            Self::One => None,
            Self::Upserted(id) => Some(DocumentBuf::new().with("upserted", id)),
            Self::Returned { value, upserted, did } => {
                let mut document = match value {
                    Some(value) => DocumentBuf::new().with("value", value),
                    None => DocumentBuf::new().with("value", ValueRef::Null),
                };
                if let Some(id) = upserted {
                    document.append("upserted", id);
                }
                if let Some(did) = did {
                    document.append("did", did.name());
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
                let did = document.get("did").and_then(ValueRef::as_str).and_then(Did::of_name);
                Self::Returned { value: value.as_document().map(DocumentRef::to_owned), upserted, did }
            }
            (None, Some(id)) => Self::Upserted(id),
            (None, None) => Self::One,
        }
    }
}
