//! Postings of a collection in memory: for each field and word, the documents that contain it.
//!
//! Postings give the statistics that scores need, and the documents that may match. The search then reads, analyzes and
//! scores these documents as a search without postings does with all, so both give equal scores. Embedded documents are
//! not included: an operator that needs them scans all documents.
//!
//! Rejected: storing the frequency and the positions of each word, so that documents need not be analyzed again. It
//! takes several times the memory, and a second way to compute each score.

mod list;
mod rows;

pub(crate) use rows::Rows;

use crate::completion;
use crate::evaluation::{Evaluation, cut_texts};
use crate::fuzzy::Fuzzy;
use crate::paths::{Path, of_field};
use crate::schema::Schema;
use crate::unit::Unit;
use crate::{Autocomplete, StringField};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use list::PostingList;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Smaller postings are never rebuilt, however many rows are dead.
const WORN_FROM: usize = 4_096;
/// Approximate memory of a word besides its letters and rows, in bytes: its place in the table, and two allocations.
const WORD_BYTES: usize = 112;
/// Approximate memory of a row, in bytes: its record in both directions, and its list of fields.
const ROW_BYTES: usize = 64;
/// Approximate memory of a field, in bytes.
const FIELD_BYTES: usize = 512;

/// The postings of an index.
#[derive(Debug)]
pub struct Postings {
    schema: Arc<Schema>,
    /// The record of each row.
    records: Vec<u64>,
    rows: HashMap<u64, u32>,
    /// The rows whose documents still exist, one bit each.
    alive: Vec<u64>,
    /// For each row: the numbers of its fields, and the number of words in each.
    texts: Vec<Box<[(u32, u32)]>>,
    fields: Vec<FieldPostings>,
    /// The number of each field, by key.
    numbers: HashMap<String, u32>,
    bytes: usize,
    /// Whether all documents analyze each field in one way, and each has a row.
    is_usable: bool,
}

/// The words of one field under one analysis.
#[derive(Debug)]
pub(crate) struct FieldPostings {
    pub key: String,
    pub path: String,
    multi: Option<String>,
    pub cutting: Cutting,
    /// Number of documents with the field.
    documents: u64,
    /// Number of words of the field in all documents.
    words: u64,
    terms: HashMap<Box<str>, PostingList>,
}

/// The analysis of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cutting {
    Text(StringField),
    Completion(Autocomplete),
}

/// The words of one field of one document.
struct Cut {
    key: String,
    path: String,
    multi: Option<String>,
    cutting: Cutting,
    words: usize,
    terms: HashSet<String>,
}

impl Postings {
    /// Postings without documents.
    pub fn new(schema: &Arc<Schema>) -> Self {
        Self {
            schema: Arc::clone(schema),
            records: Vec::new(),
            rows: HashMap::new(),
            alive: Vec::new(),
            texts: Vec::new(),
            fields: Vec::new(),
            numbers: HashMap::new(),
            bytes: 0,
            is_usable: true,
        }
    }

    /// Replaces a record's document. A document without words is not stored.
    /// # Errors
    /// Errors of counting work; the record then has no document.
    pub fn put(&mut self, record: u64, document: DocumentRef<'_>, operation: &OperationContext) -> Result<()> {
        self.remove(record);
        let cuts = self.cuts(document, operation)?;
        if cuts.is_empty() {
            return Ok(());
        }
        let Ok(row) = u32::try_from(self.records.len()) else {
            self.is_usable = false;
            return Ok(());
        };
        let mut texts = Vec::with_capacity(cuts.len());
        for cut in cuts {
            let number = self.number(&cut);
            let field = &mut self.fields[number as usize];
            self.is_usable &= field.cutting == cut.cutting;
            field.documents += 1;
            field.words += cut.words as u64;
            for term in cut.terms {
                let list = field.terms.entry(term.into_boxed_str());
                if let std::collections::hash_map::Entry::Vacant(entry) = &list {
                    self.bytes += WORD_BYTES + entry.key().len();
                }
                self.bytes += list.or_default().push(row);
            }
            texts.push((number, u32::try_from(cut.words).unwrap_or(u32::MAX)));
        }
        self.bytes += ROW_BYTES + size_of_val(&texts[..]);
        self.texts.push(texts.into_boxed_slice());
        self.records.push(record);
        self.rows.insert(record, row);
        Rows::set(&mut self.alive, row);
        Ok(())
    }

    fn number(&mut self, cut: &Cut) -> u32 {
        if let Some(number) = self.numbers.get(&cut.key) {
            return *number;
        }
        let number = self.fields.len() as u32;
        self.numbers.insert(cut.key.clone(), number);
        self.bytes += FIELD_BYTES + 3 * cut.key.len();
        self.fields.push(FieldPostings {
            key: cut.key.clone(),
            path: cut.path.clone(),
            multi: cut.multi.clone(),
            cutting: cut.cutting.clone(),
            documents: 0,
            words: 0,
            terms: HashMap::new(),
        });
        number
    }

    /// Removes a record's document.
    pub fn remove(&mut self, record: u64) {
        let Some(row) = self.rows.remove(&record) else { return };
        self.alive[row as usize / 64] &= !(1 << (row % 64));
        for (number, words) in std::mem::take(&mut self.texts[row as usize]) {
            let field = &mut self.fields[number as usize];
            field.documents -= 1;
            field.words -= u64::from(words);
        }
    }

    /// The words of all fields of a document.
    fn cuts(&self, document: DocumentRef<'_>, operation: &OperationContext) -> Result<Vec<Cut>> {
        let unit = Unit::of(document, &self.schema.definition.mapping);
        let mut cuts = Vec::new();
        for (first, texts) in unit.texts() {
            for field in of_field(first, None, true) {
                let analyzer = self.schema.of_documents(field.string)?;
                let tokens = cut_texts(&analyzer, field.string, texts.iter().map(|text| text.1), operation)?;
                let multi = field.key.split_once('\0').map(|(_, multi)| multi.to_owned());
                let (words, cutting) = (tokens.len(), Cutting::Text(field.string.clone()));
                let terms = tokens.into_iter().map(|token| token.text).collect();
                cuts.push(Cut { key: field.key, path: field.path, multi, cutting, words, terms });
            }
            let (mut terms, mut cutting) = (HashSet::new(), None);
            for (field, text) in texts {
                if let Some((own, tokens)) = completion::words(field, text, &self.schema, operation)? {
                    terms.extend(tokens.into_iter().map(|token| token.text));
                    cutting = Some(Cutting::Completion(own.clone()));
                }
            }
            if let Some(cutting) = cutting {
                let (key, path) = (completion_key(&first.path), first.path.clone());
                cuts.push(Cut { key, path, multi: None, cutting, words: 0, terms });
            }
        }
        Ok(cuts)
    }

    /// Whether most rows are dead, so that the postings should be rebuilt.
    pub fn is_worn(&self) -> bool {
        self.records.len() >= WORN_FROM && self.rows.len() < self.records.len() / 2
    }

    /// Approximate memory of the postings, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether searches may use the postings. They may not if documents have a field of one path that is mapped in two
    /// ways, as in `{"a.b": 1}` and `{a: {b: 1}}`.
    pub(crate) fn is_usable(&self) -> bool {
        self.is_usable
    }

    /// The records of the rows that still exist, ascending.
    pub(crate) fn records(&self, bits: &[u64]) -> Vec<u64> {
        let rows = Rows::numbers(bits).filter(|row| Rows::has(&self.alive, *row));
        let mut records: Vec<u64> = rows.map(|row| self.records[row as usize]).collect();
        records.sort_unstable();
        records
    }

    /// The text fields that the paths match.
    pub(crate) fn texts<'p>(&'p self, paths: &'p [Path]) -> impl Iterator<Item = (&'p FieldPostings, &'p StringField)> {
        self.fields.iter().filter_map(|field| match &field.cutting {
            Cutting::Text(string) if paths.iter().any(|path| field.is_at(path)) => Some((field, string)),
            _ => None,
        })
    }

    /// A field for autocompletion, by path.
    pub(crate) fn completion(&self, path: &str) -> Option<(&FieldPostings, &Autocomplete)> {
        let field = &self.fields[*self.numbers.get(&completion_key(path))? as usize];
        match &field.cutting {
            Cutting::Completion(own) => Some((field, own)),
            Cutting::Text(_) => None,
        }
    }

    /// The rows of a word. Passes its statistics to the evaluation.
    pub(crate) fn word(&self, field: &FieldPostings, word: &str, evaluation: &Evaluation) -> Result<Rows> {
        evaluation.learn_field(&field.key, field.documents, field.words);
        evaluation.operation.work(1)?;
        let Some(list) = field.terms.get(word) else { return Ok(Rows::NONE) };
        let (bits, count) = self.alive(list, Vec::new(), evaluation)?;
        evaluation.learn_word(&field.key, word, count);
        Ok(Rows::These(bits))
    }

    /// The rows of the words that match a fuzzy word. Passes their statistics to the evaluation.
    pub(crate) fn nearly(
        &self,
        field: &FieldPostings,
        word: &str,
        fuzzy: &Fuzzy,
        evaluation: &Evaluation,
    ) -> Result<Rows> {
        evaluation.learn_field(&field.key, field.documents, field.words);
        for (other, list) in &field.terms {
            evaluation.operation.work(1 + other.len() / 16)?;
            if fuzzy.distance(word, other).is_some() {
                let (_, count) = self.alive(list, Vec::new(), evaluation)?;
                evaluation.learn_word(&field.key, other, count);
            }
        }
        let mut rows = Rows::NONE;
        for other in evaluation.expansions(&field.key, word, fuzzy)?.keys() {
            rows = rows.or(self.word(field, other, evaluation)?);
        }
        Ok(rows)
    }

    /// The rows of the words that `is_like` accepts. Their statistics are not needed.
    pub(crate) fn words_like(
        &self,
        field: &FieldPostings,
        evaluation: &Evaluation,
        is_like: impl Fn(&str) -> Result<bool>,
    ) -> Result<Rows> {
        let mut bits = Vec::new();
        for (word, list) in &field.terms {
            evaluation.operation.work(1)?;
            if is_like(word)? {
                bits = self.alive(list, bits, evaluation)?.0;
            }
        }
        Ok(Rows::These(bits))
    }

    /// Adds the rows of a list whose documents still exist to `bits`. Returns the bits, and the number of these rows.
    fn alive(&self, list: &PostingList, mut bits: Vec<u64>, evaluation: &Evaluation) -> Result<(Vec<u64>, u64)> {
        // Merging sets later iterates over all their bits, even if the list has few rows.
        evaluation.operation.work(1 + (list.count() + self.alive.len()) / 64)?;
        let mut count = 0;
        for row in list.iter().filter(|row| Rows::has(&self.alive, *row)) {
            Rows::set(&mut bits, row);
            count += 1;
        }
        Ok((bits, count))
    }
}

impl FieldPostings {
    fn is_at(&self, path: &Path) -> bool {
        path.takes(&self.path)
            && match &path.multi {
                Some(multi) => self.multi.as_ref() == Some(multi),
                None => path.is_wildcard || self.multi.is_none(),
            }
    }
}

/// The key of a field for autocompletion. No text field's key begins so, because names of fields contain no zero bytes.
fn completion_key(path: &str) -> String {
    format!("\0\0{path}")
}
