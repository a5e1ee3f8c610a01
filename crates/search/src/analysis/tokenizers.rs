//! Tokenizers, which split a text.

use super::{Token, count_made, grams, next_match, words};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_pattern::Pattern;

/// Default length at which longer tokens are split. Source: Lucene, `StandardAnalyzer`, `CharTokenizer`.
pub(super) const TOKEN_CHARACTERS_MAX: usize = 255;

/// A tokenizer.
#[derive(Clone, Debug)]
pub(super) enum Tokenizer {
    /// Unicode words; longer ones than this many characters are split.
    Standard(usize),
    /// Runs of letters.
    Letters,
    /// Texts between white space; longer ones than this many characters are split.
    Whitespace(usize),
    /// The whole text as one token.
    Keyword,
    /// The texts between matches of a pattern.
    RegexSplit(Pattern),
    /// A group of each match of a pattern.
    RegexGroup(Pattern, usize),
    /// Prefixes of the text.
    EdgeGram(usize, usize),
    /// Parts of the text.
    NGram(usize, usize),
}

impl Tokenizer {
    /// # Errors
    /// Errors of counting work.
    pub fn cut(&self, text: &str, operation: &OperationContext) -> Result<Vec<Token>> {
        match self {
            Self::Standard(most) => words::words(text, *most, operation),
            Self::Letters => runs(text, TOKEN_CHARACTERS_MAX, char::is_alphabetic, operation),
            Self::Whitespace(most) => runs(text, *most, |letter| !letter.is_whitespace(), operation),
            Self::Keyword if text.is_empty() => Ok(Vec::new()),
            Self::Keyword => Ok(vec![Token { text: text.to_owned(), position: 0, start: 0, end: text.len() }]),
            Self::RegexSplit(pattern) => between(text, &matches(text, pattern, 0, operation)?, operation),
            Self::RegexGroup(pattern, group) => numbered(text, &matches(text, pattern, *group, operation)?, operation),
            Self::EdgeGram(least, most) => numbered(text, &grams::edges(text, *least, *most), operation),
            Self::NGram(least, most) => numbered(text, &grams::all(text, *least, *most, operation)?, operation),
        }
    }
}

/// The longest parts whose characters all satisfy `of`, in pieces of at most `most` characters.
fn runs(text: &str, most: usize, of: impl Fn(char) -> bool, operation: &OperationContext) -> Result<Vec<Token>> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    let mut began = None;
    for (at, letter) in text.char_indices() {
        match (of(letter), began) {
            (true, None) => began = Some(at),
            (false, Some(start)) => {
                spans.push((start, at));
                began = None;
            }
            _ => {}
        }
    }
    spans.extend(began.map(|start| (start, text.len())));
    let pieces = |(start, end): (usize, usize)| {
        words::parts(&text[start..end], most)
            .into_iter()
            .map(move |(from, part)| (start + from, start + from + part.len()))
    };
    let spans: Vec<(usize, usize)> = spans.into_iter().flat_map(pieces).collect();
    numbered(text, &spans, operation)
}

/// The spans of a group in each match of a pattern. Ends early if the pattern is stopped.
fn matches(text: &str, pattern: &Pattern, group: usize, operation: &OperationContext) -> Result<Vec<(usize, usize)>> {
    let (mut spans, mut from) = (Vec::new(), 0);
    while from <= text.len() {
        let Some(groups) = next_match(pattern, text, from, operation)? else { break };
        let Some(Some(whole)) = groups.first().cloned() else { break };
        if let Some(Some(span)) = groups.get(group) {
            spans.push((span.start, span.end));
        }
        from = if whole.end > whole.start { whole.end } else { next_character(text, whole.end) };
    }
    Ok(spans)
}

fn next_character(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(text.len() + 1, |letter| at + letter.len_utf8())
}

fn between(text: &str, cuts: &[(usize, usize)], operation: &OperationContext) -> Result<Vec<Token>> {
    let mut spans = Vec::new();
    let mut from = 0;
    for (start, end) in cuts {
        spans.push((from, *start));
        from = *end;
    }
    spans.push((from, text.len()));
    numbered(text, &spans, operation)
}

fn numbered(text: &str, spans: &[(usize, usize)], operation: &OperationContext) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    for &(start, end) in spans.iter().filter(|(start, end)| start < end) {
        count_made(&text[start..end], operation)?;
        tokens.push(Token { text: text[start..end].to_owned(), position: tokens.len() as u32, start, end });
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
        tokenizer
            .cut(text, &OperationContext::unlimited())
            .expect("without limits")
            .into_iter()
            .map(|token| token.text)
            .collect()
    }

    #[test]
    fn each_tokenizer_cuts_in_its_way() {
        assert_eq!(cut(&Tokenizer::Letters, "ab1cd é"), ["ab", "cd", "é"]);
        assert_eq!(cut(&Tokenizer::Whitespace(255), " a-b  c "), ["a-b", "c"]);
        assert_eq!(cut(&Tokenizer::Whitespace(2), " éab  c "), ["éa", "b", "c"]);
        assert_eq!(cut(&Tokenizer::Standard(2), "abc de"), ["ab", "c", "de"]);
        let comma = Pattern::compile(",", "").expect("a pattern");
        assert_eq!(cut(&Tokenizer::RegexSplit(comma), "a,b,,c"), ["a", "b", "c"]);
        let number = Pattern::compile("#(\\d+)", "").expect("a pattern");
        assert_eq!(cut(&Tokenizer::RegexGroup(number, 1), "#12 x #3"), ["12", "3"]);
        assert_eq!(cut(&Tokenizer::EdgeGram(2, 3), "abcd"), ["ab", "abc"]);
        assert_eq!(cut(&Tokenizer::NGram(2, 2), "éab"), ["éa", "ab"]);
    }
}
