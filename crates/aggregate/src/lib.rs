//! Aggregation pipelines: a table of stages over a document stream.
