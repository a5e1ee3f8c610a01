//! Where a text is cut.

use super::{Token, grams, words};
use bunko_pattern::Pattern;

/// What cuts a text.
#[derive(Clone, Debug)]
pub(super) enum Tokenizer {
    /// Unicode's words.
    Standard,
    /// Runs of letters.
    Letters,
    /// What stands between white space.
    Whitespace,
    /// Nothing: the text is one token.
    Keyword,
    /// What stands between matches of a pattern.
    RegexSplit(Pattern),
    /// A group of each match of a pattern.
    RegexGroup(Pattern, usize),
    /// Beginnings of the text.
    EdgeGram(usize, usize),
    /// Parts of the text.
    NGram(usize, usize),
}

impl Tokenizer {
    pub fn cut(&self, text: &str) -> Vec<Token> {
        match self {
            Self::Standard => words::words(text),
            Self::Letters => runs(text, char::is_alphabetic),
            Self::Whitespace => runs(text, |letter| !letter.is_whitespace()),
            Self::Keyword if text.is_empty() => Vec::new(),
            Self::Keyword => vec![Token { text: text.to_owned(), position: 0, start: 0, end: text.len() }],
            Self::RegexSplit(pattern) => between(text, &matches(text, pattern, 0)),
            Self::RegexGroup(pattern, group) => numbered(text, &matches(text, pattern, *group)),
            Self::EdgeGram(least, most) => numbered(text, &grams::edges(text, *least, *most)),
            Self::NGram(least, most) => numbered(text, &grams::all(text, *least, *most)),
        }
    }
}

/// The longest parts all of whose characters are `of`.
fn runs(text: &str, of: impl Fn(char) -> bool) -> Vec<Token> {
    let mut spans = Vec::new();
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
    numbered(text, &spans)
}

/// Where a group of each match of a pattern stands; nothing more once the pattern is stopped.
fn matches(text: &str, pattern: &Pattern, group: usize) -> Vec<(usize, usize)> {
    let (mut spans, mut from) = (Vec::new(), 0);
    while from <= text.len() {
        let Ok(Some(groups)) = pattern.find(text, from, |_| Ok::<(), ()>(())) else { break };
        let Some(Some(whole)) = groups.first().cloned() else { break };
        if let Some(Some(span)) = groups.get(group) {
            spans.push((span.start, span.end));
        }
        from = if whole.end > whole.start { whole.end } else { next_character(text, whole.end) };
    }
    spans
}

fn next_character(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(text.len() + 1, |letter| at + letter.len_utf8())
}

fn between(text: &str, cuts: &[(usize, usize)]) -> Vec<Token> {
    let mut spans = Vec::new();
    let mut from = 0;
    for (start, end) in cuts {
        spans.push((from, *start));
        from = *end;
    }
    spans.push((from, text.len()));
    numbered(text, &spans)
}

fn numbered(text: &str, spans: &[(usize, usize)]) -> Vec<Token> {
    let spans = spans.iter().filter(|(start, end)| start < end).enumerate();
    let token = |(position, &(start, end)): (usize, &(usize, usize))| Token {
        text: text[start..end].to_owned(),
        position: position as u32,
        start,
        end,
    };
    spans.map(token).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
        tokenizer.cut(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn each_tokenizer_cuts_in_its_way() {
        assert_eq!(cut(&Tokenizer::Letters, "ab1cd é"), ["ab", "cd", "é"]);
        assert_eq!(cut(&Tokenizer::Whitespace, " a-b  c "), ["a-b", "c"]);
        let comma = Pattern::compile(",", "").expect("a pattern");
        assert_eq!(cut(&Tokenizer::RegexSplit(comma), "a,b,,c"), ["a", "b", "c"]);
        let number = Pattern::compile("#(\\d+)", "").expect("a pattern");
        assert_eq!(cut(&Tokenizer::RegexGroup(number, 1), "#12 x #3"), ["12", "3"]);
        assert_eq!(cut(&Tokenizer::EdgeGram(2, 3), "abcd"), ["ab", "abc"]);
        assert_eq!(cut(&Tokenizer::NGram(2, 2), "éab"), ["éa", "ab"]);
    }
}
