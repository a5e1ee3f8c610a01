//! The array filters of one update, by identifier.

use bunko_bson::{DocumentRef, StringOrder, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_matcher::ArrayFilter;
use bunko_operation::OperationContext;
use std::collections::HashMap;

use bunko_bson::text::ValueText;

/// Filters in the order given, and whether a path uses each.
#[derive(Debug, Default)]
pub(crate) struct ArrayFilters {
    filters: Vec<ArrayFilter>,
    used: Vec<bool>,
    positions: HashMap<String, usize>,
}

impl ArrayFilters {
    /// # Errors
    /// Errors of parsing a filter; `FailedToParse` if two filters have one identifier.
    pub fn parse(
        documents: &[DocumentRef<'_>],
        strings: &StringOrder,
        operation: Option<&OperationContext>,
    ) -> Result<Self> {
        let mut filters: Vec<ArrayFilter> = Vec::with_capacity(documents.len());
        let mut positions = HashMap::new();
        for document in documents {
            let filter = ArrayFilter::parse(*document, strings, operation)?;
            if positions.insert(filter.identifier().to_owned(), filters.len()).is_some() {
                let identifier = filter.identifier();
                let message = format!("Found multiple array filters with the same top-level field name {identifier}");
                return Err(Failure::failed_to_parse(message));
            }
            filters.push(filter);
        }
        Ok(Self { used: vec![false; filters.len()], filters, positions })
    }

    /// Finds the position of the filter with that identifier, and marks the filter as used.
    pub fn find(&mut self, identifier: &str) -> Option<usize> {
        let position = *self.positions.get(identifier)?;
        self.used[position] = true;
        Some(position)
    }

    /// # Errors
    /// `FailedToParse` for the first filter that no path of `update` uses.
    pub fn check_all_used(&self, update: DocumentRef<'_>) -> Result<()> {
        let Some(unused) = self.used.iter().position(|used| !used) else { return Ok(()) };
        let identifier = self.filters[unused].identifier();
        Err(Failure::failed_to_parse(format!(
            "The array filter for identifier '{identifier}' was not used in the update {}",
            ValueText(update.into())
        )))
    }

    /// Whether the filter at `position` matches an array element.
    /// # Errors
    /// Errors of the operation.
    pub fn matches(&self, position: usize, element: ValueRef<'_>, operation: &OperationContext) -> Result<bool> {
        self.filters[position].matches(element, operation)
    }
}
