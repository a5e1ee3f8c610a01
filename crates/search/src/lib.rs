//! Search indexes and the language of `$search`: definitions, the indexed view of documents, and searches.
//!
//! A definition (`definition`) says which fields are indexed and how texts are analyzed (`analysis`). By it, a document
//! is read as a `unit`, and `postings` has the words of all documents. `search` runs a query: `evaluation` has the
//! statistics of words, each of `operators` finds documents and scores them (BM25, with the constants of `evaluation`),
//! and `score` changes the score as the query asks.
//!
//! **Invariant:** a definition is kept as the client sent it, and everything else is derived from that document.
//! **Invariant:** input is checked once: a [`Reader`] refuses unknown fields and wrong types, and the parsed types are
//! not checked again.
//! **Invariant:** pure; the same documents in the same order have the same scores.
#![forbid(unsafe_code)]

mod analysis;
mod completion;
mod definition;
mod details;
mod evaluation;
mod facet;
mod function;
mod fuzzy;
mod geography;
mod highlight;
mod index_definition;
mod operators;
mod paths;
mod postings;
mod query;
mod reader;
mod schema;
mod score;
mod search;
#[cfg(test)]
mod settings_count;
mod sort;
mod stored;
mod token;
mod unit;
mod vector_definition;

pub use definition::{
    Autocomplete, Definition, FieldType, KeptOfWords, Mapping, NormalizerName, StoredSource, StringField, Synonyms,
    Tokenization,
};
pub use index_definition::SearchIndexDefinition;
pub use postings::Postings;
pub use query::{SearchQuery, SearchStage, has_true};
pub use reader::{Reader, Refusal};
pub use schema::Schema;
pub use search::{Documents, FOUND_BYTES_MAX, Hit, Search, SearchResult, Shown, metadata_of_nothing};
pub use token::SequenceToken;
pub use vector_definition::{Similarity, VectorDefinition, VectorField};
