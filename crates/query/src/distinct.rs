//! The distinct values of one field.

use crate::distinct_values::visit_values;
use crate::execution::Execution;
use crate::find_query::{Distinct, DistinctOf, FindQuery};
use crate::plan::Plan;
use crate::planner;
use bunko_bson::key_string::Direction;
use bunko_bson::{ArrayBuf, DocumentRef, MAX_USER_DOCUMENT_BYTES, StringOrder, ValueRef};
use bunko_catalog::Collection;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A query for the distinct values at `path` in its matches.
pub fn distinct_query(query: FindQuery, path: &str) -> FindQuery {
    let distinct = Distinct { path: path.into(), of: DistinctOf::Elements, order: None, count: 1 };
    FindQuery { sort: None, projection: None, distinct: Some(distinct), ..query }
}

/// The distinct values at `path` in the documents that the query matches, in ascending order. An array counts as
/// its elements, one level deep; a missing field as nothing. Equal numbers of different types are one value.
/// # Errors
/// 17217 for more than 16 MiB of values; as [`crate::plan`] and [`crate::Execution::next`].
pub fn distinct(collection: &Arc<Collection>, path: &str, query: FindQuery) -> Result<ArrayBuf> {
    let plan = planner::plan(collection, distinct_query(query, path))?;
    Ok(distinct_of_plan(&plan, path)?.0)
}

/// As [`distinct`], for the plan of a [`distinct_query`] with this path. Returns the execution too.
/// # Errors
/// As [`distinct`].
pub fn distinct_of_plan(plan: &Plan, path: &str) -> Result<(ArrayBuf, Execution)> {
    let scope = &plan.query().scope;
    let mut values = DistinctValues::new(Arc::clone(&scope.operation), scope.strings.clone());
    let mut execution = plan.open()?;
    while let Some(document) = execution.next()? {
        values.add(document, path)?;
    }
    Ok((values.into_found(), execution))
}

/// Collects the distinct values at one path.
pub struct DistinctValues {
    operation: Arc<OperationContext>,
    strings: StringOrder,
    found: ArrayBuf,
    /// Positions in `found` by key string, so in value order.
    seen: BTreeMap<Vec<u8>, usize>,
    key: Vec<u8>,
}

impl DistinctValues {
    /// An empty collection of values. Values are compared with this string order; work counts for `operation`.
    pub fn new(operation: Arc<OperationContext>, strings: StringOrder) -> Self {
        Self { operation, strings, found: ArrayBuf::new(), seen: BTreeMap::new(), key: Vec::new() }
    }

    /// The values in ascending order.
    pub fn into_found(self) -> ArrayBuf {
        let found: Vec<_> = self.found.as_ref().iter().collect();
        self.seen.values().filter_map(|position| found.get(*position).copied()).collect()
    }

    /// Adds the values at `path` in a document.
    /// # Errors
    /// 17217 for more than 16 MiB of values.
    pub fn add(&mut self, document: DocumentRef<'_>, path: &str) -> Result<()> {
        let operation = Arc::clone(&self.operation);
        visit_values(&operation, document, path, &mut |value| self.add_value(value))
    }

    fn add_value(&mut self, value: ValueRef<'_>) -> Result<()> {
        self.key.clear();
        self.strings.append_key(&mut self.key, value, Direction::Ascending);
        self.operation.work(1 + self.key.len() / 64)?;
        if self.seen.contains_key(&self.key) {
            return Ok(());
        }
        self.seen.insert(self.key.clone(), self.seen.len());
        self.found.push(value);
        if self.found.as_ref().as_document().len_bytes() > MAX_USER_DOCUMENT_BYTES {
            return Err(Failure::new(ErrorCode(17217), "distinct too big, 16mb cap"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn of(path: &str, documents: &[&str]) -> String {
        let mut values = DistinctValues::new(OperationContext::unlimited(), StringOrder::default());
        for document in documents {
            let document = shell::parse_document(document).expect("a document");
            values.add(document.as_ref(), path).expect("few values");
        }
        shell::print(ValueRef::Array(values.into_found().as_ref()))
    }

    #[test]
    fn arrays_are_unwound_one_level_and_equal_numbers_are_one() {
        assert_eq!(of("a", &["{a: 1}", "{a: [2, 1.0, [3, 2]]}", "{a: []}", "{b: 1}"]), "[1, 2, [3, 2]]");
        assert_eq!(of("a", &["{a: null}", "{a: 'x'}", "{a: undefined}"]), "[undefined, null, \"x\"]");
    }

    #[test]
    fn paths_lead_through_arrays_and_positions() {
        assert_eq!(of("a.b", &["{a: [{b: 1}, {b: [2, 3]}, 7, [{b: 9}]]}", "{a: {b: 4}}", "{a: 5}"]), "[1, 2, 3, 4]");
        assert_eq!(of("a.1.b", &["{a: [{b: 1}, {b: 2}]}", "{a: {'1': {b: 3}}}"]), "[2, 3]");
    }
}
