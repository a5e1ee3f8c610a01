//! Finds documents of another collection whose path equals one of several values.
//!
//! [`Sources`](crate::Sources) makes the [`Lookups`] once for a stage: by `_id` (`IdJoin` of `query`), or by an index
//! that begins with the path (`EqualityLookup`). Several values, nulls and arrays, and a pipeline where an index
//! serves, get a plan for each document. Without an index, one table of the whole collection is built.

use crate::added_filters::AddedFilters;
use crate::join_table::JoinTable;
use crate::joined_path::matched_values;
use crate::sub_pipeline::behind;
use crate::{Access, DocumentStream, Documents, Environment, LookupVisitor, Lookups, Pipeline, SourceName};
use bunko_bson::key_string::Direction;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_expression::FieldPath;
use bunko_matcher::Filter;
use bunko_operation::Gatherer;
use bunko_scratch::Spilled;
use std::sync::{Arc, OnceLock};

/// Finds documents by `_id`, by an index, or in a table built once from the whole collection.
pub(crate) struct EqualityJoin {
    source: SourceName,
    path: FieldPath,
    table: Option<Table>,
    /// How the collection is read; `None` before the first lookup. It stays valid, because the pipeline reads one
    /// snapshot.
    access: Option<Access>,
    one_value: OneValue,
    /// The kind of memory that the table counts against.
    gatherer: Gatherer,
    matching: Option<Matching>,
}

/// A filter on the documents of the other collection.
#[derive(Clone, Default)]
pub(crate) struct Matching {
    filters: AddedFilters,
    /// All filters as one, once a document was found.
    parsed: OnceLock<Arc<Filter>>,
}

impl Matching {
    /// Adds a condition.
    pub fn add(&mut self, filter: DocumentRef<'_>) {
        self.filters.add(filter);
        self.parsed = OnceLock::new();
    }

    /// # Errors
    /// Errors of the filter.
    fn parsed(&self, environment: &Environment) -> Result<&Filter> {
        if let Some(parsed) = self.parsed.get() {
            return Ok(parsed);
        }
        let parsed = bunko_query::parse_filter(self.filters.all().unwrap_or(DocumentRef::EMPTY), &environment.scope)?;
        Ok(self.parsed.get_or_init(|| Arc::new(parsed)))
    }

    /// The `$match` stage with the conditions; `None` if there are none.
    fn stage(&self) -> Option<DocumentBuf> {
        self.filters.stage()
    }
}

/// How the documents of a single value are found.
enum OneValue {
    /// No value was looked up yet.
    NotAsked,
    Lookups(Box<dyn Lookups>),
    /// The planner makes a plan for each value.
    Plans,
}

/// Documents of the other collection by the key strings of the values at the path.
enum Table {
    Built(Box<JoinTable>),
    /// The keys alone exceed a stage's memory, so the collection is scanned each time.
    TooLarge,
}

/// Table key of the documents that a filter for null finds. It is free, since no value has an empty key string.
const KEY_OF_NULL: &[u8] = &[];

impl EqualityJoin {
    /// Makes the join of a stage; a table counts as the stage's memory.
    pub fn new(source: SourceName, path: FieldPath, gatherer: Gatherer) -> Self {
        Self { source, path, table: None, access: None, one_value: OneValue::NotAsked, gatherer, matching: None }
    }

    /// Restricts the join to documents that match a filter, if there is one.
    #[must_use]
    pub fn matching(self, matching: Option<Matching>) -> Self {
        Self { matching, ..self }
    }

    /// Data of the other collection that was put on disk.
    pub fn spilled(&self) -> Spilled {
        match &self.table {
            Some(Table::Built(table)) => table.spilled(),
            _ => Spilled::default(),
        }
    }

    /// Opens a pipeline over the documents with any of the values, each document once.
    /// # Errors
    /// As [`crate::Sources::open`].
    pub fn open(
        &mut self,
        values: &[ValueRef<'_>],
        pipeline: ArrayRef<'_>,
        environment: &Environment,
    ) -> Result<Box<dyn DocumentStream>> {
        if values.is_empty() {
            return over(Vec::new(), pipeline, environment);
        }
        if let [value] = values
            && let Some(found) = self.look_up(*value, pipeline, environment)?
        {
            return over(found, pipeline, environment);
        }
        match self.access(environment) {
            Access::Id | Access::Index => {}
            Access::Scan => {
                if self.table.is_none() {
                    self.table = Some(self.build(environment)?);
                }
                if let Some(Table::Built(table)) = &mut self.table {
                    let found = find(table, values, environment)?;
                    return over(found, pipeline, environment);
                }
            }
        }
        let filter = match_any(&self.path, values);
        let more = self.matching.as_ref().and_then(Matching::stage);
        let filters: Vec<_> = std::iter::once(&filter).chain(&more).map(ValueRef::from).collect();
        let stages = behind(&filters, pipeline);
        environment.sources.open(&self.source, stages.as_ref(), environment)
    }

    /// Opens the pipeline over the documents that `$in` finds. A regex among the values matches as a pattern;
    /// [`Self::open`] compares it as a value.
    /// # Errors
    /// As [`crate::Sources::open`].
    pub fn open_with_patterns(
        &self,
        values: &[ValueRef<'_>],
        pipeline: ArrayRef<'_>,
        environment: &Environment,
    ) -> Result<Box<dyn DocumentStream>> {
        let any: ArrayBuf = values.iter().copied().collect();
        let condition = DocumentBuf::new().with("$in", &any);
        let filter = DocumentBuf::new().with("$match", &DocumentBuf::new().with(&self.path.dotted(), &condition));
        let stages = behind(&[ValueRef::from(&filter)], pipeline);
        environment.sources.open(&self.source, stages.as_ref(), environment)
    }

    /// Finds the documents of one value; `None` if a plan has to. If a pipeline follows, a plan may choose a better
    /// index.
    fn look_up(
        &mut self,
        value: ValueRef<'_>,
        pipeline: ArrayRef<'_>,
        environment: &Environment,
    ) -> Result<Option<Vec<DocumentBuf>>> {
        if self.access(environment) == Access::Index && !pipeline.is_empty() {
            return Ok(None);
        }
        let mut found = Vec::new();
        let is_told = self.visit(value, environment, &mut |document| {
            found.push(document.to_owned());
            Ok(())
        })?;
        Ok(is_told.then_some(found))
    }

    /// Shows the documents of one value to the visitor. Returns false, and shows none, if a plan has to find them.
    /// # Errors
    /// As [`Lookups::find`].
    pub fn visit(
        &mut self,
        value: ValueRef<'_>,
        environment: &Environment,
        visitor: &mut LookupVisitor<'_>,
    ) -> Result<bool> {
        if self.access(environment) == Access::Scan {
            return Ok(false);
        }
        if let OneValue::NotAsked = self.one_value {
            let lookups = environment.sources.lookups(&self.source, &self.path.dotted(), environment.strings())?;
            self.one_value = lookups.map_or(OneValue::Plans, OneValue::Lookups);
        }
        match &mut self.one_value {
            OneValue::Lookups(lookups) => match &self.matching {
                None => lookups.find(value, visitor),
                Some(matching) => {
                    let filter = matching.parsed(environment)?;
                    lookups.find(value, &mut |document| {
                        if filter.try_matches(document)? { visitor(document) } else { Ok(()) }
                    })
                }
            },
            _ => Ok(false),
        }
    }

    fn access(&mut self, environment: &Environment) -> Access {
        *self
            .access
            .get_or_insert_with(|| environment.sources.access(&self.source, &self.path.dotted(), environment.strings()))
    }

    fn build(&self, environment: &Environment) -> Result<Table> {
        let null = DocumentBuf::new().with(&self.path.dotted(), ValueRef::Null);
        let is_null = bunko_query::parse_filter(null.as_ref(), &environment.scope)?;
        let stage = self.matching.as_ref().and_then(Matching::stage);
        let stages: ArrayBuf = stage.iter().map(ValueRef::from).collect();
        let input = environment.sources.open(&self.source, stages.as_ref(), environment)?;
        let mut key = Vec::new();
        let built = JoinTable::build(input, self.gatherer, environment.operation(), &mut |document, keys| {
            if is_null.try_matches(document)? {
                keys.add(KEY_OF_NULL)?;
            }
            for value in matched_values(document, self.path.components()) {
                key.clear();
                environment.strings().append_key(&mut key, value, Direction::Ascending);
                keys.add(&key)?;
            }
            Ok(())
        })?;
        Ok(built.map_or(Table::TooLarge, |table| Table::Built(Box::new(table))))
    }
}

/// The documents with any of the values, in collection order.
fn find(table: &mut JoinTable, values: &[ValueRef<'_>], environment: &Environment) -> Result<Vec<DocumentBuf>> {
    let (mut found, mut key) = (Vec::new(), Vec::new());
    for value in values {
        if matches!(value, ValueRef::Null) {
            table.add_positions(KEY_OF_NULL, &mut found);
            continue;
        }
        key.clear();
        environment.strings().append_key(&mut key, *value, Direction::Ascending);
        table.add_positions(&key, &mut found);
    }
    table.documents(found, environment.operation())
}

/// A pipeline over documents that were found.
/// # Errors
/// Errors of the stages.
pub(crate) fn over(
    documents: Vec<DocumentBuf>,
    pipeline: ArrayRef<'_>,
    environment: &Environment,
) -> Result<Box<dyn DocumentStream>> {
    let documents = Box::new(Documents::new(documents));
    if pipeline.is_empty() {
        return Ok(documents);
    }
    Ok(Pipeline::parse_extended(pipeline, environment.clone())?.open(documents))
}

/// A `$match` stage for documents whose path equals one of the values.
pub(crate) fn match_any(path: &FieldPath, values: &[ValueRef<'_>]) -> DocumentBuf {
    DocumentBuf::new().with("$match", &filter(&path.dotted(), values))
}

/// A filter for equality with one of the values. `$in` takes a regex as a pattern and refuses a document that begins
/// with an operator's name, and no comparison takes undefined: with such a value, the filter is an `$or` of `$eq` and
/// `$type`.
fn filter(path: &str, values: &[ValueRef<'_>]) -> DocumentBuf {
    let is_listed = |value: &ValueRef<'_>| match value {
        ValueRef::Regex { .. } | ValueRef::Undefined => false,
        ValueRef::Document(document) => document.first().is_none_or(|first| !first.name.starts_with('$')),
        _ => true,
    };
    if !values.iter().all(is_listed) {
        let mut alternatives = ArrayBuf::new();
        for value in values {
            let condition = match value {
                ValueRef::Undefined => DocumentBuf::new().with("$type", "undefined"),
                value => DocumentBuf::new().with("$eq", *value),
            };
            alternatives.push(&DocumentBuf::new().with(path, &condition));
        }
        return DocumentBuf::new().with("$or", &alternatives);
    }
    let condition = match values {
        [value] => DocumentBuf::new().with("$eq", *value),
        several => DocumentBuf::new().with("$in", &several.iter().copied().collect::<ArrayBuf>()),
    };
    DocumentBuf::new().with(path, &condition)
}
