//! Token filters.

use super::{Token, count_made, folding, grams, next_match};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_pattern::Pattern;
use rust_stemmers::{Algorithm, Stemmer};
use std::collections::HashSet;
use std::sync::Arc;

/// A token filter.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    /// Changes to lower case.
    Lowercase,
    /// Changes to upper case.
    Uppercase,
    /// Replaces accented Latin letters by plain ones; optionally keeps the original token beside it.
    AsciiFolding { keeps_original: bool },
    /// Removes accents and case.
    IcuFolding,
    /// Unicode normalization form KC, without case.
    IcuNormalize,
    /// Removes `'s` at the end.
    EnglishPossessive,
    /// Removes these words.
    Stop(Arc<HashSet<String>>),
    /// Replaces words by their stems.
    Stem(Algorithm),
    /// Keeps tokens with at least and at most this many characters.
    Length(usize, usize),
    /// Replaces tokens by their prefixes; the third argument keeps tokens that are too short for one.
    EdgeGram(usize, usize, bool),
    /// Replaces tokens by their parts; the third argument keeps tokens that are too short for one.
    NGram(usize, usize, bool),
    /// Removes white space at both ends.
    Trim,
    /// Reverses the characters.
    Reverse,
    /// Replaces matches of a pattern: the first one, or all.
    Regex { pattern: Pattern, by: String, everywhere: bool },
    /// Adds shingles: at least and at most this many neighbouring tokens, joined.
    Shingle(usize, usize),
    /// Removes repeated texts at one position.
    RemoveDuplicates,
}

impl Filter {
    /// # Errors
    /// Errors of counting work.
    pub fn apply(&self, mut tokens: Vec<Token>, operation: &OperationContext) -> Result<Vec<Token>> {
        operation.work(1 + tokens.len() / 16)?;
        let each =
            |tokens: Vec<Token>, change: &dyn Fn(&str) -> String| each(tokens, |text| Ok(change(text)), operation);
        match self {
            Self::Lowercase => each(tokens, &folding::lower),
            Self::Uppercase => each(tokens, &str::to_uppercase),
            Self::AsciiFolding { keeps_original: false } => each(tokens, &folding::plain),
            Self::AsciiFolding { keeps_original: true } => beside(tokens, folding::plain, operation),
            Self::IcuFolding => each(tokens, &|text| folding::lower(&folding::plain(text))),
            Self::IcuNormalize => each(tokens, &|text| {
                icu_normalizer::ComposingNormalizerBorrowed::new_nfkc().normalize(text).to_lowercase()
            }),
            Self::EnglishPossessive => each(tokens, &|text| {
                let without = ["'s", "'S", "’s", "’S"].iter().find_map(|end| text.strip_suffix(end));
                without.unwrap_or(text).to_owned()
            }),
            Self::Stop(words) => {
                tokens.retain(|token| !words.contains(&token.text));
                Ok(tokens)
            }
            Self::Stem(algorithm) => {
                let stemmer = Stemmer::create(*algorithm);
                each(tokens, &|text| stemmer.stem(text).into_owned())
            }
            Self::Length(least, most) => {
                tokens.retain(|token| (*least..=*most).contains(&token.text.chars().count()));
                Ok(tokens)
            }
            Self::EdgeGram(least, most, keeps) => {
                parts(tokens, *keeps, |text| Ok(grams::edges(text, *least, *most)), operation)
            }
            Self::NGram(least, most, keeps) => {
                parts(tokens, *keeps, |text| grams::all(text, *least, *most, operation), operation)
            }
            Self::Trim => each(tokens, &|text| text.trim().to_owned()),
            Self::Reverse => each(tokens, &|text| text.chars().rev().collect()),
            Self::Regex { pattern, by, everywhere } => {
                self::each(tokens, |text| replaced(text, pattern, by, *everywhere, operation), operation)
            }
            Self::Shingle(least, most) => shingles(&tokens, *least, *most, operation),
            Self::RemoveDuplicates => {
                let mut seen = HashSet::new();
                tokens.retain(|token| seen.insert((token.position, token.text.clone())));
                Ok(tokens)
            }
        }
    }
}

fn each(
    mut tokens: Vec<Token>,
    change: impl Fn(&str) -> Result<String>,
    operation: &OperationContext,
) -> Result<Vec<Token>> {
    for token in &mut tokens {
        token.text = change(&token.text)?;
        count_made(&token.text, operation)?;
    }
    Ok(tokens)
}

/// Changed tokens, each followed by the original if it differs.
fn beside(tokens: Vec<Token>, change: impl Fn(&str) -> String, operation: &OperationContext) -> Result<Vec<Token>> {
    let mut all = Vec::with_capacity(tokens.len());
    for token in tokens {
        let text = change(&token.text);
        count_made(&text, operation)?;
        if text != token.text {
            all.push(token.with_text(text));
        }
        all.push(token);
    }
    Ok(all)
}

/// Parts of tokens, each at the position of its token.
fn parts(
    tokens: Vec<Token>,
    keeps: bool,
    spans: impl Fn(&str) -> Result<Vec<(usize, usize)>>,
    operation: &OperationContext,
) -> Result<Vec<Token>> {
    let mut all = Vec::new();
    for token in tokens {
        operation.work(1)?;
        let spans = spans(&token.text)?;
        if spans.is_empty() && keeps {
            all.push(token);
            continue;
        }
        for (start, end) in spans {
            let text = &token.text[start..end];
            count_made(text, operation)?;
            all.push(token.with_text(text.to_owned()));
        }
    }
    Ok(all)
}

fn replaced(text: &str, pattern: &Pattern, by: &str, everywhere: bool, operation: &OperationContext) -> Result<String> {
    let (mut made, mut from) = (String::new(), 0);
    while from <= text.len() {
        let Some(groups) = next_match(pattern, text, from, operation)? else { break };
        let Some(Some(whole)) = groups.first().cloned() else { break };
        count_made(by, operation)?;
        made.push_str(&text[from..whole.start]);
        made.push_str(by);
        from = whole.end;
        if whole.start == whole.end {
            let Some(letter) = text[from..].chars().next() else { return Ok(made) };
            made.push(letter);
            from += letter.len_utf8();
        }
        if !everywhere {
            break;
        }
    }
    Ok(made + &text[from.min(text.len())..])
}

/// Each token, followed by its shingles: joined with its next neighbours.
fn shingles(tokens: &[Token], least: usize, most: usize, operation: &OperationContext) -> Result<Vec<Token>> {
    let mut all = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        all.push(token.clone());
        for length in least..=most {
            let Some(together) = tokens.get(at..at + length) else { break };
            let text = together.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ");
            count_made(&text, operation)?;
            all.push(Token { end: together[length - 1].end, ..token.with_text(text) });
        }
    }
    Ok(all)
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
        let tokens = filter.apply(texts.iter().enumerate().map(token).collect(), &OperationContext::unlimited());
        tokens.expect("without limits").into_iter().map(|token| token.text).collect()
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
