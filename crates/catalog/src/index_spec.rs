//! Index specifications as given to `createIndexes`: checked, and in the form that `listIndexes` shows.
//!
//! The catalog stores that form. At each start, all properties of an index are derived from it.

mod asked;
mod compound_wildcard;
mod options;
mod parse;

use crate::IndexField;
use crate::index_kind::IndexKind;
use crate::partial_filter::PartialFilter;
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, ValueRef, order};
use bunko_errors::Result;
use std::sync::Arc;

/// The name of the `_id` index of a collection that is not clustered.
pub const ID_INDEX: &str = "_id_";

/// Options that distinguish two indexes with the same keys, so that a collection may have both.
const SIGNATURE: &[&str] = &["partialFilterExpression", "collation", "wildcardProjection", "originalSpec"];
/// Options that do not distinguish two indexes.
const NO_DIFFERENCE: &[&str] = &["v", "key", "name", "background", "unique", "sparse", "storageEngine"];

/// A checked index specification.
#[derive(Clone, Debug)]
pub struct IndexSpec {
    /// The index's name.
    pub name: String,
    /// How keys are made from documents.
    pub kind: Arc<dyn IndexKind>,
    /// The fields, in order.
    pub fields: Arc<[IndexField]>,
    /// Whether keys are unique.
    pub is_unique: bool,
    /// Whether new duplicates are refused, although existing documents may have equal keys.
    pub prepares_unique: bool,
    /// Whether the index became unique after its keys were made; its keys therefore end with the record.
    pub(crate) was_converted: bool,
    /// Whether this is the index on `_id` of a clustered collection.
    pub is_clustered: bool,
    /// Whether documents without any of the index's fields have no keys.
    pub is_sparse: bool,
    /// Whether queries ignore the index.
    pub is_hidden: bool,
    /// The filter of documents that have keys; `None` if all do.
    pub partial_filter: Option<Arc<PartialFilter>>,
    /// How many seconds after the date in its field a document is deleted.
    pub expire_after_seconds: Option<i32>,
    /// The order of the strings in its keys.
    pub strings: StringOrder,
    /// Whether `strings` is final: given with the specification, or already set from the collection.
    has_own_strings: bool,
    /// The specification as `listIndexes` shows it.
    pub document: DocumentBuf,
    /// Whether this is an ordered index with keys of all documents.
    pub(crate) is_plain: bool,
    /// Whether the types of the values in the index's keys are recorded.
    pub tells_types: bool,
}

impl IndexSpec {
    /// Marks the index as one that became unique after its keys were made.
    #[must_use]
    pub(crate) fn converted(self) -> Self {
        Self { was_converted: true, ..self }
    }

    /// Sets `v`, the version, which is shown but has no effect.
    #[must_use]
    pub fn with_version(self, version: i32) -> Self {
        let mut document = DocumentBuf::new().with("v", version);
        for element in self.document.as_ref().iter().filter(|element| element.name != "v") {
            document.append(element.name, element.value);
        }
        Self { document, ..self }
    }

    /// Sets the order of strings, unless it has been set before.
    #[must_use]
    pub fn with_strings(self, strings: &StringOrder) -> Self {
        if self.has_own_strings {
            return self;
        }
        let mut document = self.document;
        if let Some(collator) = strings.collator() {
            document.append("collation", collator.specification());
        }
        // The filter has already been parsed in byte order, and no other order makes it malformed.
        let collated = |filter| PartialFilter::parse(filter, strings).expect("a filter that was parsed before");
        let filter = document.as_ref().get("partialFilterExpression").and_then(ValueRef::as_document);
        let partial_filter = filter.map(|filter| Arc::new(collated(filter)));
        Self { strings: strings.clone(), has_own_strings: true, partial_filter, document, ..self }
    }

    /// Sets these options; an option with the value null is removed.
    /// # Errors
    /// As [`Self::parse`].
    pub(crate) fn with_options(&self, options: DocumentRef<'_>) -> Result<Self> {
        let mut document = DocumentBuf::new();
        for element in self.document.as_ref().iter().filter(|element| options.get(element.name).is_none()) {
            document.append(element.name, element.value);
        }
        for element in options.iter().filter(|element| !element.value.is_nullish()) {
            document.append(element.name, element.value);
        }
        Ok(Self { was_converted: self.was_converted, ..Self::parse(document.as_ref())? })
    }

    /// The key pattern, such as `{a: 1, b: -1}`.
    pub fn key_pattern(&self) -> DocumentRef<'_> {
        self.document.as_ref().get("key").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY)
    }

    /// Whether this is the index on `_id`.
    pub fn is_id(&self) -> bool {
        self.name == ID_INDEX || self.is_clustered
    }

    /// Whether keys end with the record, because several keys may be equal, or once might have been.
    pub fn ends_with_record(&self) -> bool {
        !self.is_unique || self.was_converted
    }

    /// Whether a collection can have only one of the two indexes: they have the same keys of the same documents.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        order::compare_documents(self.key_pattern(), other.key_pattern()).is_eq()
            && self.is_unique == other.is_unique
            && self.is_sparse == other.is_sparse
            && SIGNATURE.iter().all(|name| self.has_same_option(other, name))
    }

    /// Whether two specifications agree on an option.
    fn has_same_option(&self, other: &Self, name: &str) -> bool {
        match (name, &self.partial_filter, &other.partial_filter) {
            ("partialFilterExpression", Some(own), Some(others)) => own.is_equivalent(others),
            _ => same_value(self.document.as_ref().get(name), other.document.as_ref().get(name)),
        }
    }

    /// Whether two indexes that are alike also agree on all other options.
    pub(crate) fn has_same_options(&self, other: &Self) -> bool {
        let (own, others) = (self.document.as_ref(), other.document.as_ref());
        let matters = |name: &str| !NO_DIFFERENCE.contains(&name);
        let names = own.iter().chain(others.iter()).map(|element| element.name).filter(|name| matters(name));
        names.into_iter().all(|name| self.has_same_option(other, name))
    }
}

fn same_value(one: Option<ValueRef<'_>>, other: Option<ValueRef<'_>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => order::equal(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}
