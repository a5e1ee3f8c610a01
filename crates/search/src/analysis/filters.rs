//! What is done to tokens.

use super::{Token, folding, grams};
use bunko_pattern::Pattern;
use rust_stemmers::{Algorithm, Stemmer};
use std::collections::HashSet;
use std::sync::Arc;

/// A change of tokens.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    /// Small letters.
    Lowercase,
    /// Capitals.
    Uppercase,
    /// Letters of Latin for their kin; the token as it was beside it where the second says so.
    AsciiFolding { keeps_original: bool },
    /// Letters without marks and case.
    IcuFolding,
    /// Unicode's normal form KC, without case.
    IcuNormalize,
    /// No `'s` at the end.
    EnglishPossessive,
    /// Without these words.
    Stop(Arc<HashSet<String>>),
    /// Stems.
    Stem(Algorithm),
    /// Tokens of so many characters.
    Length(usize, usize),
    /// Beginnings of tokens; a token that has none stays where the third says so.
    EdgeGram(usize, usize, bool),
    /// Parts of tokens.
    NGram(usize, usize, bool),
    /// Without white space around.
    Trim,
    /// From its end to its beginning.
    Reverse,
    /// What matches becomes something else: once, or wherever it is.
    Regex { pattern: Pattern, by: String, everywhere: bool },
    /// Neighbours together.
    Shingle(usize, usize),
    /// Each twice at one position; the second one is not stemmed.
    RemoveDuplicates,
}

impl Filter {
    pub fn apply(&self, mut tokens: Vec<Token>) -> Vec<Token> {
        match self {
            Self::Lowercase => each(tokens, folding::lower),
            Self::Uppercase => each(tokens, str::to_uppercase),
            Self::AsciiFolding { keeps_original: false } => each(tokens, folding::plain),
            Self::AsciiFolding { keeps_original: true } => beside(tokens, folding::plain),
            Self::IcuFolding => each(tokens, |text| folding::lower(&folding::plain(text))),
            Self::IcuNormalize => each(tokens, |text| {
                icu_normalizer::ComposingNormalizerBorrowed::new_nfkc().normalize(text).to_lowercase()
            }),
            Self::EnglishPossessive => each(tokens, |text| {
                let without = ["'s", "'S", "’s", "’S"].iter().find_map(|end| text.strip_suffix(end));
                without.unwrap_or(text).to_owned()
            }),
            Self::Stop(words) => {
                tokens.retain(|token| !words.contains(&token.text));
                tokens
            }
            Self::Stem(algorithm) => {
                let stemmer = Stemmer::create(*algorithm);
                each(tokens, |text| stemmer.stem(text).into_owned())
            }
            Self::Length(least, most) => {
                tokens.retain(|token| (*least..=*most).contains(&token.text.chars().count()));
                tokens
            }
            Self::EdgeGram(least, most, keeps) => parts(tokens, *keeps, |text| grams::edges(text, *least, *most)),
            Self::NGram(least, most, keeps) => parts(tokens, *keeps, |text| grams::all(text, *least, *most)),
            Self::Trim => each(tokens, |text| text.trim().to_owned()),
            Self::Reverse => each(tokens, |text| text.chars().rev().collect()),
            Self::Regex { pattern, by, everywhere } => each(tokens, |text| replaced(text, pattern, by, *everywhere)),
            Self::Shingle(least, most) => shingles(&tokens, *least, *most),
            Self::RemoveDuplicates => {
                let mut seen = HashSet::new();
                tokens.retain(|token| seen.insert((token.position, token.text.clone())));
                tokens
            }
        }
    }
}

fn each(mut tokens: Vec<Token>, change: impl Fn(&str) -> String) -> Vec<Token> {
    for token in &mut tokens {
        token.text = change(&token.text);
    }
    tokens
}

/// Changed tokens with the unchanged ones beside them, where they differ.
fn beside(tokens: Vec<Token>, change: impl Fn(&str) -> String) -> Vec<Token> {
    let mut all = Vec::with_capacity(tokens.len());
    for token in tokens {
        let text = change(&token.text);
        if text != token.text {
            all.push(Token { text, ..token.clone() });
        }
        all.push(token);
    }
    all
}

/// Parts of tokens, each at its token's position.
fn parts(tokens: Vec<Token>, keeps: bool, spans: impl Fn(&str) -> Vec<(usize, usize)>) -> Vec<Token> {
    let mut all = Vec::new();
    for token in tokens {
        let spans = spans(&token.text);
        if spans.is_empty() && keeps {
            all.push(token);
            continue;
        }
        all.extend(
            spans.into_iter().map(|(start, end)| Token { text: token.text[start..end].to_owned(), ..token.clone() }),
        );
    }
    all
}

fn replaced(text: &str, pattern: &Pattern, by: &str, everywhere: bool) -> String {
    let (mut made, mut from) = (String::new(), 0);
    while from <= text.len() {
        let Ok(Some(groups)) = pattern.find(text, from, |_| Ok::<(), ()>(())) else { break };
        let Some(Some(whole)) = groups.first().cloned() else { break };
        made.push_str(&text[from..whole.start]);
        made.push_str(by);
        from = whole.end;
        if whole.start == whole.end {
            let Some(letter) = text[from..].chars().next() else { return made };
            made.push(letter);
            from += letter.len_utf8();
        }
        if !everywhere {
            break;
        }
    }
    made + &text[from.min(text.len())..]
}

/// Each token, and its neighbours with it.
fn shingles(tokens: &[Token], least: usize, most: usize) -> Vec<Token> {
    let mut all = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        all.push(token.clone());
        for length in least..=most {
            let Some(together) = tokens.get(at..at + length) else { break };
            let text = together.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ");
            all.push(Token { text, end: together[length - 1].end, ..token.clone() });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(filter: &Filter, texts: &[&str]) -> Vec<String> {
        let token = |(position, text): (usize, &&str)| Token {
            text: (*text).to_owned(),
            position: position as u32,
            start: 0,
            end: text.len(),
        };
        filter.apply(texts.iter().enumerate().map(token).collect()).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn each_filter_does_its_work() {
        assert_eq!(after(&Filter::EnglishPossessive, &["dog's", "dogs"]), ["dog", "dogs"]);
        assert_eq!(after(&Filter::Shingle(2, 2), &["a", "b", "c"]), ["a", "a b", "b", "b c", "c"]);
        assert_eq!(after(&Filter::Stem(Algorithm::English), &["running"]), ["run"]);
        assert_eq!(after(&Filter::EdgeGram(2, 3, true), &["abc", "x"]), ["ab", "abc", "x"]);
        let digits = Pattern::compile("\\d", "").expect("a pattern");
        let filter = Filter::Regex { pattern: digits, by: "-".into(), everywhere: true };
        assert_eq!(after(&filter, &["a1b22"]), ["a-b--"]);
    }
}
