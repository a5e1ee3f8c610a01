//! A Rust file taken apart without a parser: its code, its comments and its string literals.

use std::ops::Range;

/// The three parts of one file. `code` has the layout of the file: comments and the inside of literals are blanks in
/// it, so that offsets and line numbers are those of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RustSource {
    pub code: String,
    pub comments: Vec<Piece>,
    pub literals: Vec<Piece>,
}

/// A comment without its slashes, or a string literal without its quotes.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    pub line: usize,
    /// Byte offset in the file.
    pub offset: usize,
    pub text: String,
}

impl RustSource {
    pub fn parse(text: &str) -> Self {
        let code = text.as_bytes().to_vec();
        let mut reader = Reader { text, at: 0, line: 1, counted: 0, code, comments: vec![], literals: vec![] };
        while reader.at < text.len() {
            reader.step();
        }
        let code = String::from_utf8(reader.code).expect("only whole characters are blanked");
        Self { code, comments: reader.comments, literals: reader.literals }
    }

    /// Removes code that only tests compile: items below `#[cfg(test)]`, `#[cfg(all(test, ...))]` and `#[test]`.
    #[must_use]
    pub fn without_tests(mut self) -> Self {
        let tests = test_items(&self.code);
        let mut code = std::mem::take(&mut self.code).into_bytes();
        for item in &tests {
            blank(&mut code[item.clone()]);
        }
        self.code = String::from_utf8(code).expect("only whole characters are blanked");
        let is_kept = |piece: &Piece| !tests.iter().any(|item| item.contains(&piece.offset));
        self.comments.retain(is_kept);
        self.literals.retain(is_kept);
        self
    }
}

/// The offset after the bracket that closes the one at `open`; the end of the code if none does.
pub fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return offset + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// A function with a body.
pub struct Function<'a> {
    pub name: &'a str,
    /// Offset of `fn`.
    pub start: usize,
    /// The body with its braces.
    pub body: Range<usize>,
}

/// The functions of a file whose comments and literals are blank.
pub fn functions(code: &str) -> impl Iterator<Item = Function<'_>> {
    words(code, "fn").filter_map(move |start| {
        let named = code[start + 2..].trim_start();
        let end = named.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(named.len());
        let open = body(code, start).filter(|_| end > 0)?;
        Some(Function { name: &named[..end], start, body: open..closing(code, open) })
    })
}

/// Where the body of the function begins whose signature begins at `start`; none if it has no body.
fn body(code: &str, start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        match code.as_bytes().get(at)? {
            b'{' => return Some(at),
            b';' => return None,
            b'(' | b'[' => at = closing(code, at),
            _ => at += 1,
        }
    }
}

/// The line of an offset, from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    1 + text[..offset].matches('\n').count()
}

pub fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Offsets of `word` in `code` that are not part of a longer word.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(offset, _)| offset).filter(move |&offset| {
        let end = offset + word.len();
        (offset == 0 || !is_word_byte(bytes[offset - 1])) && !bytes.get(end).copied().is_some_and(is_word_byte)
    })
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

/// The items for tests alone, with their attributes.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for marker in ["#[cfg(test)]", "#[cfg(all(test,", "#[test]"] {
        for (start, _) in code.match_indices(marker) {
            found.push(start..end_of_item(code, start));
        }
    }
    found
}

/// Where the item ends whose attributes begin at `start`: after its braces, or after its semicolon.
fn end_of_item(code: &str, start: usize) -> usize {
    let mut at = start;
    while let Some(&byte) = code.as_bytes().get(at) {
        match byte {
            b'{' => return closing(code, at),
            b';' => return at + 1,
            b'(' | b'[' => at = closing(code, at),
            _ => at += 1,
        }
    }
    code.len()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The line of the byte at `counted`.
    line: usize,
    counted: usize,
    code: Vec<u8>,
    comments: Vec<Piece>,
    literals: Vec<Piece>,
}

impl Reader<'_> {
    fn step(&mut self) {
        let rest = &self.text[self.at..];
        let is_in_word = self.at > 0 && is_word_byte(self.text.as_bytes()[self.at - 1]);
        if rest.starts_with("//") {
            self.comment(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.comment(block_comment(rest));
        } else if rest.starts_with('"') {
            self.literal(1, string_end(rest, 1), 1);
        } else if let Some(hashes) = raw_string(rest).filter(|_| !is_in_word) {
            self.raw_literal(hashes);
        } else if rest.starts_with('\'') {
            self.quoted_character();
        } else {
            self.at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }

    /// Counts the lines up to the next byte, and returns the byte's line.
    fn line(&mut self) -> usize {
        self.line += line_of(&self.text[self.counted..], self.at - self.counted) - 1;
        self.counted = self.at;
        self.line
    }

    fn comment(&mut self, length: usize) {
        let end = self.at + length;
        let line = self.line();
        let text = self.text[self.at..end].trim_start_matches(['/', '*', '!']);
        let text = text.strip_suffix("*/").unwrap_or(text).trim().to_owned();
        self.comments.push(Piece { line, offset: self.at, text });
        blank(&mut self.code[self.at..end]);
        self.at = end;
    }

    /// Notes a string and blanks its inside, which begins `open` bytes and ends `end` bytes from here; `close` bytes
    /// close it.
    fn literal(&mut self, open: usize, end: usize, close: usize) {
        let inside = self.at + open..(self.at + end).min(self.text.len());
        let text = self.text[inside.clone()].to_owned();
        let line = self.line();
        self.literals.push(Piece { line, offset: self.at, text });
        blank(&mut self.code[inside.clone()]);
        self.at = (inside.end + close).min(self.text.len());
    }

    fn raw_literal(&mut self, hashes: usize) {
        let rest = &self.text[self.at..];
        let open = rest.find('"').expect("a raw string has a quote") + 1;
        let closing = format!("\"{}", "#".repeat(hashes));
        let end = rest[open..].find(&closing).map_or(rest.len(), |found| open + found);
        self.literal(open, end, closing.len());
    }

    /// `'x'` or `'\n'`; a lifetime is passed over.
    fn quoted_character(&mut self) {
        let rest = &self.text[self.at..];
        let mut characters = rest.char_indices().skip(1);
        let end = match characters.next() {
            Some((_, '\\')) => rest[3.min(rest.len())..].find('\'').map(|found| found + 3),
            Some(_) => characters.next().filter(|(_, next)| *next == '\'').map(|(offset, _)| offset),
            None => None,
        };
        match end {
            Some(end) => {
                blank(&mut self.code[self.at + 1..self.at + end]);
                self.at += end + 1;
            }
            None => self.at += 1,
        }
    }
}

/// Length of a block comment in bytes, with the comments inside it.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let two = rest.as_bytes().get(at..at + 2);
        match two {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") if depth == 1 => return at + 2,
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    rest.len()
}

/// Offset of the quote that ends a string whose inside begins at `start`.
fn string_end(rest: &str, start: usize) -> usize {
    let mut at = start;
    while let Some(byte) = rest.as_bytes().get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The number of hashes of `r"`, `r#"`, `br"` and so on.
fn raw_string(rest: &str) -> Option<usize> {
    let after = ["br", "cr", "r"].iter().find_map(|prefix| rest.strip_prefix(prefix))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

#[cfg(test)]
mod tests {
    use super::{RustSource, words};

    fn texts(pieces: &[super::Piece]) -> Vec<(usize, &str)> {
        pieces.iter().map(|piece| (piece.line, piece.text.as_str())).collect()
    }

    #[test]
    fn comments_and_literals_leave_the_code() {
        let text = "/// A doc.\nfn f<'a>(x: &'a str) -> char { /* in /* two */ */\n  \
                    g(\"a } \\\" b\", r#\"raw \" // no\"#, b\"c\");\n  '{' // last\n}";
        let source = RustSource::parse(text);
        assert_eq!(texts(&source.comments), [(1, "A doc."), (2, "in /* two */"), (4, "last")]);
        assert_eq!(texts(&source.literals), [(3, "a } \\\" b"), (3, "raw \" // no"), (3, "c")]);
        assert_eq!(source.code.len(), text.len());
        assert_eq!(source.code.matches('{').count(), 1);
        assert!(source.code.contains("fn f<'a>(x: &'a str)"));
    }

    #[test]
    fn code_for_tests_alone_is_removed() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  const B: &str = \"b\"; // c\n}\n\
                    #[cfg(test)]\nmod more;\nfn d() {}";
        let source = RustSource::parse(text).without_tests();
        assert_eq!(source.code.split_whitespace().collect::<Vec<_>>(), ["fn", "a()", "{}", "fn", "d()", "{}"]);
        assert!(source.literals.is_empty() && source.comments.is_empty());
        assert_eq!(source.code.lines().count(), 8);
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("fn fnord() { my_fn(fn) }", "fn").collect::<Vec<_>>(), [0, 19]);
    }
}
