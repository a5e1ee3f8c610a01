//! Search indexes and the language of `$search`: definitions, and what they say of documents.
//!
//! **Invariant:** a definition is kept as the client sent it, and all else follows from that document.
//! **Invariant:** what is read strictly is read once: unknown fields and wrong types stop in a [`Reader`], and what is made
//! of it is not checked again.
#![forbid(unsafe_code)]

mod definition;
mod index_definition;
mod reader;
mod vector_definition;

pub use definition::{
    Autocomplete, Definition, FieldType, Mapping, NormalizerName, StoredSource, StringField, Synonyms, Tokenization,
};
pub use index_definition::SearchIndexDefinition;
pub use reader::{Reader, Refusal};
pub use vector_definition::{Quantization, Similarity, VectorDefinition, VectorField};
