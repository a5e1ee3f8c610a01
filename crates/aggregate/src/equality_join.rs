//! Finding the documents of another collection whose path equals one of some values.

use crate::joined_path::matched_values;
use crate::sub_pipeline::{begins_near, behind};
use crate::{Access, DocumentStream, Documents, Environment, Pipeline, SourceName};
use bunko_bson::key_string::Direction;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, StringOrder, ValueRef};
use bunko_errors::Result;
use bunko_expression::FieldPath;
use foldhash::HashMap;

/// Where documents are found: by `_id`, by an index, or in a table that is made of the whole collection once.
pub(crate) struct EqualityJoin {
    source: SourceName,
    path: FieldPath,
    table: Option<Table>,
}

/// The other collection in memory, by the values at the path.
enum Table {
    Built(Built),
    /// It takes more memory than a stage may have: the collection is scanned each time.
    TooLarge,
}

#[derive(Default)]
struct Built {
    documents: Vec<DocumentBuf>,
    /// Positions by key string, ascending.
    positions: HashMap<Box<[u8]>, Vec<u32>>,
    /// Positions of what a filter for null finds.
    nulls: Vec<u32>,
}

impl EqualityJoin {
    pub fn new(source: SourceName, path: FieldPath) -> Self {
        Self { source, path, table: None }
    }

    /// Opens a pipeline over what is found by any of the values, each document once.
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
        // A search by distance reads the collection itself.
        let access = if begins_near(pipeline) { Access::Index } else { self.access(environment) };
        match access {
            Access::Id => {
                if let [value] = values
                    && !matches!(
                        value,
                        ValueRef::Array(_) | ValueRef::Null | ValueRef::Undefined | ValueRef::Regex { .. }
                    )
                {
                    let found = environment.sources.by_id(&self.source, *value)?;
                    return over(found.into_iter().collect(), pipeline, environment);
                }
            }
            Access::Index => {}
            Access::Scan => {
                if self.table.is_none() {
                    self.table = Some(self.build(environment)?);
                }
                if let Some(Table::Built(table)) = &self.table {
                    return over(table.find(values, environment.strings()), pipeline, environment);
                }
            }
        }
        let filter = DocumentBuf::new().with("$match", &filter(&self.path.dotted(), values));
        let stages = behind(&[ValueRef::from(&filter)], pipeline);
        environment.sources.open(&self.source, stages.as_ref(), environment)
    }

    fn access(&self, environment: &Environment) -> Access {
        environment.sources.access(&self.source, &self.path.dotted(), environment.strings())
    }

    fn build(&self, environment: &Environment) -> Result<Table> {
        let null = DocumentBuf::new().with(&self.path.dotted(), ValueRef::Null);
        let is_null = bunko_query::parse_filter(null.as_ref(), &environment.scope)?;
        let mut table = Built::default();
        let mut input = environment.sources.open(&self.source, ArrayRef::EMPTY, environment)?;
        let (mut memory_bytes, mut key) = (0, Vec::new());
        while let Some(document) = input.next()? {
            let position = table.documents.len() as u32;
            memory_bytes += document.len_bytes() + size_of::<DocumentBuf>();
            if is_null.try_matches(document.as_ref())? {
                table.nulls.push(position);
            }
            for value in matched_values(document.as_ref(), self.path.components()) {
                key.clear();
                environment.strings().append_key(&mut key, value, Direction::Ascending);
                environment.operation().work(1 + key.len() / 64)?;
                let positions = table.positions.entry(key.as_slice().into()).or_default();
                if positions.last() != Some(&position) {
                    positions.push(position);
                    memory_bytes += key.len() + size_of::<(Box<[u8]>, Vec<u32>)>() + size_of::<u32>();
                }
            }
            table.documents.push(document);
            if memory_bytes > environment.stage_memory_bytes_max {
                return Ok(Table::TooLarge);
            }
        }
        Ok(Table::Built(table))
    }
}

impl Built {
    /// In the order of the collection.
    fn find(&self, values: &[ValueRef<'_>], strings: &StringOrder) -> Vec<DocumentBuf> {
        let mut found: Vec<u32> = Vec::new();
        let mut key = Vec::new();
        for value in values {
            if matches!(value, ValueRef::Null | ValueRef::Undefined) {
                found.extend(&self.nulls);
                continue;
            }
            key.clear();
            strings.append_key(&mut key, *value, Direction::Ascending);
            found.extend(self.positions.get(key.as_slice()).into_iter().flatten());
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|position| self.documents[position as usize].clone()).collect()
    }
}

fn over(
    documents: Vec<DocumentBuf>,
    pipeline: ArrayRef<'_>,
    environment: &Environment,
) -> Result<Box<dyn DocumentStream>> {
    let documents = Box::new(Documents::new(documents));
    if pipeline.is_empty() {
        return Ok(documents);
    }
    Ok(Pipeline::parse(pipeline, environment.clone())?.open(documents))
}

/// Equality with one of the values. `$in` would take a regex for a pattern.
fn filter(path: &str, values: &[ValueRef<'_>]) -> DocumentBuf {
    if values.iter().any(|value| matches!(value, ValueRef::Regex { .. })) {
        let alternatives: ArrayBuf = values
            .iter()
            .map(|value| DocumentBuf::new().with(path, &DocumentBuf::new().with("$eq", *value)))
            .fold(ArrayBuf::new(), |mut all, one| {
                all.push(&one);
                all
            });
        return DocumentBuf::new().with("$or", &alternatives);
    }
    let condition = match values {
        [value] => DocumentBuf::new().with("$eq", *value),
        several => DocumentBuf::new().with("$in", &several.iter().copied().collect::<ArrayBuf>()),
    };
    DocumentBuf::new().with(path, &condition)
}
