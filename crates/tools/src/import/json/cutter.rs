//! Finds the ends of documents in JSON without reading their values.

use super::strings;
use crate::import::cutter::{Cut, Cutter};
use crate::import::options::JsonForm;

/// State between two blocks of the input.
#[derive(Debug)]
pub(in crate::import) struct JsonCutter {
    form: JsonForm,
    /// Open braces and brackets, without the bracket of the input's array.
    depth: usize,
    is_in_string: bool,
    /// Whether the last byte was a backslash inside a string.
    is_escaped: bool,
    /// Whether the input's array is closed.
    is_closed: bool,
    /// Whether a string holds a control character, such as a line end: most likely it is not closed.
    is_broken: bool,
}

impl JsonCutter {
    pub(in crate::import) fn new(form: JsonForm) -> Self {
        Self { form, depth: 0, is_in_string: false, is_escaped: false, is_closed: false, is_broken: false }
    }

    /// Passes the contents of a string from `at` on; returns the offset after its closing quote, the end, or the offset
    /// of a control character.
    fn string(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while at < bytes.len() {
            if std::mem::take(&mut self.is_escaped) {
                at += 1;
                continue;
            }
            at += strings::plain_length(&bytes[at..]);
            match bytes.get(at) {
                Some(b'"') => {
                    self.is_in_string = false;
                    return at + 1;
                }
                Some(b'\\') => self.is_escaped = true,
                Some(_) => {
                    self.is_broken = true;
                    return at;
                }
                None => return at,
            }
            at += 1;
        }
        bytes.len()
    }

    /// Whether the byte may follow a document: white space, a comma, the next `{`, or the array's `]`, which sets
    /// `is_closed`.
    fn fits_between(&mut self, byte: u8) -> bool {
        match (byte, self.form) {
            (b' ' | b'\t' | b'\n' | b'\r', _) => true,
            (b'{' | b',', JsonForm::Array) => !self.is_closed,
            (b']', JsonForm::Array) => !std::mem::replace(&mut self.is_closed, true),
            (b'{', JsonForm::Lines) => true,
            _ => false,
        }
    }
}

impl Cutter for JsonCutter {
    fn advance(&mut self, fresh: &[u8]) -> Cut {
        let (mut at, mut last_end) = (0, None);
        if self.is_in_string {
            at = self.string(fresh, 0);
        }
        while let Some(&byte) = fresh.get(at) {
            if self.is_broken || (self.depth == 0 && !self.fits_between(byte)) {
                return Cut::Broken(at);
            }
            at += 1;
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        last_end = Some(at);
                    }
                }
                b'"' => {
                    self.is_in_string = true;
                    at = self.string(fresh, at);
                }
                _ => {}
            }
        }
        last_end.map_or(Cut::None, Cut::At)
    }
}

/// Length of the document at the front of `bytes`; `None` if it is not closed.
pub(super) fn document_length(bytes: &[u8]) -> Option<usize> {
    let mut cutter = JsonCutter::new(JsonForm::Lines);
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        match bytes.get(at)? {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                cutter.is_in_string = true;
                at = cutter.string(bytes, at + 1);
                if cutter.is_in_string {
                    return None;
                }
                continue;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}
