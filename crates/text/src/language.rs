//! The languages that texts may be in.
//!
//! Source: MongoDB manual, "Text Search Languages on Self-Managed Deployments".

use rust_stemmers::Algorithm;

/// A language. It determines the stop words, the stems and the case of some letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// No language: no word is a stop word, and none has a stem.
    None,
    /// Dansk.
    Danish,
    /// Nederlands.
    Dutch,
    /// English.
    English,
    /// Suomi.
    Finnish,
    /// Français.
    French,
    /// Deutsch.
    German,
    /// Magyar.
    Hungarian,
    /// Italiano.
    Italian,
    /// Norsk.
    Norwegian,
    /// Português.
    Portuguese,
    /// Română.
    Romanian,
    /// Русский.
    Russian,
    /// Español.
    Spanish,
    /// Svenska.
    Swedish,
    /// Türkçe.
    Turkish,
}

/// Facts about a language.
struct Entry {
    language: Language,
    /// The language's names, the usual one first.
    names: &'static [&'static str],
    stems: Option<Algorithm>,
    /// Stop words, one a line. Lines that begin with `#` are comments.
    stop_words: &'static str,
}

macro_rules! language {
    ($language:ident, $name:literal, $code:literal) => {
        Entry {
            language: Language::$language,
            names: &[$name, $code],
            stems: Some(Algorithm::$language),
            stop_words: include_str!(concat!("../stop_words/", $name, ".txt")),
        }
    };
}

const LANGUAGES: &[Entry] = &[
    Entry { language: Language::None, names: &["none"], stems: None, stop_words: "" },
    language!(Danish, "danish", "da"),
    language!(Dutch, "dutch", "nl"),
    language!(English, "english", "en"),
    language!(Finnish, "finnish", "fi"),
    language!(French, "french", "fr"),
    language!(German, "german", "de"),
    language!(Hungarian, "hungarian", "hu"),
    language!(Italian, "italian", "it"),
    language!(Norwegian, "norwegian", "nb"),
    language!(Portuguese, "portuguese", "pt"),
    language!(Romanian, "romanian", "ro"),
    language!(Russian, "russian", "ru"),
    language!(Spanish, "spanish", "es"),
    language!(Swedish, "swedish", "sv"),
    language!(Turkish, "turkish", "tr"),
];

/// Names that only text indexes of version 1 have: the stemming library's.
/// Source: Snowball project, `libstemmer`, `modules.txt`.
const SHORT_NAMES: &[(&str, Language)] = &[
    ("dan", Language::Danish),
    ("deu", Language::German),
    ("dut", Language::Dutch),
    ("eng", Language::English),
    ("esl", Language::Spanish),
    ("fin", Language::Finnish),
    ("fra", Language::French),
    ("fre", Language::French),
    ("ger", Language::German),
    ("hun", Language::Hungarian),
    ("ita", Language::Italian),
    ("nld", Language::Dutch),
    ("no", Language::Norwegian),
    ("nor", Language::Norwegian),
    ("por", Language::Portuguese),
    ("porter", Language::English),
    ("ron", Language::Romanian),
    ("rum", Language::Romanian),
    ("rus", Language::Russian),
    ("spa", Language::Spanish),
    ("swe", Language::Swedish),
    ("tur", Language::Turkish),
];

impl Language {
    /// Finds a language by its name or two-letter code, ignoring case, for text indexes of this version. Version 1 has
    /// more short names, distinguishes case, and takes every unknown name as [`Self::None`].
    pub fn of_index(name: &str, version: i64) -> Option<Self> {
        if version > 1 {
            return Self::named(name);
        }
        let is_called = |entry: &&Entry| entry.names.contains(&name);
        let short = || SHORT_NAMES.iter().find(|(short, _)| *short == name).map(|(_, language)| *language);
        Some(LANGUAGES.iter().find(is_called).map(|entry| entry.language).or_else(short).unwrap_or(Self::None))
    }

    /// Finds a language by its name or two-letter code, ignoring case.
    pub fn named(name: &str) -> Option<Self> {
        let is_called = |entry: &&Entry| entry.names.iter().any(|own| own.eq_ignore_ascii_case(name));
        LANGUAGES.iter().find(is_called).map(|entry| entry.language)
    }

    fn entry(self) -> &'static Entry {
        &LANGUAGES[self as usize]
    }

    /// The usual name of the language.
    pub fn name(self) -> &'static str {
        self.entry().names[0]
    }

    pub(crate) fn stems(self) -> Option<Algorithm> {
        self.entry().stems
    }

    /// Words that are too frequent to search for, in lower case.
    pub fn stop_words(self) -> impl Iterator<Item = &'static str> {
        self.entry().stop_words.lines().filter(|line| !line.starts_with('#'))
    }

    /// All languages.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        LANGUAGES.iter().map(|entry| entry.language)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_stand_in_the_table_where_they_are_looked_up() {
        for (position, entry) in LANGUAGES.iter().enumerate() {
            assert_eq!(entry.language as usize, position);
        }
    }

    #[test]
    fn the_first_version_has_more_names_and_refuses_none() {
        assert_eq!(Language::of_index("eng", 1), Some(Language::English));
        assert_eq!(Language::of_index("english", 1), Some(Language::English));
        assert_eq!(Language::of_index("ENGLISH", 1), Some(Language::None));
        assert_eq!(Language::of_index("klingon", 1), Some(Language::None));
        assert_eq!(Language::of_index("ENGLISH", 2), Some(Language::English));
        assert_eq!(Language::of_index("eng", 3), None);
    }

    #[test]
    fn a_language_has_a_name_and_two_letters() {
        assert_eq!(Language::named("Spanish"), Some(Language::Spanish));
        assert_eq!(Language::named("ES"), Some(Language::Spanish));
        assert_eq!(Language::named("spanglish"), None);
    }
}
