//! Other collections, for stages that read them.

use crate::{DocumentStream, Environment};
use bunko_bson::{ArrayRef, DocumentBuf, Element, StringOrder, ValueRef};
use bunko_errors::{Failure, Result};
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
    /// The path is `_id`: [`Sources::by_id`].
    Id,
    /// An index begins with the path: open a pipeline that filters by it.
    Index,
    /// All documents have to be looked at.
    Scan,
}

/// A stage that begins a pipeline with documents of the server's own.
pub struct SourceStage {
    /// With its `$`.
    pub name: &'static str,
    /// Makes the documents, whenever the pipeline is opened.
    pub documents: Box<dyn Fn() -> Result<Vec<DocumentBuf>> + Send + Sync>,
}

/// The collections of the server as one pipeline sees them: **at one moment**, whenever which stage reads them.
pub trait Sources: Send + Sync + fmt::Debug {
    /// Learns, while the pipeline is parsed, of a collection that it reads; all are noted before the first is opened.
    /// # Errors
    /// `InvalidNamespace`; those of views that lead nowhere.
    fn note(&self, source: &SourceName) -> Result<()>;

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

    /// The document with that `_id`, where [`Self::access`] says so. Nulls, arrays and regexes mean more than equality
    /// and are not to be asked for.
    /// # Errors
    /// Those of the storage.
    fn by_id(&self, source: &SourceName, id: ValueRef<'_>) -> Result<Option<DocumentBuf>>;

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
    fn note(&self, source: &SourceName) -> Result<()> {
        Err(Self::refusal(source))
    }

    fn open(&self, source: &SourceName, _: ArrayRef<'_>, _: &Environment) -> Result<Box<dyn DocumentStream>> {
        Err(Self::refusal(source))
    }

    fn access(&self, _: &SourceName, _: &str, _: &StringOrder) -> Access {
        Access::Scan
    }

    fn by_id(&self, source: &SourceName, _: ValueRef<'_>) -> Result<Option<DocumentBuf>> {
        Err(Self::refusal(source))
    }
}
