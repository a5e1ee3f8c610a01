//! Errors of vector queries, which all have one code.

use bunko_errors::{ErrorCode, Failure};

/// An error about a query.
/// Source: answers of MongoDB 8.2 with a search node: code 8, `UnknownError`.
pub fn query_error(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode(8), message)
}
