//! Regular expressions: PCRE2 on strings.

use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_pattern::{Pattern, Stopped};

/// Maximum length of a pattern in bytes. Source: MongoDB limits.
const MAX_PATTERN_BYTES: usize = 16 * 1024;

/// A compiled regular expression and its source.
#[derive(Clone, Debug)]
pub struct Regex {
    pattern: String,
    options: String,
    compiled: Pattern,
}

/// The literal prefix of a pattern's matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexPrefix {
    /// All matching strings start with this; never empty.
    pub literal: String,
    /// Whether all strings with this prefix match: then a key range answers the query without the regex.
    pub exact: bool,
}

impl Regex {
    /// Compiles a pattern.
    /// # Errors
    /// 51091 for a pattern that is too long or invalid, 51108 for an option other than `i`, `m`, `s`, `x`, `u`.
    pub fn new(pattern: &str, options: &str) -> Result<Self> {
        if let Some(unknown) = options.chars().find(|option| !"imsxu".contains(*option)) {
            return Err(Failure::new(ErrorCode(51108), format!("invalid flag in regex options: {unknown}")));
        }
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(Failure::new(ErrorCode(51091), "Regular expression is invalid: pattern is too large"));
        }
        // UTF-8 mode is always on, so `u` has no effect.
        let compiled = Pattern::compile(pattern, options)
            .map_err(|reason| Failure::new(ErrorCode(51091), format!("Regular expression is invalid: {reason}")))?;
        Ok(Self { pattern: pattern.to_owned(), options: options.to_owned(), compiled })
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The options as written.
    pub fn options(&self) -> &str {
        &self.options
    }

    /// Whether the pattern matches somewhere in `text`. A match that exceeds PCRE2's limits does not count.
    /// # Errors
    /// Errors of `goes_on`, which is called regularly with the number of steps taken.
    pub fn is_match(&self, text: &str, goes_on: impl FnMut(usize) -> Result<()>) -> Result<bool> {
        match self.compiled.is_match(text, goes_on) {
            Ok(matched) => Ok(matched),
            Err(Stopped::Exceeded(_)) => Ok(false),
            Err(Stopped::Told(failure)) => Err(failure),
        }
    }

    /// Whether the value is an equal regex.
    pub(crate) fn is_same(&self, value: Option<ValueRef<'_>>) -> bool {
        matches!(value, Some(ValueRef::Regex { pattern, options }) if pattern == self.pattern && options == self.options)
    }

    /// The literal that matching strings start with, for patterns such as `^abc` and `\Aabc`. `None` with the options
    /// `i`, `m` and `x`, which change the meaning of the start.
    pub fn prefix(&self) -> Option<RegexPrefix> {
        if self.options.contains(['i', 'm', 'x']) {
            return None;
        }
        let rest = self.pattern.strip_prefix('^').or_else(|| self.pattern.strip_prefix("\\A"))?;
        // Another alternative could start differently. A quoted bar is rare, so it counts as one here.
        if rest.contains('|') {
            return None;
        }
        literal_prefix(rest)
    }
}

fn literal_prefix(pattern: &str) -> Option<RegexPrefix> {
    let mut literal = String::new();
    let mut rest = pattern;
    while let Some((text, after)) = literal_text(rest) {
        // A quantifier that allows zero removes its character from the prefix; a quantifier that allows several ends
        // the prefix.
        if may_be_left_out(after) {
            break;
        }
        literal.push_str(text);
        rest = after;
        if after.starts_with('+') {
            break;
        }
    }
    (!literal.is_empty()).then_some(RegexPrefix { literal, exact: matches!(rest, "" | ".*") })
}

/// Whether a quantifier that allows zero may stand before the rest of a pattern. It applies to the character before
/// comments and empty quotations too.
fn may_be_left_out(rest: &str) -> bool {
    rest.starts_with(['*', '?', '{']) || ["(?#", "\\E", "\\Q\\E"].into_iter().any(|start| rest.starts_with(start))
}

/// The start of a pattern, if it stands for itself, and the rest of the pattern: one character, or a quotation.
fn literal_text(pattern: &str) -> Option<(&str, &str)> {
    if let Some(quotation) = pattern.strip_prefix("\\Q") {
        // Without an end, all of the pattern is quoted.
        let (quoted, after) = quotation.split_once("\\E").unwrap_or((quotation, ""));
        return (!quoted.is_empty()).then_some((quoted, after));
    }
    let text = pattern.strip_prefix('\\').unwrap_or(pattern);
    let character = text.chars().next()?;
    let stands_for_itself = if text.len() < pattern.len() {
        character.is_ascii_punctuation()
    } else {
        !matches!(character, '^' | '$' | '.' | '[' | '(' | ')' | '*' | '+' | '?' | '{')
    };
    stands_for_itself.then(|| text.split_at(character.len_utf8()))
}
