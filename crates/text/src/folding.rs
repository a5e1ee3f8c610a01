//! Texts without the case of their letters, and without the marks on them.
//!
//! Source: MongoDB manual, "Text Index Properties": case folding by Unicode's common and simple rules, and by its
//! special rules for Turkish; marks are Unicode's diacritics.

use crate::{Language, TextVersion};
use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::CodePointSetData;
use icu_properties::props::Diacritic;

/// Converts a text to lower case by the rules of the language and of the index's version.
pub(crate) fn without_case(text: &str, language: Language, version: TextVersion) -> String {
    if version == TextVersion::Ascii {
        return text.to_ascii_lowercase();
    }
    if text.is_ascii() && language != Language::Turkish {
        return text.to_ascii_lowercase();
    }
    text.chars().map(|letter| folded(letter, language)).collect()
}

fn folded(letter: char, language: Language) -> char {
    match (letter, language) {
        ('I', Language::Turkish) => 'ı',
        ('İ', Language::Turkish) => 'i',
        // The lower case of 'İ' is two characters, and simple rules map one character to one.
        ('İ', _) => letter,
        // The way through upper case makes all lower-case letters of one capital equal: 'ς' and 'σ', 'ſ' and 's'.
        _ => {
            let capital = single(letter, letter.to_uppercase());
            single(capital, capital.to_lowercase())
        }
    }
}

/// The mapping of a letter if that is one character, else the letter itself.
fn single(letter: char, mut made: impl Iterator<Item = char>) -> char {
    match (made.next(), made.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

/// Removes the marks on the letters of a text.
pub(crate) fn without_marks(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let marks = CodePointSetData::new::<Diacritic>();
    let decomposition = DecomposingNormalizerBorrowed::new_nfd();
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_ascii() {
            plain.push(letter);
            continue;
        }
        let parts: Vec<char> = decomposition.normalize_iter(std::iter::once(letter)).collect();
        if parts.iter().any(|part| marks.contains(*part)) {
            plain.extend(parts.into_iter().filter(|part| !marks.contains(*part)));
        } else {
            // A letter without marks stays composed: a syllable of Hangul is one letter.
            plain.push(letter);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_goes_by_simple_rules_and_turkish_ones() {
        let english = |text| without_case(text, Language::English, TextVersion::Unicode);
        assert_eq!(english("ÉCOLE Straße ΣΑΣ ſ İI"), "école straße σασ s İi");
        assert_eq!(without_case("Iİ", Language::Turkish, TextVersion::Unicode), "ıi");
        assert_eq!(without_case("ÉA", Language::French, TextVersion::Ascii), "Éa");
    }

    #[test]
    fn marks_go_and_letters_stay() {
        assert_eq!(without_marks("café añoraba e\u{301} 한국 ø"), "cafe anoraba e 한국 ø");
    }
}
