//! Aggregation expressions, pure functions of a document and variables.
