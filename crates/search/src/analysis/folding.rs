//! Lower case, and letters without accents.

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;

/// Converts a text to lower case; each character becomes exactly one.
pub(crate) fn lower(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().map(lower_letter).collect()
}

fn lower_letter(letter: char) -> char {
    let mut small = letter.to_lowercase();
    match (small.next(), small.next()) {
        (Some(one), None) => one,
        // The only such letter is 'İ', whose lower case is an 'i' with a separate dot.
        (Some(one), Some(_)) => one,
        (None, _) => letter,
    }
}

/// Removes the accents of a text, and replaces related letters, such as ß, by plain Latin ones.
pub(crate) fn plain(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let categories = CodePointMapData::<GeneralCategory>::new();
    let mut folded = String::with_capacity(text.len());
    let parts = DecomposingNormalizerBorrowed::new_nfkd();
    for letter in parts.normalize_iter(text.chars()) {
        if categories.get(letter) == GeneralCategory::NonspacingMark {
            continue;
        }
        match latin(letter) {
            Some(letters) => folded.push_str(letters),
            None => folded.push(letter),
        }
    }
    folded
}

/// The plain Latin letters for a letter that Unicode does not decompose.
fn latin(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ß' => "ss",
        'ẞ' => "SS",
        'æ' => "ae",
        'Æ' => "AE",
        'œ' => "oe",
        'Œ' => "OE",
        'ø' => "o",
        'Ø' => "O",
        'ł' => "l",
        'Ł' => "L",
        'đ' | 'ð' => "d",
        'Đ' | 'Ð' => "D",
        'þ' => "th",
        'Þ' => "TH",
        'ı' => "i",
        'ħ' => "h",
        'Ħ' => "H",
        '‘' | '’' => "'",
        '“' | '”' => "\"",
        '‐' | '‑' | '–' | '—' => "-",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_marks_go() {
        assert_eq!(lower("ÀΣ\u{10400}I"), "àσ\u{10428}i");
        assert_eq!(plain("Crème brûlée, straße, \u{fb01}le, Øre"), "Creme brulee, strasse, file, Ore");
    }
}
