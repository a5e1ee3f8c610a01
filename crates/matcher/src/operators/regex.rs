//! `$regex` with `$options`, and regex literals: PCRE2 on strings.

use super::FieldOperator;
use crate::expression::Expression;
use crate::parse::Operand;
use crate::path::Path;
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_pattern::{Pattern, Stopped};

pub(crate) const REGEX: FieldOperator =
    FieldOperator { name: "$regex", strings: StringUse::AsBytes, parse: |_, operand| parse(operand) };

/// `$regex` reads the options; this only checks that there is a `$regex`.
pub(crate) const OPTIONS: FieldOperator = FieldOperator {
    name: "$options",
    strings: StringUse::AsBytes,
    parse: |_, operand| match operand.siblings.get("$regex") {
        Some(_) => Ok(Expression::And(Vec::new())),
        None => Err(Failure::bad_value("$options needs a $regex")),
    },
};

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
    while let Some((character, after)) = literal_character(rest) {
        // A quantifier that allows zero removes its character from the prefix; a quantifier that allows several ends
        // the prefix.
        match after.as_bytes().first() {
            Some(b'*' | b'?' | b'{') => break,
            Some(b'+') => {
                literal.push(character);
                rest = after;
                break;
            }
            _ => literal.push(character),
        }
        rest = after;
    }
    (!literal.is_empty()).then_some(RegexPrefix { literal, exact: matches!(rest, "" | ".*") })
}

/// The first character of a pattern, if it stands for itself, and the rest of the pattern.
fn literal_character(pattern: &str) -> Option<(char, &str)> {
    let mut characters = pattern.chars();
    match characters.next()? {
        '\\' => match characters.next()? {
            escaped if escaped.is_ascii_punctuation() => Some((escaped, characters.as_str())),
            _ => None,
        },
        '^' | '$' | '.' | '[' | '(' | ')' | '*' | '+' | '?' | '{' => None,
        character => Some((character, characters.as_str())),
    }
}

/// A condition that a string at the path matches.
pub(crate) fn expression(path: &Path, pattern: &str, options: &str) -> Result<Expression> {
    Ok(Expression::Regex { path: path.clone(), regex: Regex::new(pattern, options)? })
}

/// Whether a non-empty `$options` comes before `$regex`.
fn options_come_first(operand: &Operand<'_>) -> bool {
    let first = operand.siblings.iter().find(|field| matches!(field.name, "$regex" | "$options"));
    first.is_some_and(|field| field.name == OPTIONS.name)
}

fn parse(operand: &Operand<'_>) -> Result<Expression> {
    let given = match operand.siblings.get("$options") {
        None => None,
        Some(ValueRef::String(options)) => Some(options),
        Some(_) => return Err(Failure::bad_value("$options has to be a string")),
    };
    let (pattern, options) = match operand.value {
        ValueRef::String(pattern) => (pattern, given.unwrap_or("")),
        ValueRef::Regex { pattern, options: "" } => (pattern, given.unwrap_or("")),
        ValueRef::Regex { pattern, options } => match given {
            None => (pattern, options),
            Some(_) if !options_come_first(operand) => {
                return Err(Failure::new(ErrorCode(51075), "options set in both $regex and $options"));
            }
            Some("") => (pattern, options),
            Some(_) => return Err(Failure::new(ErrorCode(51074), "options set in both $options and $regex")),
        },
        _ => return Err(Failure::bad_value("$regex has to be a string")),
    };
    for (text, what) in [(pattern, "Regular expression"), (options, "Regular expression options string")] {
        if text.contains('\0') {
            return Err(Failure::bad_value(format!("{what} cannot contain an embedded null byte")));
        }
    }
    expression(operand.path, pattern, options)
}
