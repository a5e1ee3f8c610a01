//! Filters of stages that search on their own.

use bunko_bson::{DocumentRef, Element, ValueRef};
use bunko_errors::{Failure, Result};

/// Visits the conditions of a filter, also those inside `$and`, `$or` and `$nor`.
/// # Errors
/// Errors of `visit`.
pub(super) fn visit_conditions(
    filter: DocumentRef<'_>,
    visit: &mut dyn FnMut(&Element<'_>) -> Result<()>,
) -> Result<()> {
    for condition in filter {
        match (condition.name, condition.value) {
            ("$and" | "$or" | "$nor", ValueRef::Array(clauses)) => {
                for clause in clauses.iter().filter_map(ValueRef::as_document) {
                    visit_conditions(clause, visit)?;
                }
            }
            _ => visit(&condition)?,
        }
    }
    Ok(())
}

/// Refuses a condition that cannot be combined with another kind of search.
/// # Errors
/// `BadValue` for `$text` and `$where`.
pub(super) fn refuse_elsewhere_only(condition: &Element<'_>) -> Result<()> {
    match condition.name {
        name @ ("$text" | "$where") => Err(Failure::bad_value(format!("{name} is not allowed in this context"))),
        _ => Ok(()),
    }
}
