//! Other collections, for stages that read them.

use crate::{DocumentStream, Environment};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Element, StringOrder, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_search::SearchIndexDefinition;
use std::fmt;

/// A collection or view that a stage names; in the pipeline's database if the stage names none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceName {
    /// The database, if the stage names it.
    pub database: Option<String>,
    /// The collection's name, unchecked.
    pub collection: String,
}

impl SourceName {
    /// A name in the pipeline's database.
    pub fn here(collection: &str) -> Self {
        Self { database: None, collection: collection.to_owned() }
    }
}

/// The fastest way to find documents by the value of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The path is `_id`: [`Sources::lookups`] finds the documents.
    Id,
    /// An index begins with the path: [`Sources::lookups`] or a filtering pipeline finds the documents.
    Index,
    /// All documents have to be read.
    Scan,
}

/// Receives each document that was looked up.
pub type LookupVisitor<'v> = dyn FnMut(DocumentRef<'_>) -> Result<()> + 'v;

/// Repeated lookups in one collection, one value each.
pub trait Lookups: Send {
    /// Shows the documents whose path equals the value. Returns false, and shows none, if lookups cannot find this
    /// value.
    /// # Errors
    /// Errors of storage, of the visitor and of the operation.
    fn find(&mut self, value: ValueRef<'_>, visitor: &mut LookupVisitor<'_>) -> Result<bool>;
}

/// Documents of a search, best first.
pub trait ScoredDocuments: Send {
    /// The next document with its score; `None` at the end.
    /// # Errors
    /// Errors of storage and of the operation.
    fn next(&mut self) -> Result<Option<(DocumentBuf, f64)>>;
}

/// A stage that begins a pipeline with the server's own documents.
pub struct SourceStage {
    /// Name with its `$`.
    pub name: &'static str,
    /// Makes the documents, each time the pipeline is opened.
    pub documents: Box<dyn Fn() -> Result<Vec<DocumentBuf>> + Send + Sync>,
}

/// A collection for searches by its search indexes, on one snapshot.
pub trait Searched: Send {
    /// The search index with this name; later calls use it.
    fn index(&mut self, name: &str) -> Option<SearchIndexDefinition>;

    /// Whether reading all documents takes so long that other work would be delayed.
    fn is_long(&self) -> bool;

    /// The collection's documents.
    fn documents(&mut self) -> &mut dyn bunko_search::Documents;

    /// The document of a record.
    /// # Errors
    /// Errors of storage.
    fn document(&mut self, record: i64) -> Result<Option<DocumentBuf>>;
}

/// The collections that one pipeline reads, **in one snapshot**, whichever stage reads them and whenever.
pub trait Sources: Send + Sync + fmt::Debug {
    /// Announces a collection and its string order while the pipeline is parsed. All collections are announced before
    /// the first is opened.
    /// # Errors
    /// `InvalidNamespace`; errors of views that lead nowhere; `OptionNotSupportedOnView` for a view with another string
    /// order.
    fn note(&self, source: &SourceName, strings: &StringOrder) -> Result<()>;

    /// Opens a pipeline over a collection or view, in the pipeline's environment; a missing collection is empty.
    /// # Errors
    /// Errors of parsing the pipeline and of planning.
    fn open(
        &self,
        source: &SourceName,
        pipeline: ArrayRef<'_>,
        environment: &Environment,
    ) -> Result<Box<dyn DocumentStream>>;

    /// Chooses the way to find documents whose `path` equals a value, in this string order.
    fn access(&self, source: &SourceName, path: &str, strings: &StringOrder) -> Access;

    /// Whether a plan finds the documents whose `path` equals a value as `$expr` compares it, arrays whole, without
    /// reading all documents.
    fn finds_whole_values(&self, _source: &SourceName, _path: &str, _strings: &StringOrder) -> bool {
        false
    }

    /// Lookups by values of `path`, without a plan per value; `None` if there is no such way.
    /// # Errors
    /// Errors of the operation's transaction.
    fn lookups(&self, _source: &SourceName, _path: &str, _strings: &StringOrder) -> Result<Option<Box<dyn Lookups>>> {
        Ok(None)
    }

    /// Finds the documents of a collection or view with the nearest vectors, by the specification of a `$vectorSearch`;
    /// none if the collection or the index does not exist.
    /// # Errors
    /// Errors of the search node in the specification, of storage and of the operation.
    fn nearest(&self, _over: &SourceName, _specification: DocumentRef<'_>) -> Result<Box<dyn ScoredDocuments>> {
        Err(Failure::not_supported_yet("$vectorSearch here"))
    }

    /// A collection for a search, below all views; `None` if it does not exist.
    /// # Errors
    /// `InvalidNamespace`; errors of the operation's transaction.
    fn searched(&self, _source: &SourceName) -> Result<Option<Box<dyn Searched>>> {
        Ok(None)
    }

    /// Checks whether a source stage may begin a pipeline over this collection, or over none. Ignores other names.
    /// # Errors
    /// `InvalidNamespace`.
    fn check_source_stage(&self, _name: &str, _over: Option<&SourceName>) -> Result<()> {
        Ok(())
    }

    /// Parses a source stage, if the server has one with that name.
    /// # Errors
    /// As [`Self::check_source_stage`]; errors of the specification.
    fn source_stage(&self, _stage: Element<'_>, _over: Option<&SourceName>) -> Result<Option<SourceStage>> {
        Ok(None)
    }
}

/// Sources without any readable collection.
#[derive(Debug)]
pub struct NoSources;

impl NoSources {
    fn refusal(source: &SourceName) -> Failure {
        Failure::not_supported_yet(&format!("reading the collection '{}' here", source.collection))
    }
}

impl Sources for NoSources {
    fn note(&self, source: &SourceName, _strings: &StringOrder) -> Result<()> {
        Err(Self::refusal(source))
    }

    fn open(&self, source: &SourceName, _: ArrayRef<'_>, _: &Environment) -> Result<Box<dyn DocumentStream>> {
        Err(Self::refusal(source))
    }

    fn access(&self, _: &SourceName, _: &str, _: &StringOrder) -> Access {
        Access::Scan
    }
}
