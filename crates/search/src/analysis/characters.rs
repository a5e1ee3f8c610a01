//! Character filters, applied to a text before the tokenizer.

use super::count_made;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// A character filter.
#[derive(Clone, Debug)]
pub(super) enum CharFilter {
    /// Replaces HTML tags by line breaks, and entities by their characters. These tags stay.
    HtmlStrip(Vec<String>),
    /// Unicode normalization form KC, in lower case.
    IcuNormalize,
    /// Replaces substrings, the longest first.
    Mapping(Vec<(String, String)>),
    /// Replaces the zero-width non-joiner of Persian by a space.
    Persian,
}

/// A filtered text, with the original offset of each byte.
pub(super) struct Changed {
    pub text: String,
    /// The original offset of each byte and of the end; `None` if nothing was changed.
    origins: Option<Vec<usize>>,
}

impl Changed {
    /// The offset in the original text of the byte at `at`.
    pub fn before(&self, at: usize) -> usize {
        self.origins.as_ref().map_or(at, |origins| origins[at])
    }
}

/// The filtered text while it is made.
struct Making<'o> {
    text: String,
    origins: Vec<usize>,
    operation: &'o OperationContext,
}

impl Making<'_> {
    fn push(&mut self, piece: &str, origin: usize) -> Result<()> {
        count_made(piece, self.operation)?;
        self.text.push_str(piece);
        self.origins.resize(self.text.len(), origin);
        Ok(())
    }
}

/// # Errors
/// Errors of counting work.
pub(super) fn changed(text: &str, filters: &[CharFilter], operation: &OperationContext) -> Result<Changed> {
    let mut changed = Changed { text: text.to_owned(), origins: None };
    for filter in filters {
        let mut making = Making { text: String::new(), origins: Vec::new(), operation };
        filter.apply(&changed.text, &mut making)?;
        making.origins.push(changed.text.len());
        let origins = making.origins.into_iter().map(|at| changed.before(at)).collect();
        changed = Changed { text: making.text, origins: Some(origins) };
    }
    Ok(changed)
}

impl CharFilter {
    fn apply(&self, text: &str, making: &mut Making<'_>) -> Result<()> {
        match self {
            Self::HtmlStrip(kept) => return strip(text, kept, making),
            Self::IcuNormalize => {
                for (at, letter) in text.char_indices() {
                    let parts: String = DecomposingNormalizerBorrowed::new_nfkd()
                        .normalize(letter.encode_utf8(&mut [0; 4]))
                        .into_owned();
                    let whole = ComposingNormalizerBorrowed::new_nfkc().normalize(&parts).to_lowercase();
                    making.push(&whole, at)?;
                }
            }
            Self::Mapping(pairs) => {
                let mut at = 0;
                while at < text.len() {
                    making.operation.work(pairs.len() / 8)?;
                    let found = pairs.iter().filter(|(from, _)| text[at..].starts_with(from.as_str()));
                    if let Some((from, to)) = found.max_by_key(|(from, _)| from.len()) {
                        making.push(to, at)?;
                        at += from.len();
                    } else {
                        at += copy_letter(text, at, making)?;
                    }
                }
            }
            Self::Persian => {
                for (at, letter) in text.char_indices() {
                    let letter = if letter == '\u{200c}' { ' ' } else { letter };
                    making.push(letter.encode_utf8(&mut [0; 4]), at)?;
                }
            }
        }
        Ok(())
    }
}

fn copy_letter(text: &str, at: usize, making: &mut Making<'_>) -> Result<usize> {
    let length = text[at..].chars().next().map_or(1, char::len_utf8);
    making.push(&text[at..at + length], at)?;
    Ok(length)
}

/// Entities by name.
const ENTITIES: &[(&str, &str)] =
    &[("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&nbsp;", " ")];

fn strip(text: &str, kept: &[String], making: &mut Making<'_>) -> Result<()> {
    let mut at = 0;
    // No tag ends after the last `>`. Without this check, each later `<` would search the rest of the text again.
    let last_end = text.rfind('>').unwrap_or(0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with('<') {
            making.operation.work(kept.len() / 8)?;
        }
        let tag = if at <= last_end || rest.starts_with("<!--") { tag(rest, kept) } else { None };
        if let Some(length) = tag {
            making.push("\n", at)?;
            at += length;
        } else if let Some((name, letter)) = ENTITIES.iter().find(|(name, _)| rest.starts_with(name)) {
            making.push(letter, at)?;
            at += name.len();
        } else {
            at += copy_letter(text, at, making)?;
        }
    }
    Ok(())
}

/// The length of the tag at the front of a text; `None` if there is none, or it must stay.
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

    fn changed_by(text: &str, filter: CharFilter) -> Changed {
        changed(text, &[filter], &OperationContext::unlimited()).expect("without limits")
    }

    #[test]
    fn tags_go_and_places_stay() {
        let text = "<p>a &amp; <b>b</b></p>";
        let stripped = changed_by(text, CharFilter::HtmlStrip(vec!["b".to_owned()]));
        assert_eq!(stripped.text, "\na & <b>b</b>\n");
        assert_eq!(&text[stripped.before(1)..stripped.before(2)], "a");
        let mapped =
            changed_by("aab", CharFilter::Mapping(vec![("a".into(), "x".into()), ("aa".into(), "yyy".into())]));
        assert_eq!((mapped.text.as_str(), mapped.before(3)), ("yyyb", 2));
    }
}
