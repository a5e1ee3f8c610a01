//! Words that are too frequent to search for.

use crate::Language;
use foldhash::HashSet;
use std::sync::LazyLock;

/// The stop words of each language, in the order of [`Language::all`].
static STOP_WORDS: LazyLock<Vec<HashSet<&'static str>>> =
    LazyLock::new(|| Language::all().map(|language| language.stop_words().collect()).collect());

/// Whether a word, in lower case, is a stop word of the language.
pub(crate) fn is_stop_word(word: &str, language: Language) -> bool {
    STOP_WORDS[language as usize].contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_but_none_has_stop_words() {
        for language in Language::all() {
            let count = STOP_WORDS[language as usize].len();
            assert_eq!(count > 80, language != Language::None, "{}: {count}", language.name());
        }
        assert!(is_stop_word("the", Language::English) && is_stop_word("isn't", Language::English));
        assert!(!is_stop_word("coffee", Language::English) && !is_stop_word("the", Language::None));
    }
}
