//! Analysis of a text: character filters, a tokenizer, and token filters.
//!
//! Source: MongoDB Atlas Search manual, "Process Data with Analyzers"; Unicode annex 29 for the words of
//! `lucene.standard`.

mod characters;
mod custom;
mod filters;
mod folding;
mod grams;
mod named;
mod tokenizers;
mod words;

pub use custom::Analyzers;
pub(crate) use folding::{lower, plain};
pub(crate) use grams::{all as all_grams, edges, right_edges};

use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_pattern::{Groups, Pattern, Stopped};
use characters::CharFilter;
use filters::Filter;
use tokenizers::Tokenizer;

/// A token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The text that is indexed and compared.
    pub text: String,
    /// The token's position among all tokens; tokens that a filter removed count.
    pub position: u32,
    /// Start in the text, in bytes.
    pub start: usize,
    /// End in the text, in bytes.
    pub end: usize,
}

impl Token {
    /// A copy with another text.
    fn with_text(&self, text: String) -> Self {
        Self { text, position: self.position, start: self.start, end: self.end }
    }
}

/// An analyzer, which makes tokens of a text.
#[derive(Clone, Debug)]
pub struct Analyzer {
    characters: Vec<CharFilter>,
    tokenizer: Tokenizer,
    filters: Vec<Filter>,
}

impl Analyzer {
    fn new(tokenizer: Tokenizer, filters: Vec<Filter>) -> Self {
        Self { characters: Vec::new(), tokenizer, filters }
    }

    /// The tokens of a text, by position. A short text may give more tokens than fit into memory: parts of parts, or
    /// shingles of parts.
    /// # Errors
    /// Errors of counting work.
    pub fn analyze(&self, text: &str, operation: &OperationContext) -> Result<Vec<Token>> {
        let mut tokens = if self.characters.is_empty() {
            self.tokenizer.cut(text, operation)?
        } else {
            let changed = characters::changed(text, &self.characters, operation)?;
            let mut tokens = self.tokenizer.cut(&changed.text, operation)?;
            for token in &mut tokens {
                (token.start, token.end) = (changed.before(token.start), changed.before(token.end));
            }
            tokens
        };
        for filter in &self.filters {
            tokens = filter.apply(tokens, operation)?;
        }
        Ok(tokens)
    }

    /// Whether the analyzer leaves a text whole, as one token.
    pub fn is_keyword(&self) -> bool {
        matches!(self.tokenizer, Tokenizer::Keyword)
    }
}

/// Steps counted for a match, before the pattern itself counts.
const MATCH_STEPS: usize = 16;

/// Counts the making of a text as work.
fn count_made(text: &str, operation: &OperationContext) -> Result<()> {
    operation.work(1 + text.len() / 64)
}

/// The next match of a definition's pattern; `None` if it takes too long.
fn next_match(pattern: &Pattern, text: &str, from: usize, operation: &OperationContext) -> Result<Option<Groups>> {
    operation.work(MATCH_STEPS)?;
    match pattern.find(text, from, |steps| operation.work(steps)) {
        Ok(found) => Ok(found),
        Err(Stopped::Told(failure)) => Err(failure),
        Err(Stopped::Exceeded(_)) => Ok(None),
    }
}
