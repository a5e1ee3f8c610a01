//! Reads shell syntax by recursive descent.

use super::{MAX_DEPTH, constructor, literal};
use bunko_bson::{ArrayBuf, DocumentBuf, Value};

/// A text and how far it has been read.
pub(super) struct Parser<'t> {
    text: &'t str,
    offset: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, offset: 0, depth: 0 }
    }

    /// Reads one value; nothing may follow it.
    pub(super) fn whole(&mut self) -> Result<Value, String> {
        let value = self.value()?;
        self.skip_space();
        if self.rest().is_empty() { Ok(value) } else { Err(self.expected("the end")) }
    }

    pub(super) fn value(&mut self) -> Result<Value, String> {
        self.skip_space();
        match self.peek() {
            Some('{') => self.nested(Self::document),
            Some('[') => self.nested(Self::array),
            Some('"' | '\'') => Ok(Value::String(self.string()?)),
            Some('/') => self.regex(),
            Some('0'..='9' | '-' | '+' | '.') => self.number(),
            Some(first) if literal::begins_identifier(first) => self.word(),
            _ => Err(self.expected("a value")),
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.expected(&format!("at most {MAX_DEPTH} levels")));
        }
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn document(&mut self) -> Result<Value, String> {
        let mut document = DocumentBuf::new();
        self.list('{', '}', |parser| {
            let name = parser.name()?;
            parser.expect(':')?;
            document.append(&name, &parser.value()?);
            Ok(())
        })?;
        Ok(Value::Document(document))
    }

    fn array(&mut self) -> Result<Value, String> {
        let mut array = ArrayBuf::new();
        self.list('[', ']', |parser| {
            array.push(&parser.value()?);
            Ok(())
        })?;
        Ok(Value::Array(array))
    }

    /// Reads the arguments of a constructor; empty where there are no parentheses.
    fn arguments(&mut self) -> Result<Vec<Value>, String> {
        let mut arguments = Vec::new();
        self.skip_space();
        if self.peek() == Some('(') {
            self.list('(', ')', |parser| {
                arguments.push(parser.value()?);
                Ok(())
            })?;
        }
        Ok(arguments)
    }

    /// Reads items between two brackets, separated by commas. A comma may follow the last one.
    fn list(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        self.expect(open)?;
        while !self.take(close) {
            item(self)?;
            if !self.take(',') {
                return self.expect(close);
            }
        }
        Ok(())
    }

    fn name(&mut self) -> Result<String, String> {
        self.skip_space();
        let name = match self.peek() {
            Some('"' | '\'') => self.string()?,
            Some(first) if literal::continues_identifier(first) => {
                self.take_while(literal::continues_identifier).to_owned()
            }
            _ => return Err(self.expected("a field name")),
        };
        if name.contains('\0') { Err(self.expected("no zero byte in a field name")) } else { Ok(name) }
    }

    fn string(&mut self) -> Result<String, String> {
        let Some(quote) = self.next() else { return Err(self.expected("a string")) };
        let mut text = String::new();
        loop {
            match self.next() {
                None => return Err(self.expected("a closing quote")),
                Some('\\') => text.push(self.escape()?),
                Some(character) if character == quote => return Ok(text),
                Some(character) => text.push(character),
            }
        }
    }

    /// Reads an escape after its backslash; returns the character that it stands for.
    fn escape(&mut self) -> Result<char, String> {
        Ok(match self.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('v') => '\u{b}',
            Some('0') => '\0',
            Some('x') => self.code_point(2).and_then(char::from_u32).ok_or_else(|| self.expected("two digits"))?,
            Some('u') => self.utf16_escape().ok_or_else(|| self.expected("four digits of a character"))?,
            Some(other) => other,
            None => return Err(self.expected("a character")),
        })
    }

    /// Reads hexadecimal digits as a number.
    fn code_point(&mut self, digits: usize) -> Option<u32> {
        let text = self.rest().get(..digits)?;
        let number = u32::from_str_radix(text, 16).ok()?;
        self.offset += digits;
        Some(number)
    }

    /// Reads the four digits after `\u`, and a second `\uXXXX` where the first is half of a surrogate pair.
    fn utf16_escape(&mut self) -> Option<char> {
        let first = self.code_point(4)?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.offset += self.rest().starts_with("\\u").then_some(2)?;
        let second = self.code_point(4)?;
        char::decode_utf16([first as u16, second as u16]).next()?.ok()
    }

    fn regex(&mut self) -> Result<Value, String> {
        self.next();
        let Some(length) = literal::regex_length(self.rest()) else { return Err(self.expected("a closing slash")) };
        let pattern = self.rest()[..length].to_owned();
        self.offset += length + 1;
        let options = self.take_while(|character| character.is_ascii_lowercase()).to_owned();
        Ok(Value::Regex { pattern, options })
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.offset;
        let digits =
            self.take_while(|character| matches!(character, '0'..='9' | 'a'..='z' | 'A'..='Z' | '.' | '-' | '+'));
        let value = match digits {
            "-Infinity" => Some(Value::Double(f64::NEG_INFINITY)),
            "+Infinity" => Some(Value::Double(f64::INFINITY)),
            _ if digits.contains(['.', 'e', 'E']) => digits.parse().ok().map(Value::Double),
            _ => digits.parse().map(Value::Int32).or_else(|_| digits.parse().map(Value::Int64)).ok(),
        };
        value.ok_or_else(|| {
            self.offset = start;
            self.expected("a number")
        })
    }

    /// Reads a constant or a constructor.
    fn word(&mut self) -> Result<Value, String> {
        let start = self.offset;
        let mut name = self.take_while(literal::continues_identifier);
        if name == "new" {
            self.skip_space();
            name = self.take_while(literal::continues_identifier);
        }
        match name {
            "true" => Ok(Value::Boolean(true)),
            "false" => Ok(Value::Boolean(false)),
            "null" => Ok(Value::Null),
            "undefined" => Ok(Value::Undefined),
            "NaN" => Ok(Value::Double(f64::NAN)),
            "Infinity" => Ok(Value::Double(f64::INFINITY)),
            _ => {
                let arguments = self.nested(Self::arguments)?;
                constructor::construct(name, &arguments).map_err(|reason| {
                    self.offset = start;
                    self.at(&reason)
                })
            }
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.offset..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.offset += character.len_utf8();
        Some(character)
    }

    fn skip_space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|character| !wanted(character)).unwrap_or(rest.len());
        self.offset += length;
        &rest[..length]
    }

    fn take(&mut self, character: char) -> bool {
        self.skip_space();
        let found = self.peek() == Some(character);
        if found {
            self.offset += character.len_utf8();
        }
        found
    }

    fn expect(&mut self, character: char) -> Result<(), String> {
        if self.take(character) { Ok(()) } else { Err(self.expected(&format!("'{character}'"))) }
    }

    fn expected(&self, what: &str) -> String {
        let found: String = self.rest().chars().take(20).collect();
        self.at(&format!("expected {what}, found {found:?}"))
    }

    fn at(&self, message: &str) -> String {
        let read = &self.text[..self.offset];
        let line = read.matches('\n').count() + 1;
        let column = read.chars().rev().take_while(|&character| character != '\n').count() + 1;
        format!("{line}:{column}: {message}")
    }
}
