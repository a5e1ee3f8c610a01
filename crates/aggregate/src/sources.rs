//! Other collections, for stages that read them.

use crate::{DocumentStream, Environment};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Element, StringOrder, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_search::SearchIndexDefinition;
use std::fmt;

/// A collection or view that a stage names; in the pipeline's own database where none is said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceName {
    /// The database, where the stage says it.
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

/// The quickest way to the documents whose path equals a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The path is `_id`: [`Sources::lookups`] finds them.
    Id,
    /// An index begins with the path: [`Sources::lookups`], or a pipeline that filters by it.
    Index,
    /// All documents have to be looked at.
    Scan,
}

/// Takes a document that was looked up.
pub type LookupVisitor<'v> = dyn FnMut(DocumentRef<'_>) -> Result<()> + 'v;

/// Documents of one collection by one value each, found the same way every time.
pub trait Lookups: Send {
    /// Shows the documents whose path equals the value; false, with none shown, where this way does not find them.
    /// # Errors
    /// Those of the storage, and the visitor's own; what the operation says.
    fn find(&mut self, value: ValueRef<'_>, visitor: &mut LookupVisitor<'_>) -> Result<bool>;
}

/// Documents that a search found, the best first.
pub trait ScoredDocuments: Send {
    /// The next one with its score; nothing after the last.
    /// # Errors
    /// Those of the storage; what the operation says.
    fn next(&mut self) -> Result<Option<(DocumentBuf, f64)>>;
}

/// A stage that begins a pipeline with documents of the server's own.
pub struct SourceStage {
    /// With its `$`.
    pub name: &'static str,
    /// Makes the documents, whenever the pipeline is opened.
    pub documents: Box<dyn Fn() -> Result<Vec<DocumentBuf>> + Send + Sync>,
}

/// A collection whose search indexes are asked, at one moment.
pub trait Searched: Send {
    /// The search index with that name, which is asked from now on.
    fn index(&mut self, name: &str) -> Option<SearchIndexDefinition>;

    /// Whether others would notice how long it takes to look at all documents.
    fn is_long(&self) -> bool;

    /// Its documents.
    fn documents(&mut self) -> &mut dyn bunko_search::Documents;

    /// The document of a record.
    /// # Errors
    /// Those of the storage.
    fn document(&mut self, record: i64) -> Result<Option<DocumentBuf>>;
}

/// The collections of the server as one pipeline sees them: **at one moment**, whenever which stage reads them.
pub trait Sources: Send + Sync + fmt::Debug {
    /// Learns, while the pipeline is parsed, of a collection that it reads with that order of strings; all are noted before
    /// the first is opened.
    /// # Errors
    /// `InvalidNamespace`; those of views that lead nowhere; `OptionNotSupportedOnView` for a view with another order.
    fn note(&self, source: &SourceName, strings: &StringOrder) -> Result<()>;

    /// Opens the documents of a collection or view under a pipeline; those of none where it does not exist. The
    /// environment is that of the pipeline.
    /// # Errors
    /// Those of parsing the pipeline; what planning fails with.
    fn open(
        &self,
        source: &SourceName,
        pipeline: ArrayRef<'_>,
        environment: &Environment,
    ) -> Result<Box<dyn DocumentStream>>;

    /// How the documents are found whose `path` equals a value, strings being in that order.
    fn access(&self, source: &SourceName, path: &str, strings: &StringOrder) -> Access;

    /// A way to the documents whose `path` equals one value that needs no plan for each; `None` where there is none.
    /// # Errors
    /// Those of the operation's transaction.
    fn lookups(&self, _source: &SourceName, _path: &str, _strings: &StringOrder) -> Result<Option<Box<dyn Lookups>>> {
        Ok(None)
    }

    /// Finds the documents of a collection or view whose vectors are nearest to one, as the specification of a
    /// `$vectorSearch` says; none where there is no collection, or no index of that name.
    /// # Errors
    /// Those of the search node for the specification; those of the storage; what the operation says.
    fn nearest(&self, _over: &SourceName, _specification: DocumentRef<'_>) -> Result<Box<dyn ScoredDocuments>> {
        Err(Failure::not_supported_yet("$vectorSearch here"))
    }

    /// A collection for a search; that below all views, and none where there is none.
    /// # Errors
    /// `InvalidNamespace`; those of the operation's transaction.
    fn searched(&self, _source: &SourceName) -> Result<Option<Box<dyn Searched>>> {
        Ok(None)
    }

    /// Whether a source stage may begin a pipeline over that collection, or over none. Other names mean nothing here.
    /// # Errors
    /// `InvalidNamespace`.
    fn check_source_stage(&self, _name: &str, _over: Option<&SourceName>) -> Result<()> {
        Ok(())
    }

    /// Reads a source stage, where the server has one of that name.
    /// # Errors
    /// As [`Self::check_source_stage`]; those of the specification.
    fn source_stage(&self, _stage: Element<'_>, _over: Option<&SourceName>) -> Result<Option<SourceStage>> {
        Ok(None)
    }
}

/// Where no collection can be read.
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
