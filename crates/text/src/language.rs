//! The languages that texts may be in.
//!
//! Source: MongoDB manual, "Text Search Languages on Self-Managed Deployments".

use rust_stemmers::Algorithm;

/// A language: it decides about stop words, stems and some letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// Words as they are: all count, and none has a stem.
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

/// What is known of a language.
struct Entry {
    language: Language,
    /// How it may be called, the usual name first.
    names: &'static [&'static str],
    stems: Option<Algorithm>,
    /// One a line; comments begin with `#`.
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

impl Language {
    /// By its name or its two letters, in capitals or not.
    pub fn named(name: &str) -> Option<Self> {
        let is_called = |entry: &&Entry| entry.names.iter().any(|own| own.eq_ignore_ascii_case(name));
        LANGUAGES.iter().find(is_called).map(|entry| entry.language)
    }

    fn entry(self) -> &'static Entry {
        &LANGUAGES[self as usize]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.entry().names[0]
    }

    pub(crate) fn stems(self) -> Option<Algorithm> {
        self.entry().stems
    }

    /// Words that are too frequent to search for, in small letters.
    pub fn stop_words(self) -> impl Iterator<Item = &'static str> {
        self.entry().stop_words.lines().filter(|line| !line.starts_with('#'))
    }

    /// All of them.
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
    fn a_language_has_a_name_and_two_letters() {
        assert_eq!(Language::named("Spanish"), Some(Language::Spanish));
        assert_eq!(Language::named("ES"), Some(Language::Spanish));
        assert_eq!(Language::named("spanglish"), None);
    }
}
