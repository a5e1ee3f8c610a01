//! Turns JSON into BSON in one pass, without a tree between them.
//!
//! Documents whose first name begins with `$` may stand for values of other types, and are read by `wrapper`.

use super::{number, strings, wrapper};
use crate::import::flaw::Flaw;
use bunko_bson::{MAX_DEPTH_ACCEPTED, Type};

/// A text, and the offset up to which it has been read.
pub(super) struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Skips white space, and returns the next byte without reading it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Skips white space, and returns the offset of the next byte.
    pub(super) fn position(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// Skips white space, and reads `byte` if it comes next; returns whether it did.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// The error that something else than `wanted` comes next.
    pub(super) fn expected(&self, wanted: &str) -> Flaw {
        Flaw::expected(wanted, self.text, self.at)
    }

    /// Appends one document.
    pub(super) fn document(&mut self, out: &mut Vec<u8>) -> Result<(), Flaw> {
        let start = self.position();
        if self.peek() != Some(b'{') {
            return Err(self.expected("a document, which begins with '{'"));
        }
        match self.braces(out, 0) {
            Ok(Type::Document) => {}
            Ok(other) => {
                return Err(Flaw::new(start, format!("expected a document, found a value of type {}", other.alias())));
            }
            Err(flaw) if flaw.is_at_end => {
                let reason = format!("the input ends in the middle of the document that begins here: {}", flaw.reason);
                return Err(Flaw::at_end(start, reason));
            }
            Err(flaw) => return Err(flaw),
        }
        Ok(())
    }

    /// Appends a value without its name. `depth` is the number of documents and arrays around it.
    fn value(&mut self, out: &mut Vec<u8>, depth: usize) -> Result<Type, Flaw> {
        match self.peek() {
            Some(b'{' | b'[') if depth == MAX_DEPTH_ACCEPTED => {
                Err(Flaw::new(self.at, format!("the document nests more than {MAX_DEPTH_ACCEPTED} levels")))
            }
            Some(b'{') => self.braces(out, depth),
            Some(b'[') => self.array(out, depth + 1),
            Some(b'"') => {
                let start = begin(out);
                self.at = strings::append_contents(self.text, self.at + 1, out)?;
                out.push(0);
                let length = (out.len() - start - 4) as u32;
                out[start..start + 4].copy_from_slice(&length.to_le_bytes());
                Ok(Type::String)
            }
            Some(b'-' | b'0'..=b'9') => {
                let (kind, end) = number::append(self.text, self.at, out)?;
                self.at = end;
                Ok(kind)
            }
            _ => self.word(out),
        }
    }

    fn word(&mut self, out: &mut Vec<u8>) -> Result<Type, Flaw> {
        let rest = &self.text.as_bytes()[self.at..];
        let (kind, length) = match rest {
            [b't', b'r', b'u', b'e', ..] => {
                out.push(1);
                (Type::Boolean, 4)
            }
            [b'f', b'a', b'l', b's', b'e', ..] => {
                out.push(0);
                (Type::Boolean, 5)
            }
            [b'n', b'u', b'l', b'l', ..] => (Type::Null, 4),
            _ => return Err(self.expected("a value")),
        };
        self.at += length;
        Ok(kind)
    }

    /// Appends a document, or the value of another type that it stands for.
    fn braces(&mut self, out: &mut Vec<u8>, depth: usize) -> Result<Type, Flaw> {
        let start = self.at;
        self.at += 1;
        if self.peek() == Some(b'"') && self.text.as_bytes().get(self.at + 1) == Some(&b'$') {
            let (kind, end) = wrapper::append(self.text, start, out)?;
            self.at = end;
            return Ok(kind);
        }
        self.fields(out, depth + 1)?;
        Ok(Type::Document)
    }

    /// Appends the fields after an opening brace.
    fn fields(&mut self, out: &mut Vec<u8>, depth: usize) -> Result<(), Flaw> {
        let start = begin(out);
        if !self.take(b'}') {
            loop {
                let kind_at = out.len();
                out.push(0);
                self.name(out)?;
                if !self.take(b':') {
                    return Err(self.expected("':'"));
                }
                out[kind_at] = self.value(out, depth)? as u8;
                if !self.take(b',') {
                    break;
                }
            }
            if !self.take(b'}') {
                return Err(self.expected("',' or '}'"));
            }
        }
        end(out, start);
        Ok(())
    }

    fn name(&mut self, out: &mut Vec<u8>) -> Result<(), Flaw> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a field name in quotes"));
        }
        let (start, name_at) = (self.at, out.len());
        self.at = strings::append_contents(self.text, self.at + 1, out)?;
        if memchr::memchr(0, &out[name_at..]).is_some() {
            return Err(Flaw::expected("a field name without zero bytes", self.text, start));
        }
        out.push(0);
        Ok(())
    }

    fn array(&mut self, out: &mut Vec<u8>, depth: usize) -> Result<Type, Flaw> {
        self.at += 1;
        let start = begin(out);
        if !self.take(b']') {
            for index in 0_usize.. {
                let kind_at = out.len();
                out.push(0);
                push_index(out, index);
                out[kind_at] = self.value(out, depth)? as u8;
                if !self.take(b',') {
                    break;
                }
            }
            if !self.take(b']') {
                return Err(self.expected("',' or ']'"));
            }
        }
        end(out, start);
        Ok(Type::Array)
    }
}

/// Begins a value with a length in front; returns its place.
fn begin(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len() - 4
}

/// Ends a document or array that was begun at `start`.
fn end(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends an array element's name.
fn push_index(out: &mut Vec<u8>, index: usize) {
    match u8::try_from(index) {
        Ok(digit @ 0..=9) => out.push(b'0' + digit),
        _ => out.extend_from_slice(index.to_string().as_bytes()),
    }
    out.push(0);
}
