//! The vectors and the filter fields of one index, in memory.

use crate::bitmap::Bitmap;
use crate::column::{Column, Growing};
use crate::filter_column::FilterColumn;
use crate::{Definition, Filter, Request};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::collections::HashMap;

/// A table with fewer rows than this is never worn, however many of them are gone.
const WORN_FROM: usize = 4_096;

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The document's record id.
    pub record: u64,
    /// The score of its vector: more is nearer.
    pub score: f32,
}

/// The vectors and filter values of an index's documents.
#[derive(Debug)]
pub struct Table {
    definition: Definition,
    /// Record of each row.
    records: Vec<u64>,
    rows: HashMap<u64, u32>,
    alive: Bitmap,
    /// Vector fields, in the order of the definition.
    columns: Vec<Column>,
    filters: Vec<FilterColumn>,
}

impl Table {
    /// Makes an empty table for an index definition.
    pub fn new(definition: Definition) -> Self {
        Self {
            columns: definition.vectors.iter().map(Column::new).collect(),
            filters: definition.filters.iter().map(|_| FilterColumn::default()).collect(),
            definition,
            records: Vec::new(),
            rows: HashMap::new(),
            alive: Bitmap::default(),
        }
    }

    /// The index definition that the table was made for.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Number of documents.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Replaces the record's document. A document without an indexed vector is not kept.
    pub fn put(&mut self, record: u64, document: DocumentRef<'_>) {
        self.remove(record);
        let vectors = self.definition.vectors.iter().map(|field| Column::vector_of(field, document));
        let vectors: Vec<_> = vectors.collect();
        let Ok(row) = u32::try_from(self.records.len()) else { return };
        if vectors.iter().all(Option::is_none) {
            return;
        }
        for (column, vector) in self.columns.iter_mut().zip(&vectors) {
            if let Some(vector) = vector {
                column.push(row, vector);
            }
        }
        for (column, path) in self.filters.iter_mut().zip(&self.definition.filters) {
            column.add(row, document, path);
        }
        self.records.push(record);
        self.rows.insert(record, row);
        self.alive.set(row);
    }

    /// Removes a record's document.
    pub fn remove(&mut self, record: u64) {
        if let Some(row) = self.rows.remove(&record) {
            self.alive.clear(row);
        }
    }

    /// Whether most rows are of removed documents, so that the table should be rebuilt.
    pub fn is_worn(&self) -> bool {
        self.records.len() >= WORN_FROM && self.rows.len() < self.records.len() / 2
    }

    /// Approximate memory that the table takes, in bytes.
    pub fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::bytes).sum();
        let filters: usize = self.filters.iter().map(FilterColumn::bytes).sum();
        columns + filters + self.records.capacity() * 8 + self.rows.capacity() * 18 + self.alive.bytes()
    }

    /// Adds a few vectors to the graphs. Searches wait meanwhile.
    pub fn grow(&self) -> Growing {
        let is_done = self.columns.iter().all(|column| column.grow() == Growing::Done);
        if is_done { Growing::Done } else { Growing::On }
    }

    /// Number of vectors that should be in a graph and are not. Each search scans all of them.
    pub fn outside_graphs(&self) -> usize {
        self.columns.iter().map(Column::outside_graph).sum()
    }

    /// The nearest documents, the best first. Among equal scores, the document that was put first comes first.
    /// # Errors
    /// [`crate::query_error()`] if the index has not the path, the dimensions or the filters of the request; as
    /// [`OperationContext::work`].
    pub fn search(&self, request: &Request, operation: &OperationContext) -> Result<Vec<Hit>> {
        let prepared = request.prepare(&self.definition)?;
        let takes = self.takes(&request.filters, operation)?;
        let found = self.columns[prepared.column].search(&prepared, &takes, operation)?;
        Ok(found.into_iter().map(|(score, row)| Hit { record: self.records[row as usize], score }).collect())
    }

    /// Returns the rows of documents that were not removed and that pass all filters.
    fn takes(&self, filters: &[Filter], operation: &OperationContext) -> Result<Bitmap> {
        let mut takes = self.alive.clone();
        let column = |path: &str| {
            let position = self.definition.filters.iter().position(|filter| filter == path)?;
            self.filters.get(position)
        };
        for filter in filters {
            takes.and(&filter.rows(self.records.len(), &column, operation)?);
        }
        Ok(takes)
    }
}
