//! Update operators, pure functions from one document to the next.
