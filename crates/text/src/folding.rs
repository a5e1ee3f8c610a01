//! Letters without their case and without their marks.
//!
//! Source: MongoDB manual, "Text Index Properties": case folding by Unicode's common and simple rules, and its special ones for
//! Turkish; marks are what Unicode calls diacritics.

use crate::{Language, TextVersion};
use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::CodePointSetData;
use icu_properties::props::Diacritic;

/// A text in small letters.
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
        // Its small letter is two characters, which the simple rules do not make of one.
        ('İ', _) => letter,
        // By way of capitals, so that all small letters of one capital are one: 'ς' and 'σ', 'ſ' and 's'.
        _ => {
            let capital = single(letter, letter.to_uppercase());
            single(capital, capital.to_lowercase())
        }
    }
}

/// The one character that something is; the letter itself where it is several.
fn single(letter: char, mut made: impl Iterator<Item = char>) -> char {
    match (made.next(), made.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

/// A text without the marks on its letters.
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
            // What has no mark stays whole: a syllable of Hangul is one letter.
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
