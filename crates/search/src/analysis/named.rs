//! The analyzers that need no definition.

use super::Analyzer;
use super::filters::Filter;
use super::tokenizers::{TOKEN_CHARACTERS_MAX, Tokenizer};
use bunko_text::Language;
use rust_stemmers::Algorithm;
use std::collections::HashSet;
use std::sync::Arc;

/// Words of English that are too frequent. Source: Lucene manual, `EnglishAnalyzer`.
const ENGLISH_STOP_WORDS: &str = "a an and are as at be but by for if in into is it no not of on or such that the their then \
                                  there these they this to was will with";

/// The languages of `lucene.NAME` that are built, and how their words are stemmed.
const LANGUAGES: &[(&str, Algorithm)] = &[
    ("danish", Algorithm::Danish),
    ("dutch", Algorithm::Dutch),
    ("english", Algorithm::English),
    ("finnish", Algorithm::Finnish),
    ("french", Algorithm::French),
    ("german", Algorithm::German),
    ("hungarian", Algorithm::Hungarian),
    ("italian", Algorithm::Italian),
    ("norwegian", Algorithm::Norwegian),
    ("portuguese", Algorithm::Portuguese),
    ("romanian", Algorithm::Romanian),
    ("russian", Algorithm::Russian),
    ("spanish", Algorithm::Spanish),
    ("swedish", Algorithm::Swedish),
    ("turkish", Algorithm::Turkish),
];

/// The languages of MongoDB that are not built.
const LANGUAGES_MISSING: &[&str] = &[
    "arabic",
    "armenian",
    "basque",
    "bengali",
    "brazilian",
    "bulgarian",
    "catalan",
    "chinese",
    "cjk",
    "czech",
    "galician",
    "greek",
    "hindi",
    "indonesian",
    "irish",
    "japanese",
    "korean",
    "kuromoji",
    "latvian",
    "lithuanian",
    "morfologik",
    "nori",
    "persian",
    "polish",
    "smartcn",
    "sorani",
    "thai",
    "ukrainian",
];

/// How a snowball stemmer is called in a definition.
pub(super) fn stemmer(name: &str) -> Option<Algorithm> {
    LANGUAGES.iter().find(|(language, _)| *language == name).map(|(_, algorithm)| *algorithm)
}

/// Whether MongoDB has an analyzer of that name that is not built.
pub(super) fn is_missing(name: &str) -> bool {
    name.strip_prefix("lucene.").is_some_and(|language| LANGUAGES_MISSING.contains(&language))
}

/// The analyzer with that name.
pub(super) fn analyzer(name: &str) -> Option<Analyzer> {
    let name = name.strip_prefix("lucene.")?;
    Some(match name {
        "standard" => Analyzer::new(Tokenizer::Standard(TOKEN_CHARACTERS_MAX), vec![Filter::Lowercase]),
        "simple" => Analyzer::new(Tokenizer::Letters, vec![Filter::Lowercase]),
        "whitespace" => Analyzer::new(Tokenizer::Whitespace(TOKEN_CHARACTERS_MAX), Vec::new()),
        "keyword" => Analyzer::new(Tokenizer::Keyword, Vec::new()),
        _ => of_language(name)?,
    })
}

fn of_language(name: &str) -> Option<Analyzer> {
    let algorithm = stemmer(name)?;
    let mut filters = Vec::new();
    if name == "english" {
        filters.push(Filter::EnglishPossessive);
    }
    filters.push(Filter::Lowercase);
    filters.push(Filter::Stop(Arc::new(stop_words(name))));
    filters.push(Filter::Stem(algorithm));
    Some(Analyzer::new(Tokenizer::Standard(TOKEN_CHARACTERS_MAX), filters))
}

fn stop_words(name: &str) -> HashSet<String> {
    match (name, Language::named(name)) {
        ("english", _) => ENGLISH_STOP_WORDS.split_whitespace().map(str::to_owned).collect(),
        (_, Some(language)) => language.stop_words().map(str::to_owned).collect(),
        (_, None) => HashSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_operation::OperationContext;

    fn texts(name: &str, text: &str) -> Vec<String> {
        analyzer(name)
            .expect("an analyzer")
            .analyze(text, &OperationContext::unlimited())
            .expect("without limits")
            .into_iter()
            .map(|token| token.text)
            .collect()
    }

    #[test]
    fn analyzers_cut_as_they_are_called() {
        assert_eq!(texts("lucene.standard", "The Lion's  Den"), ["the", "lion's", "den"]);
        assert_eq!(texts("lucene.simple", "The Lion's D3n"), ["the", "lion", "s", "d", "n"]);
        assert_eq!(texts("lucene.keyword", "The Lion"), ["The Lion"]);
        assert_eq!(texts("lucene.english", "The lion's running"), ["lion", "run"]);
        assert!(analyzer("lucene.klingon").is_none() && is_missing("lucene.cjk"));
    }

    #[test]
    fn a_word_that_is_left_out_keeps_its_place() {
        let tokens = analyzer("lucene.english")
            .expect("an analyzer")
            .analyze("the cat", &OperationContext::unlimited())
            .expect("without limits");
        assert_eq!(tokens[0].position, 1);
    }
}
