//! The vectors and the filter fields of one index, in memory.

use crate::bitmap::Bitmap;
use crate::column::{Column, Growing};
use crate::filter_column::FilterColumn;
use crate::{Definition, Filter, Request};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::collections::HashMap;

/// Fewer rows than this are not sorted out, however many of them are gone.
const WORN_FROM: usize = 4_096;

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its record.
    pub record: u64,
    /// How near its vector is: the more the nearer.
    pub score: f32,
}

/// What an index has of its documents.
#[derive(Debug)]
pub struct Table {
    definition: Definition,
    /// By row.
    records: Vec<u64>,
    rows: HashMap<u64, u32>,
    alive: Bitmap,
    /// As the definition has them.
    columns: Vec<Column>,
    filters: Vec<FilterColumn>,
}

impl Table {
    /// An empty table.
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

    /// What it was made for.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// How many documents it has.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Takes a document in the place of the one that the record had. One without a vector that is indexed leaves no trace.
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

    /// Forgets a record's document.
    pub fn remove(&mut self, record: u64) {
        if let Some(row) = self.rows.remove(&record) {
            self.alive.clear(row);
        }
    }

    /// Whether most of it is of documents that are gone, so that it should be made anew.
    pub fn is_worn(&self) -> bool {
        self.records.len() >= WORN_FROM && self.rows.len() < self.records.len() / 2
    }

    /// About the bytes that it takes.
    pub fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::bytes).sum();
        let filters: usize = self.filters.iter().map(FilterColumn::bytes).sum();
        columns + filters + self.records.capacity() * 8 + self.rows.capacity() * 18 + self.alive.bytes()
    }

    /// Adds a few vectors to the graphs; searches wait meanwhile.
    pub fn grow(&self) -> Growing {
        let is_done = self.columns.iter().all(|column| column.grow() == Growing::Done);
        if is_done { Growing::Done } else { Growing::On }
    }

    /// How many vectors are in no graph that should be in one: each search looks at all of them.
    pub fn outside_graphs(&self) -> usize {
        self.columns.iter().map(Column::outside_graph).sum()
    }

    /// The documents that are nearest, the best first. Of equal scores the one that was put first comes first.
    /// # Errors
    /// Those of the search node for what the index does not have; what the operation says.
    pub fn search(&self, request: &Request, operation: &OperationContext) -> Result<Vec<Hit>> {
        let prepared = request.prepare(&self.definition)?;
        let takes = self.takes(&request.filters, operation)?;
        let found = self.columns[prepared.column].search(&prepared, &takes, operation)?;
        Ok(found.into_iter().map(|(score, row)| Hit { record: self.records[row as usize], score }).collect())
    }

    /// The rows that all filters let through.
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
