//! What is done to the characters of a text before it is cut.

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// A change of characters.
#[derive(Clone, Debug)]
pub(super) enum CharFilter {
    /// Tags of HTML become line breaks, and entities their characters; but these tags stay.
    HtmlStrip(Vec<String>),
    /// Unicode's normal form KC, in small letters.
    IcuNormalize,
    /// Parts become others; the longest first.
    Mapping(Vec<(String, String)>),
    /// The Persian joiner becomes a space.
    Persian,
}

/// A text with its characters changed, which knows where they stood before.
pub(super) struct Changed {
    pub text: String,
    /// For each byte of the text, and its end: where it stood; none where nothing was changed.
    origins: Option<Vec<usize>>,
}

impl Changed {
    /// Where a place of the text was before.
    pub fn before(&self, at: usize) -> usize {
        self.origins.as_ref().map_or(at, |origins| origins[at])
    }
}

/// A text in the making.
#[derive(Default)]
struct Making {
    text: String,
    origins: Vec<usize>,
}

impl Making {
    fn push(&mut self, piece: &str, origin: usize) {
        self.text.push_str(piece);
        self.origins.resize(self.text.len(), origin);
    }
}

pub(super) fn changed(text: &str, filters: &[CharFilter]) -> Changed {
    let mut changed = Changed { text: text.to_owned(), origins: None };
    for filter in filters {
        let mut making = Making::default();
        filter.apply(&changed.text, &mut making);
        making.origins.push(changed.text.len());
        let origins = making.origins.into_iter().map(|at| changed.before(at)).collect();
        changed = Changed { text: making.text, origins: Some(origins) };
    }
    changed
}

impl CharFilter {
    fn apply(&self, text: &str, making: &mut Making) {
        match self {
            Self::HtmlStrip(kept) => strip(text, kept, making),
            Self::IcuNormalize => {
                for (at, letter) in text.char_indices() {
                    let parts: String = DecomposingNormalizerBorrowed::new_nfkd()
                        .normalize(letter.encode_utf8(&mut [0; 4]))
                        .into_owned();
                    let whole = ComposingNormalizerBorrowed::new_nfkc().normalize(&parts).to_lowercase();
                    making.push(&whole, at);
                }
            }
            Self::Mapping(pairs) => {
                let mut at = 0;
                while at < text.len() {
                    let found = pairs.iter().filter(|(from, _)| text[at..].starts_with(from.as_str()));
                    if let Some((from, to)) = found.max_by_key(|(from, _)| from.len()) {
                        making.push(to, at);
                        at += from.len();
                    } else {
                        at += copy_letter(text, at, making);
                    }
                }
            }
            Self::Persian => {
                for (at, letter) in text.char_indices() {
                    let letter = if letter == '\u{200c}' { ' ' } else { letter };
                    making.push(letter.encode_utf8(&mut [0; 4]), at);
                }
            }
        }
    }
}

fn copy_letter(text: &str, at: usize, making: &mut Making) -> usize {
    let length = text[at..].chars().next().map_or(1, char::len_utf8);
    making.push(&text[at..at + length], at);
    length
}

/// Entities by their names.
const ENTITIES: &[(&str, &str)] =
    &[("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&nbsp;", " ")];

fn strip(text: &str, kept: &[String], making: &mut Making) {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(length) = tag(rest, kept) {
            making.push("\n", at);
            at += length;
        } else if let Some((name, letter)) = ENTITIES.iter().find(|(name, _)| rest.starts_with(name)) {
            making.push(letter, at);
            at += name.len();
        } else {
            at += copy_letter(text, at, making);
        }
    }
}

/// How long the tag is that a text begins with; `None` where it does not, or that tag is kept.
fn tag(text: &str, kept: &[String]) -> Option<usize> {
    let inside = text.strip_prefix('<')?;
    if let Some(comment) = inside.strip_prefix("!--") {
        return Some(comment.find("-->").map_or(text.len(), |end| end + 7));
    }
    let name = inside.strip_prefix('/').unwrap_or(inside);
    if !name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '!') {
        return None;
    }
    let length = name.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(name.len());
    if kept.iter().any(|kept| kept.eq_ignore_ascii_case(&name[..length])) {
        return None;
    }
    text.find('>').map(|end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_and_places_stay() {
        let text = "<p>a &amp; <b>b</b></p>";
        let stripped = changed(text, &[CharFilter::HtmlStrip(vec!["b".to_owned()])]);
        assert_eq!(stripped.text, "\na & <b>b</b>\n");
        assert_eq!(&text[stripped.before(1)..stripped.before(2)], "a");
        let mapped =
            changed("aab", &[CharFilter::Mapping(vec![("a".into(), "x".into()), ("aa".into(), "yyy".into())])]);
        assert_eq!((mapped.text.as_str(), mapped.before(3)), ("yyyb", 2));
    }
}
