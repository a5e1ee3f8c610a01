//! Splitting texts into words.
//!
//! Source: MongoDB manual, "Tokenization Delimiters". An apostrophe is part of a word in English.

use crate::{Language, TextVersion};
use icu_properties::CodePointSetData;
use icu_properties::props::{Dash, Hyphen, PatternSyntax, QuotationMark, TerminalPunctuation, WhiteSpace};

/// Splits a text into its words, in their order and unchanged.
pub(crate) fn words(text: &str, language: Language, version: TextVersion) -> impl Iterator<Item = &str> {
    text.split(move |letter| is_between(letter, language, version)).filter(|word| !word.is_empty())
}

fn is_between(letter: char, language: Language, version: TextVersion) -> bool {
    if letter == '\'' {
        return language != Language::English;
    }
    if letter.is_ascii() {
        return letter.is_ascii_whitespace() || letter == '\u{b}' || (letter.is_ascii_punctuation() && letter != '_');
    }
    version == TextVersion::Unicode
        && (CodePointSetData::new::<PatternSyntax>().contains(letter)
            || CodePointSetData::new::<WhiteSpace>().contains(letter)
            || CodePointSetData::new::<Dash>().contains(letter)
            || CodePointSetData::new::<Hyphen>().contains(letter)
            || CodePointSetData::new::<QuotationMark>().contains(letter)
            || CodePointSetData::new::<TerminalPunctuation>().contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, language: Language, version: TextVersion) -> Vec<&str> {
        words(text, language, version).collect()
    }

    #[test]
    fn punctuation_is_unicodes_since_version_3() {
        let text = "Il a dit qu'il «était» snake_case a–b";
        let expected = ["Il", "a", "dit", "qu", "il", "était", "snake_case", "a", "b"];
        assert_eq!(split(text, Language::French, TextVersion::Unicode), expected);
        let expected = ["Il", "a", "dit", "qu", "il", "«était»", "snake_case", "a–b"];
        assert_eq!(split(text, Language::French, TextVersion::Ascii), expected);
        assert_eq!(split("isn't it?", Language::English, TextVersion::Unicode), ["isn't", "it"]);
    }
}
