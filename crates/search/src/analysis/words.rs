//! The words of a text by Unicode annex 29, as `lucene.standard` cuts them: what has no letter, digit or picture in it is
//! none, and letters of scripts without spaces stand alone.

use super::Token;
use icu_properties::props::{ExtendedPictographic, GeneralCategory, Script};
use icu_properties::{CodePointMapData, CodePointSetData};
use unicode_segmentation::UnicodeSegmentation;

/// A longer word is cut. Source: Lucene, `StandardAnalyzer`.
const WORD_CHARACTERS_MAX: usize = 255;

/// The words of a text.
pub(super) fn words(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    for (start, piece) in text.split_word_bound_indices().filter(|(_, piece)| is_word(piece)) {
        for (from, part) in parts(piece) {
            let (position, start) = (tokens.len() as u32, start + from);
            tokens.push(Token { text: part.to_owned(), position, start, end: start + part.len() });
        }
    }
    tokens
}

/// A word, or the parts of one that is too long.
fn parts(word: &str) -> Vec<(usize, &str)> {
    if word.len() <= WORD_CHARACTERS_MAX {
        return vec![(0, word)];
    }
    let mut starts: Vec<usize> = word.char_indices().step_by(WORD_CHARACTERS_MAX).map(|(at, _)| at).collect();
    starts.push(word.len());
    starts.windows(2).map(|ends| (ends[0], &word[ends[0]..ends[1]])).collect()
}

fn is_word(piece: &str) -> bool {
    piece.chars().any(is_of_word)
}

fn is_of_word(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric();
    }
    if letter.is_alphanumeric() {
        return true;
    }
    // Marks of scripts whose words are cut nowhere are letters to them.
    let is_asian = || {
        let script = CodePointMapData::<Script>::new().get(letter);
        matches!(script, Script::Thai | Script::Lao | Script::Khmer | Script::Myanmar)
    };
    let category = CodePointMapData::<GeneralCategory>::new().get(letter);
    match category {
        GeneralCategory::SpacingMark | GeneralCategory::NonspacingMark => is_asian(),
        GeneralCategory::OtherSymbol => CodePointSetData::new::<ExtendedPictographic>().contains(letter),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        words(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_are_cut_by_unicode() {
        assert_eq!(cut("The $quick, can't (3.14) a_b!"), ["The", "quick", "can't", "3.14", "a_b"]);
        assert_eq!(cut("日本語 😀 x"), ["日", "本", "語", "😀", "x"]);
        assert_eq!(cut("one\\two\u{1}three\u{200b}four"), ["one", "two", "three", "four"]);
        assert_eq!(cut("\u{feff}one a\u{200d}b"), ["one", "a\u{200d}b"]);
        assert_eq!(cut("!!! \u{0} _"), Vec::<String>::new());
    }

    #[test]
    fn a_long_word_is_cut() {
        let lengths: Vec<usize> = words(&"a".repeat(600)).iter().map(|token| token.text.len()).collect();
        assert_eq!(lengths, [255, 255, 90]);
    }
}
