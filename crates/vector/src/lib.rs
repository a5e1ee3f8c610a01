//! Vector search: the vectors of documents, how near two vectors are, filters, and the language of `$vectorSearch`.
//!
//! A [`Table`] has the vectors and the filter fields of one index in memory, by record. A [`Request`] asks for the
//! nearest of them. [`Table::search`] and [`Scan`], which keeps nothing, give the same answer, except for documents
//! that an approximate search misses.
//!
//! **Invariant:** pure, and no input makes it panic. Loops count their work.
//! **Invariant:** a row of a table is never reused for another document: a changed document gets a new row.

mod bitmap;
mod column;
mod components;
mod definition;
mod dotted;
mod filter;
mod filter_column;
mod graph;
mod kernels;
mod lane;
mod nearest;
mod query_error;
mod request;
mod scan;
mod similarity;
mod table;
mod token;
mod token_test;

pub use column::{GRAPH_FROM, Growing};
pub use components::{ComponentKind, Components};
pub use definition::{Definition, VectorField};
pub use filter::Filter;
pub use nearest::Nearest;
pub use query_error::query_error;
pub use request::Request;
pub use scan::Scan;
pub use similarity::Similarity;
pub use table::{Hit, Table};
