//! An operator at one path, and its effect there.

use crate::context::ApplyContext;
use crate::document_fields::DocumentFields;
use crate::dotted_path::Trail;
use bunko_bson::text::ElementText;
use bunko_bson::{ArrayBuf, DocumentRef, Element, Value, ValueRef};
use bunko_errors::Result;
use std::fmt;

/// An operator and its argument, at one path.
pub(crate) trait Modifier: fmt::Debug + Send + Sync {
    /// Computes the effect on the value at the path; `current` is `None` if there is no value.
    fn modify<'a>(&'a self, current: Option<ValueRef<'a>>, scene: &Scene<'a>) -> Result<Effect<'a>>;

    /// How an operator that creates nothing treats a path through a scalar.
    fn on_blocked_path(&self) -> BlockedPath {
        BlockedPath::Ignored
    }
}

/// The effect of a modifier on the value at its path.
#[derive(Debug)]
pub(crate) enum Effect<'a> {
    Keep,
    Remove,
    /// A value borrowed from the update or the document.
    Set(ValueRef<'a>),
    /// A new value.
    Make(Value),
    /// A new array: the existing one, if there is one, with new elements appended.
    Append(ArrayBuf),
    /// A new value that counts as a change even if its bytes stay equal.
    MakeOther(Value),
}

/// Whether a path through a scalar is an error even if nothing would be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockedPath {
    Ignored,
    Refused,
}

/// The surroundings of the value that a modifier works on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    /// The document before the update.
    pub document: DocumentRef<'a>,
    pub context: &'a ApplyContext<'a>,
    pub fields: &'a DocumentFields<'a>,
    pub trail: &'a Trail<'a>,
}

impl Scene<'_> {
    /// The document's `_id` for messages: `_id: 1`.
    pub fn id(&self) -> String {
        match self.document.get("_id") {
            Some(value) => ElementText(Element { name: "_id", value }).to_string(),
            None => "no id".to_owned(),
        }
    }
}
