//! Words of a text by Unicode annex 29, as `lucene.standard` splits them. A piece without a letter, digit or pictograph
//! is not a word, and letters of scripts without spaces are words of their own.

use super::{Token, count_made};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use icu_properties::props::{ExtendedPictographic, GeneralCategory, Script};
use icu_properties::{CodePointMapData, CodePointSetData};
use unicode_segmentation::UnicodeSegmentation;

/// The words of a text; words of more than `most` characters are split.
/// # Errors
/// Errors of counting work.
pub(super) fn words(text: &str, most: usize, operation: &OperationContext) -> Result<Vec<Token>> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut push = |start: usize, piece: &str| {
        count_made(piece, operation)?;
        for (from, part) in parts(piece, most) {
            let (position, start) = (tokens.len() as u32, start + from);
            tokens.push(Token { text: part.to_owned(), position, start, end: start + part.len() });
        }
        Ok(())
    };
    if text.is_ascii() {
        ascii_words(text, &mut push)?;
    } else {
        for (start, piece) in text.split_word_bound_indices() {
            count_made(piece, operation)?;
            if is_word(piece) {
                push(start, piece)?;
            }
        }
    }
    Ok(tokens)
}

/// The rules for text that is all ASCII.
fn ascii_words<'t>(text: &'t str, push: &mut impl FnMut(usize, &'t str) -> Result<()>) -> Result<()> {
    let bytes = text.as_bytes();
    let in_word = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    // Some marks between two letters, or between two digits, do not split a word.
    let joins = |at: usize| {
        let Some((before, behind)) =
            at.checked_sub(1).and_then(|before| Some((bytes.get(before)?, bytes.get(at + 1)?)))
        else {
            return false;
        };
        let letters = before.is_ascii_alphabetic() && behind.is_ascii_alphabetic();
        let digits = before.is_ascii_digit() && behind.is_ascii_digit();
        match bytes[at] {
            b'.' | b'\'' => letters || digits,
            b':' => letters,
            b',' | b';' => digits,
            _ => false,
        }
    };
    let mut at = 0;
    while at < bytes.len() {
        if !in_word(at) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && (in_word(at) || joins(at)) {
            at += 1;
        }
        if bytes[start..at].iter().any(u8::is_ascii_alphanumeric) {
            push(start, &text[start..at])?;
        }
    }
    Ok(())
}

/// A word with its offset; one of more than `most` characters is cut into several.
pub(super) fn parts(word: &str, most: usize) -> Vec<(usize, &str)> {
    if word.len() <= most {
        return vec![(0, word)];
    }
    let mut starts: Vec<usize> = word.char_indices().step_by(most).map(|(at, _)| at).collect();
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
    // In scripts without word boundaries, marks count as letters.
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
    use super::super::tokenizers::TOKEN_CHARACTERS_MAX;
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        words(text, TOKEN_CHARACTERS_MAX, &OperationContext::unlimited())
            .expect("without limits")
            .into_iter()
            .map(|token| token.text)
            .collect()
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
    fn the_short_way_cuts_as_unicode_does() {
        let letters = b"ab1 2._':,;-\n";
        // All texts of five of these characters.
        for number in 0..letters.len().pow(5) {
            let digits = (0..5).map(|place| letters[number / letters.len().pow(place) % letters.len()] as char);
            let text: String = digits.collect();
            let expected: Vec<&str> = text.split_word_bounds().filter(|piece| is_word(piece)).collect();
            assert_eq!(cut(&text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_word_is_cut() {
        let lengths: Vec<usize> = cut(&"a".repeat(600)).iter().map(String::len).collect();
        assert_eq!(lengths, [255, 255, 90]);
    }
}
