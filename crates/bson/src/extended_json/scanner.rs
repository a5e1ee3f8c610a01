//! Reads the tokens of JSON: strings, numbers, punctuation.

use super::ExtendedJsonError;
use crate::Value;

/// A text and the position up to which it has been read.
pub(super) struct Scanner<'t> {
    text: &'t str,
    offset: usize,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, offset: 0 }
    }

    fn rest(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.offset..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.offset += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    /// Skips white space, and returns the byte after it without reading that byte.
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.rest().first().copied()
    }

    /// Reads `byte` if it comes next, after any white space.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.offset += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<(), ExtendedJsonError> {
        if self.take(byte) { Ok(()) } else { Err(self.expected(&format!("'{}'", char::from(byte)))) }
    }

    /// Checks that nothing but white space is left.
    pub(super) fn expect_end(&mut self) -> Result<(), ExtendedJsonError> {
        if self.peek().is_none() { Ok(()) } else { Err(self.expected("the end")) }
    }

    /// Reads `true`, `false` or `null`.
    pub(super) fn word(&mut self) -> Result<Value, ExtendedJsonError> {
        for (word, value) in [("true", Value::Boolean(true)), ("false", Value::Boolean(false)), ("null", Value::Null)] {
            if self.rest().starts_with(word.as_bytes()) {
                self.offset += word.len();
                return Ok(value);
            }
        }
        Err(self.expected("a value"))
    }

    /// Reads a number: an integer of 32 or 64 bits if the number is one that fits, else a double.
    /// Source: Extended JSON specification, "Parsers": numbers of relaxed text.
    pub(super) fn number(&mut self) -> Result<Value, ExtendedJsonError> {
        let rest = self.rest();
        let length =
            rest.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')).count();
        let digits = &self.text[self.offset..self.offset + length];
        if !is_number(digits.as_bytes()) {
            return Err(self.expected("a number"));
        }
        let integer = digits.parse().map(Value::Int32).or_else(|_| digits.parse().map(Value::Int64));
        let value = integer.or_else(|_| digits.parse().map(Value::Double)).map_err(|_| self.expected("a number"))?;
        self.offset += length;
        Ok(value)
    }

    /// Reads a field's name: a string without zero bytes, which BSON's names cannot hold.
    pub(super) fn name(&mut self) -> Result<String, ExtendedJsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a field name"));
        }
        let start = self.offset;
        let name = self.string()?;
        if name.contains('\0') {
            self.offset = start;
            return Err(self.expected("a field name without zero bytes"));
        }
        Ok(name)
    }

    /// Reads a string whose opening quote comes next.
    pub(super) fn string(&mut self) -> Result<String, ExtendedJsonError> {
        self.offset += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count();
            text.push_str(&self.text[self.offset..self.offset + plain]);
            self.offset += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.expected("an escape for a control character")),
                None => return Err(self.expected("a closing quote")),
            }
        }
    }

    /// Reads an escape sequence, which begins with a backslash.
    fn escape(&mut self) -> Result<char, ExtendedJsonError> {
        let character = match self.rest().get(1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.expected("an escape sequence")),
        };
        self.offset += 2;
        Ok(character)
    }

    /// Reads `\uXXXX`, and the second half of a surrogate pair if this is a high surrogate. A half alone is an error.
    fn unicode_escape(&mut self) -> Result<char, ExtendedJsonError> {
        let units = match (self.code_unit(0), self.code_unit(6)) {
            (Some(high @ 0xd800..0xdc00), Some(low)) => vec![high, low],
            (Some(unit), _) => vec![unit],
            (None, _) => return Err(self.expected("four hexadecimal digits")),
        };
        let length = units.len() * 6;
        match char::decode_utf16(units).next() {
            Some(Ok(character)) => {
                self.offset += length;
                Ok(character)
            }
            _ => Err(self.expected("a whole surrogate pair")),
        }
    }

    /// The number after `\u` at a distance in bytes from the current position.
    fn code_unit(&self, distance: usize) -> Option<u16> {
        let digits = self.rest().get(distance..distance + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |unit: u16, &digit| Some(unit << 4 | char::from(digit).to_digit(16)? as u16))
    }

    /// Offset of the next token, for [`Self::error_at`].
    pub(super) fn position(&mut self) -> usize {
        self.skip_space();
        self.offset
    }

    /// The error that something other than `what` comes next.
    pub(super) fn expected(&self, what: &str) -> ExtendedJsonError {
        let found: String = self.text[self.offset..].chars().take(20).collect();
        let found = if found.is_empty() { "the end".to_owned() } else { format!("{found:?}") };
        self.error_at(self.offset, format!("expected {what}, found {found}"))
    }

    /// An error about the whole text.
    pub(super) fn error_at_start(&self, reason: String) -> ExtendedJsonError {
        self.error_at(0, reason)
    }

    pub(super) fn error_at(&self, offset: usize, reason: String) -> ExtendedJsonError {
        let read = &self.text[..offset];
        let line = read.matches('\n').count() + 1;
        let column = read.chars().rev().take_while(|&character| character != '\n').count() + 1;
        ExtendedJsonError { line, column, reason }
    }
}

/// Whether a text is a number in JSON's grammar, which is narrower than Rust's.
/// Source: RFC 8259, section 6.
pub(super) fn is_number(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let Some((integer, rest)) = split_digits(rest) else { return false };
    if integer.len() > 1 && integer[0] == b'0' {
        return false;
    }
    let rest = match rest.strip_prefix(b".") {
        None => rest,
        Some(fraction) => match split_digits(fraction) {
            Some((_, rest)) => rest,
            None => return false,
        },
    };
    match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] => {
            matches!(split_digits(exponent), Some((_, [])))
        }
        _ => false,
    }
}

/// Splits a text after its first digits, of which there must be at least one.
fn split_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| text.split_at(count))
}
