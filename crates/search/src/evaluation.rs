//! State of a running search: statistics of words, analyzed texts, and the operation that may stop it.

use crate::analysis::{Analyzer, Token};
use crate::fuzzy::Fuzzy;
use crate::paths::TextField;
use crate::schema::Schema;
use crate::unit::Unit;
use crate::{Autocomplete, KeptOfWords, StringField};
use bunko_bson::ValueRef;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Positions between the words of two values of one array.
const POSITIONS_BETWEEN_VALUES: u32 = 100;
/// Source: Lucene, `BM25Similarity`.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// Statistics of the words of one field, over all documents.
#[derive(Debug, Default)]
pub(crate) struct FieldStatistics {
    /// Number of documents with the field.
    documents: u64,
    /// Number of words of the field in all documents.
    words: u64,
    /// Number of documents with each searched word.
    frequencies: HashMap<String, u64>,
}

/// The analyzed texts of one field of one document.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// Tokens of all values, by position.
    pub tokens: Vec<Token>,
    /// Number of times that each word occurs.
    pub frequencies: HashMap<String, u32>,
}

impl Cut {
    pub fn of(tokens: Vec<Token>) -> Self {
        let mut frequencies = HashMap::new();
        for token in &tokens {
            *frequencies.entry(token.text.clone()).or_default() += 1;
        }
        Self { tokens, frequencies }
    }
}

/// An analyzed text of the query.
#[derive(Debug, Default)]
pub(crate) struct Searched {
    pub tokens: Vec<Token>,
    /// The indexes of each word's tokens.
    places: HashMap<String, Vec<u32>>,
}

impl Searched {
    fn of(tokens: Vec<Token>) -> Self {
        let mut places: HashMap<String, Vec<u32>> = HashMap::new();
        for (number, token) in tokens.iter().enumerate() {
            places.entry(token.text.clone()).or_default().push(number as u32);
        }
        Self { tokens, places }
    }

    /// Whether a word is one of the searched words.
    pub fn has(&self, word: &str) -> bool {
        self.places.contains_key(word)
    }

    /// The searched tokens that are in a text, in order. Iterates over the shorter of the two, because either may be
    /// much longer.
    pub fn tokens_in(&self, cut: &Cut) -> Vec<&Token> {
        if self.tokens.len() <= cut.frequencies.len() {
            return self.tokens.iter().filter(|token| cut.frequencies.contains_key(&token.text)).collect();
        }
        let places = cut.frequencies.keys().filter_map(|word| self.places.get(word));
        let mut numbers: Vec<u32> = places.flatten().copied().collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| &self.tokens[number as usize]).collect()
    }
}

/// A map by field and searched text.
type BySearched<T> = RefCell<HashMap<(String, String), Arc<T>>>;

/// A searched text by its address in the query, which outlives the search, and by its analysis. The text itself may be
/// too long to compare for each document.
type SearchedAt = (usize, usize, CutBy);

/// The analysis of a searched text.
#[derive(Debug, PartialEq, Eq, Hash)]
enum CutBy {
    /// None: the text is one word.
    Whole,
    /// The analyzer of that name.
    Analyzer(String),
    /// The analysis of a field for autocompletion: its analyzer, if it has one, and whether accents are removed.
    Completion { analyzer: Option<String>, folds: bool },
}

/// A running search.
pub(crate) struct Evaluation {
    pub schema: Arc<Schema>,
    pub operation: Arc<OperationContext>,
    statistics: RefCell<HashMap<String, FieldStatistics>>,
    searched: RefCell<HashMap<SearchedAt, Arc<Searched>>>,
    expansions: BySearched<HashMap<String, f32>>,
    /// Analyzed texts of the current document, by unit and field.
    cuts: RefCell<HashMap<(usize, String), Arc<Cut>>>,
    /// The fields and words of the current document that have been counted.
    counted: RefCell<HashSet<(usize, String, Option<String>)>>,
}

impl Evaluation {
    pub fn new(schema: Arc<Schema>, operation: Arc<OperationContext>) -> Self {
        Self {
            schema,
            operation,
            statistics: RefCell::default(),
            searched: RefCell::default(),
            expansions: RefCell::default(),
            cuts: RefCell::default(),
            counted: RefCell::default(),
        }
    }

    /// Forgets the analyzed texts and counted words of the previous document.
    pub fn next_document(&self) {
        self.cuts.borrow_mut().clear();
        self.counted.borrow_mut().clear();
    }

    /// Analyzes the texts of a field as the index does.
    pub fn cut(&self, unit: &Unit<'_>, field: &TextField<'_>) -> Result<Arc<Cut>> {
        let key = (std::ptr::from_ref(unit) as usize, field.key.clone());
        if let Some(cut) = self.cuts.borrow().get(&key) {
            return Ok(Arc::clone(cut));
        }
        let analyzer = self.schema.of_documents(field.string)?;
        // Finding the texts iterates over all fields.
        self.operation.work(unit.fields.len() / 64)?;
        let texts = unit.values(&field.path).filter_map(|value| match value.value {
            ValueRef::String(text) => Some(text),
            _ => None,
        });
        let mut cut = Cut::of(cut_texts(&analyzer, field.string, texts, &self.operation)?);
        if field.string.words == KeptOfWords::Documents {
            cut.frequencies.values_mut().for_each(|frequency| *frequency = 1);
        }
        let cut = Arc::new(cut);
        self.cuts.borrow_mut().insert(key, Arc::clone(&cut));
        Ok(cut)
    }

    /// Analyzes a text of the query for a field.
    pub fn cut_searched(&self, field: &StringField, text: &str) -> Result<Arc<Searched>> {
        let name = field.search_analyzer.as_ref().or(field.analyzer.as_ref()).cloned().unwrap_or_default();
        self.searched(text, CutBy::Analyzer(name), || self.schema.of_searches(field)?.analyze(text, &self.operation))
    }

    /// Takes a text of the query as one word.
    pub fn searched_whole(&self, text: &str) -> Result<Arc<Searched>> {
        self.searched(text, CutBy::Whole, || {
            Ok(vec![Token { text: text.to_owned(), position: 0, start: 0, end: text.len() }])
        })
    }

    /// Analyzes a text of the query for a field for autocompletion.
    pub fn cut_completed(
        &self,
        field: &Autocomplete,
        text: &str,
        cut: impl FnOnce() -> Result<Vec<Token>>,
    ) -> Result<Arc<Searched>> {
        self.searched(text, CutBy::Completion { analyzer: field.analyzer.clone(), folds: field.folds }, cut)
    }

    fn searched(&self, text: &str, by: CutBy, cut: impl FnOnce() -> Result<Vec<Token>>) -> Result<Arc<Searched>> {
        let key = (text.as_ptr().addr(), text.len(), by);
        if let Some(searched) = self.searched.borrow().get(&key) {
            return Ok(Arc::clone(searched));
        }
        self.operation.work(1 + text.len() / 64)?;
        let searched = Arc::new(Searched::of(cut()?));
        self.searched.borrow_mut().insert(key, Arc::clone(&searched));
        Ok(searched)
    }

    /// Counts the texts of a field and the searched words in them. Each is counted once per document, even if several
    /// operators ask.
    pub fn count(
        &self,
        unit: &Unit<'_>,
        field: &TextField<'_>,
        is_searched: impl Fn(&str) -> Result<bool>,
    ) -> Result<()> {
        let cut = self.cut(unit, field)?;
        let place = std::ptr::from_ref(unit) as usize;
        let mut counted = self.counted.borrow_mut();
        let mut statistics = self.statistics.borrow_mut();
        let of_field = entry(&mut statistics, &field.key);
        if counted.insert((place, field.key.clone(), None)) {
            of_field.documents += 1;
            of_field.words += cut.tokens.len() as u64;
        }
        for word in cut.frequencies.keys() {
            if is_searched(word)? && counted.insert((place, field.key.clone(), Some(word.clone()))) {
                *of_field.frequencies.entry(word.clone()).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Sets the counts of a field from postings.
    pub fn learn_field(&self, key: &str, documents: u64, words: u64) {
        let mut statistics = self.statistics.borrow_mut();
        let of_field = entry(&mut statistics, key);
        (of_field.documents, of_field.words) = (documents, words);
    }

    /// Sets the number of documents with a word from postings. A word without documents stays unknown, as if it had not
    /// been counted.
    pub fn learn_word(&self, key: &str, word: &str, documents: u64) {
        if documents > 0 {
            let mut statistics = self.statistics.borrow_mut();
            entry(&mut statistics, key).frequencies.insert(word.to_owned(), documents);
        }
    }

    /// The searched words of a field in all counted documents, with their numbers of documents.
    pub fn words(&self, key: &str) -> Vec<(String, u64)> {
        let statistics = self.statistics.borrow();
        let words = statistics.get(key).map(|field| field.frequencies.iter());
        words.into_iter().flatten().map(|(word, count)| (word.clone(), *count)).collect()
    }

    /// The number of documents with a word, and the number of documents with the field.
    pub fn frequency(&self, key: &str, word: &str) -> (u64, u64) {
        let statistics = self.statistics.borrow();
        let Some(field) = statistics.get(key) else { return (0, 0) };
        (field.frequencies.get(word).copied().unwrap_or(0), field.documents)
    }

    /// The words of a field that match a fuzzy word, each with its weight.
    /// # Errors
    /// Errors of counting work.
    pub fn expansions(&self, key: &str, word: &str, fuzzy: &Fuzzy) -> Result<Arc<HashMap<String, f32>>> {
        let known = (key.to_owned(), word.to_owned());
        if let Some(found) = self.expansions.borrow().get(&known) {
            return Ok(Arc::clone(found));
        }
        let there = self.words(key);
        self.operation.work(1 + there.len())?;
        let found = Arc::new(fuzzy.chosen(word, there.into_iter().map(|(word, _)| word), &self.operation)?);
        self.expansions.borrow_mut().insert(known, Arc::clone(&found));
        Ok(found)
    }

    /// The inverse document frequency of words: the sum of `ln(1 + (N - n + 0.5) / (n + 0.5))`.
    pub fn rarity<'w>(&self, key: &str, words: impl Iterator<Item = &'w str>) -> f32 {
        let rarity = |word| {
            let (with, all) = self.frequency(key, word);
            let (with, all) = (with as f64, all as f64);
            (1.0 + (all - with + 0.5) / (with + 0.5)).ln() as f32
        };
        words.map(rarity).sum()
    }

    /// The score for `frequency` occurrences in a text of `words` words.
    pub fn score(&self, key: &str, has_norms: bool, rarity: f32, frequency: f32, words: usize) -> f32 {
        let statistics = self.statistics.borrow();
        let average = statistics.get(key).map_or(1.0, |field| field.words as f32 / field.documents.max(1) as f32);
        let length = if has_norms { quantized(words as u64) as f32 / average.max(f32::MIN_POSITIVE) } else { 1.0 };
        let saturation = K1 * ((1.0 - B) + B * length);
        rarity - rarity / (1.0 + frequency / saturation)
    }

    /// The average length of a field's texts, in words.
    pub fn average(&self, key: &str) -> f32 {
        let statistics = self.statistics.borrow();
        statistics.get(key).map_or(0.0, |field| field.words as f32 / field.documents.max(1) as f32)
    }
}

/// The tokens of all texts of a field of one document.
/// # Errors
/// Errors of counting work.
pub(crate) fn cut_texts<'t>(
    analyzer: &Analyzer,
    field: &StringField,
    texts: impl Iterator<Item = &'t str>,
    operation: &OperationContext,
) -> Result<Vec<Token>> {
    let mut tokens: Vec<Token> = Vec::new();
    for text in texts.filter(|text| field.ignore_above.is_none_or(|most| text.len() <= most)) {
        operation.work(1 + text.len() / 64)?;
        let next = tokens.last().map_or(0, |last| last.position + POSITIONS_BETWEEN_VALUES + 1);
        let own = analyzer.analyze(text, operation)?.into_iter();
        tokens.extend(own.map(|token| Token { position: token.position + next, ..token }));
    }
    Ok(tokens)
}

fn entry<'m>(map: &'m mut HashMap<String, FieldStatistics>, key: &str) -> &'m mut FieldStatistics {
    if !map.contains_key(key) {
        map.insert(key.to_owned(), FieldStatistics::default());
    }
    map.get_mut(key).expect("it was put there")
}

/// The length of a text as a single byte stores it: exact below 40, rounded to four significant bits above.
/// Source: Lucene, `SmallFloat.intToByte4`.
fn quantized(words: u64) -> u64 {
    const EXACT: u64 = 24;
    if words < EXACT {
        return words;
    }
    let rest = words - EXACT;
    let bits = 64 - rest.leading_zeros();
    if bits < 4 { words } else { EXACT + (rest >> (bits - 4) << (bits - 4)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_kept_in_four_bits() {
        assert_eq!([5, 39, 40, 41, 100, 1_000].map(quantized), [5, 39, 40, 40, 96, 984]);
    }
}
