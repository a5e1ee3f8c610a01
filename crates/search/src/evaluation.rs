//! What is known while a search is done: how often words occur in all documents, how texts are cut, and when to stop.

use crate::StringField;
use crate::analysis::Token;
use crate::fuzzy::Fuzzy;
use crate::paths::TextField;
use crate::schema::Schema;
use crate::unit::Unit;
use bunko_bson::ValueRef;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How many places lie between the words of two values of one array.
const POSITIONS_BETWEEN_VALUES: u32 = 100;
/// Source: Lucene, `BM25Similarity`.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// How often words occur in the texts of one field, in all documents.
#[derive(Debug, Default)]
pub(crate) struct FieldStatistics {
    /// Documents that have it.
    documents: u64,
    /// Words in all of them.
    words: u64,
    /// Of words that are searched for, the documents that have them.
    frequencies: HashMap<String, u64>,
}

/// The texts of one field of one document, cut.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// Tokens of all values, by their positions.
    pub tokens: Vec<Token>,
    /// How often each word is among them.
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

/// Something of a text that is searched for in a field, by the field and the text.
type BySearched<T> = RefCell<HashMap<(String, String), Arc<T>>>;

/// A search that is being done.
pub(crate) struct Evaluation {
    pub schema: Arc<Schema>,
    pub operation: Arc<OperationContext>,
    statistics: RefCell<HashMap<String, FieldStatistics>>,
    searched: BySearched<Vec<Token>>,
    expansions: BySearched<HashMap<String, f32>>,
    /// The cut texts of the document at hand, by the place of what holds them and the field.
    cuts: RefCell<HashMap<(usize, String), Arc<Cut>>>,
    /// What of that document was counted.
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

    /// Forgets what belongs to the document before.
    pub fn next_document(&self) {
        self.cuts.borrow_mut().clear();
        self.counted.borrow_mut().clear();
    }

    /// The texts of a field, cut as the index does.
    pub fn cut(&self, unit: &Unit<'_>, field: &TextField<'_>) -> Result<Arc<Cut>> {
        let key = (std::ptr::from_ref(unit) as usize, field.key.clone());
        if let Some(cut) = self.cuts.borrow().get(&key) {
            return Ok(Arc::clone(cut));
        }
        let analyzer = self.schema.of_documents(field.string)?;
        let mut tokens: Vec<Token> = Vec::new();
        for value in unit.values(&field.path) {
            let ValueRef::String(text) = value.value else { continue };
            if field.string.ignore_above.is_some_and(|most| text.len() > most) {
                continue;
            }
            self.operation.work(1 + text.len() / 64)?;
            let next = tokens.last().map_or(0, |last| last.position + POSITIONS_BETWEEN_VALUES + 1);
            tokens.extend(
                analyzer.analyze(text).into_iter().map(|token| Token { position: token.position + next, ..token }),
            );
        }
        let cut = Arc::new(Cut::of(tokens));
        self.cuts.borrow_mut().insert(key, Arc::clone(&cut));
        Ok(cut)
    }

    /// What is searched for in a field, cut.
    pub fn cut_searched(&self, field: &StringField, text: &str) -> Result<Arc<Vec<Token>>> {
        let analyzer = self.schema.of_searches(field)?;
        let name = field.search_analyzer.as_ref().or(field.analyzer.as_ref()).cloned().unwrap_or_default();
        let key = (name, text.to_owned());
        if let Some(tokens) = self.searched.borrow().get(&key) {
            return Ok(Arc::clone(tokens));
        }
        let tokens = Arc::new(analyzer.analyze(text));
        self.searched.borrow_mut().insert(key, Arc::clone(&tokens));
        Ok(tokens)
    }

    /// Counts the texts of a field, and those of its words that are searched for: each once, whoever asks for it.
    pub fn count(&self, unit: &Unit<'_>, field: &TextField<'_>, is_searched: impl Fn(&str) -> bool) -> Result<()> {
        let cut = self.cut(unit, field)?;
        let place = std::ptr::from_ref(unit) as usize;
        let mut counted = self.counted.borrow_mut();
        let mut statistics = self.statistics.borrow_mut();
        let of_field = entry(&mut statistics, &field.key);
        if counted.insert((place, field.key.clone(), None)) {
            of_field.documents += 1;
            of_field.words += cut.tokens.len() as u64;
        }
        for word in cut.frequencies.keys().filter(|word| is_searched(word)) {
            if counted.insert((place, field.key.clone(), Some(word.clone()))) {
                *of_field.frequencies.entry(word.clone()).or_default() += 1;
            }
        }
        Ok(())
    }

    /// The words of a field that are searched for, of all documents that were counted, and in how many they are.
    pub fn words(&self, key: &str) -> Vec<(String, u64)> {
        let statistics = self.statistics.borrow();
        let words = statistics.get(key).map(|field| field.frequencies.iter());
        words.into_iter().flatten().map(|(word, count)| (word.clone(), *count)).collect()
    }

    /// In how many documents of how many a word is.
    pub fn frequency(&self, key: &str, word: &str) -> (u64, u64) {
        let statistics = self.statistics.borrow();
        let Some(field) = statistics.get(key) else { return (0, 0) };
        (field.frequencies.get(word).copied().unwrap_or(0), field.documents)
    }

    /// The words that a fuzzy one stands for in a field, and what each is worth.
    pub fn expansions(&self, key: &str, word: &str, fuzzy: &Fuzzy) -> Arc<HashMap<String, f32>> {
        let known = (key.to_owned(), word.to_owned());
        if let Some(found) = self.expansions.borrow().get(&known) {
            return Arc::clone(found);
        }
        let found = Arc::new(fuzzy.chosen(word, self.words(key).into_iter().map(|(word, _)| word)));
        self.expansions.borrow_mut().insert(known, Arc::clone(&found));
        found
    }

    /// How rare words are: the sum of `ln(1 + (N - n + 0.5) / (n + 0.5))`.
    pub fn rarity<'w>(&self, key: &str, words: impl Iterator<Item = &'w str>) -> f32 {
        let rarity = |word| {
            let (with, all) = self.frequency(key, word);
            let (with, all) = (with as f64, all as f64);
            (1.0 + (all - with + 0.5) / (with + 0.5)).ln() as f32
        };
        words.map(rarity).sum()
    }

    /// The score of something that occurs `frequency` times in a text of `words` words.
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

fn entry<'m>(map: &'m mut HashMap<String, FieldStatistics>, key: &str) -> &'m mut FieldStatistics {
    if !map.contains_key(key) {
        map.insert(key.to_owned(), FieldStatistics::default());
    }
    map.get_mut(key).expect("it was put there")
}

/// The length of a text as one byte keeps it: exact below 40, four bits of it above.
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
