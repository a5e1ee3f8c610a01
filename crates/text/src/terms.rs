//! Terms: the form of words that indexes hold and searches compare.

use crate::folding::{without_case, without_marks};
use crate::stop_words::is_stop_word;
use crate::words::words;
use crate::{Language, TextVersion};
use bunko_bson::{ValueRef, hashed_key};
use rust_stemmers::Stemmer;

/// Greatest length of a term, in bytes. Longer terms are cut and end with a hash of the whole term. Longer words have
/// no stem.
/// Source: MongoDB, text indexes of version 3.
const TERM_BYTES_MAX: usize = 256;
/// Bytes that remain of a term that is cut, without the hash.
const TERM_BYTES_LEFT: usize = 224;

/// Whether case is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseRule {
    /// Upper and lower case are equal.
    Folded,
    /// Upper and lower case differ.
    Kept,
}

/// Whether marks on letters are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiacriticRule {
    /// Letters are equal with and without marks.
    Stripped,
    /// Letters with and without marks differ.
    Kept,
}

/// How terms are made of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Version of the index, which determines the rules for letters and punctuation.
    pub version: TextVersion,
    /// The rule for case.
    pub case: CaseRule,
    /// The rule for marks.
    pub diacritics: DiacriticRule,
}

impl Rules {
    /// The rules for the terms that an index holds.
    pub fn of_index(version: TextVersion) -> Self {
        let diacritics = match version {
            TextVersion::Ascii => DiacriticRule::Kept,
            TextVersion::Unicode => DiacriticRule::Stripped,
        };
        Self { version, case: CaseRule::Folded, diacritics }
    }

    /// Converts a text to the form in which phrases are searched for: case and marks are removed as the rules say.
    pub(crate) fn plain_text(self, text: &str, language: Language) -> String {
        let folded = match self.case {
            CaseRule::Folded => without_case(text, language, self.version),
            CaseRule::Kept => text.to_owned(),
        };
        match self.diacritics {
            DiacriticRule::Stripped => without_marks(&folded),
            DiacriticRule::Kept => folded,
        }
    }

    /// Returns the terms of a text, in the order of its words. Stop words give no term.
    pub(crate) fn terms(self, text: &str, language: Language) -> impl Iterator<Item = String> {
        let stemmer = language.stems().map(Stemmer::create);
        words(text, language, self.version).filter_map(move |word| {
            let folded = without_case(word, language, self.version);
            if is_stop_word(&folded, language) {
                return None;
            }
            let word = match self.case {
                CaseRule::Folded => &folded,
                CaseRule::Kept => word,
            };
            Some(self.term(word, stemmer.as_ref())).filter(|term| !term.is_empty())
        })
    }

    fn term(self, word: &str, stemmer: Option<&Stemmer>) -> String {
        let stem = match stemmer.filter(|_| word.len() <= TERM_BYTES_MAX) {
            // Stemming needs the marks, so they are removed afterwards.
            Some(stemmer) => stemmer.stem(word).into_owned(),
            None => word.to_owned(),
        };
        let term = match self.diacritics {
            DiacriticRule::Stripped => without_marks(&stem),
            DiacriticRule::Kept => stem,
        };
        if term.len() <= TERM_BYTES_MAX {
            return term;
        }
        let left = term.floor_char_boundary(TERM_BYTES_LEFT);
        format!("{}{:016x}", &term[..left], hashed_key(ValueRef::String(&term)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str, language: Language) -> Vec<String> {
        Rules::of_index(TextVersion::Unicode).terms(text, language).collect()
    }

    #[test]
    fn terms_are_stems_of_words_that_count() {
        assert_eq!(terms("The Runners were running; isn't it?", Language::English), ["runner", "run"]);
        assert_eq!(terms("The runners", Language::None), ["the", "runners"]);
        assert_eq!(terms("Los Pingüinos añoraban", Language::Spanish), ["pinguin", "anor"]);
        assert_eq!(terms("кошки и собаки", Language::Russian), ["кошк", "собак"]);
    }

    #[test]
    fn capitals_and_marks_are_kept_where_they_count() {
        let rules = Rules { case: CaseRule::Kept, diacritics: DiacriticRule::Kept, version: TextVersion::Unicode };
        let found: Vec<_> = rules.terms("The Café cafés", Language::English).collect();
        assert_eq!(found, ["Café", "café"]);
    }

    #[test]
    fn long_words_differ_behind_what_is_left_of_them() {
        let long = "x".repeat(100_000);
        let found = terms(&format!("{long}a {long}b"), Language::English);
        assert_eq!((found[0].len(), found[1].len()), (240, 240));
        assert_ne!(found[0], found[1]);
        assert_eq!(found[0][..224], found[1][..224]);
    }
}
