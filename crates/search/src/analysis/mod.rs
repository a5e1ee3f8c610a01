//! How a text becomes tokens: characters are changed, the text is cut, and the tokens are changed.
//!
//! Source: MongoDB Atlas Search manual, "Process Data with Analyzers"; Unicode annex 29 for the words of `lucene.standard`.

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

use characters::CharFilter;
use filters::Filter;
use tokenizers::Tokenizer;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What an index has of it, and searches compare.
    pub text: String,
    /// The number of its place among the pieces; left out ones count.
    pub position: u32,
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// A way to make tokens of a text.
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

    /// The tokens of a text, by their positions.
    pub fn analyze(&self, text: &str) -> Vec<Token> {
        let mut tokens = if self.characters.is_empty() {
            self.tokenizer.cut(text)
        } else {
            let changed = characters::changed(text, &self.characters);
            let mut tokens = self.tokenizer.cut(&changed.text);
            for token in &mut tokens {
                (token.start, token.end) = (changed.before(token.start), changed.before(token.end));
            }
            tokens
        };
        for filter in &self.filters {
            tokens = filter.apply(tokens);
        }
        tokens
    }

    /// Whether texts are left whole.
    pub fn is_keyword(&self) -> bool {
        matches!(self.tokenizer, Tokenizer::Keyword)
    }
}
