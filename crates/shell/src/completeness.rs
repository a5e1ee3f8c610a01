//! A scan of a script's text: whether the script is whole yet, or goes on in the next line; and the declarations at its
//! top level.

/// Words after which a slash begins a regular expression, although it would divide a value after any other word.
const BEFORE_VALUES: [&str; 12] =
    ["return", "typeof", "case", "in", "of", "void", "delete", "throw", "else", "do", "await", "yield"];

/// Where the scan of a script is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Code,
    /// A string, by its quotation mark.
    Quoted(char),
    Template,
    LineComment,
    BlockComment,
    Regex,
}

/// A script that grows by whole lines. Each line is scanned once, because a script may have a million lines.
pub(crate) struct Growing {
    text: String,
    scan: Scan,
}

impl Growing {
    pub fn new() -> Self {
        Self { text: String::new(), scan: Scan::new() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Adds whole lines, with their line breaks.
    pub fn push(&mut self, lines: &str) {
        self.text.push_str(lines);
        let mut characters = lines.chars().peekable();
        while let Some(character) = characters.next() {
            let next = characters.peek().copied();
            if self.scan.step(character, next) {
                characters.next();
            }
        }
    }

    /// Whether brackets, a template, a comment or an operator's right side are still open at the end. A text that is
    /// wrong otherwise counts as whole, so that the engine says what is wrong with it.
    pub fn is_open(&self) -> bool {
        match self.scan.place {
            _ if self.scan.is_wrong => false,
            Place::Template | Place::BlockComment => true,
            Place::Code | Place::LineComment => !self.scan.open.is_empty() || ends_with_operator(&self.text),
            // The end of a line ends a string, unless a backslash stands before it.
            Place::Quoted(_) => self.text.ends_with("\\\n"),
            Place::Regex => false,
        }
    }
}

/// As [`Growing::is_open`], of a whole text.
pub(crate) fn is_open(text: &str) -> bool {
    let mut script = Growing::new();
    script.push(&format!("{text}\n"));
    script.is_open()
}

/// The script with `var` for each `const` and `let` at its top level, as far as a scan of words can tell: a user who
/// types a declaration again means to change it, and scripts that run one after the other may declare the same names.
pub(crate) fn with_repeatable_declarations(text: &str) -> String {
    let mut scan = Scan::new();
    let mut made = String::with_capacity(text.len());
    let mut characters = text.char_indices().peekable();
    let mut is_word = false;
    while let Some((at, character)) = characters.next() {
        let is_top = scan.place == Place::Code && scan.open.is_empty() && !is_word && scan.before != '.';
        let keyword = ["const", "let"].into_iter().find(|word| is_top && is_declaration(&text[at..], word));
        if let Some(keyword) = keyword {
            made.push_str("var");
            for _ in 1..keyword.len() {
                characters.next();
            }
            (scan.before, is_word) = ('t', true);
            continue;
        }
        is_word = character.is_alphanumeric() || character == '_' || character == '$';
        made.push(character);
        if scan.step(character, characters.peek().map(|(_, next)| *next))
            && let Some((_, next)) = characters.next()
        {
            made.push(next);
        }
    }
    made
}

/// Whether a text begins with that keyword and a name or a pattern after it.
fn is_declaration(text: &str, keyword: &str) -> bool {
    let Some(rest) = text.strip_prefix(keyword) else { return false };
    let name = rest.trim_start();
    let is_apart = name.len() < rest.len() || name.starts_with(['{', '[']);
    is_apart && name.starts_with(|first: char| first.is_alphabetic() || "_${[".contains(first))
}

struct Scan {
    place: Place,
    /// Open brackets. A template that a `${` interrupts is the backtick under its brace.
    open: Vec<char>,
    /// The last character that is neither blank nor comment.
    before: char,
    /// The word that ends with `before`, if one does; with a dot before it if it is a property's name.
    word: String,
    /// Whether the next character may go on with the word.
    is_in_word: bool,
    /// Whether a bracket was closed that nothing had opened.
    is_wrong: bool,
}

impl Scan {
    fn new() -> Self {
        Self {
            place: Place::Code,
            open: Vec::new(),
            before: '\0',
            word: String::new(),
            is_in_word: false,
            is_wrong: false,
        }
    }

    /// Reads a character. Returns whether the next one belongs to it.
    fn step(&mut self, character: char, next: Option<char>) -> bool {
        match self.place {
            Place::Code => return self.code(character, next),
            Place::Quoted(quote) => match character {
                '\\' => return true,
                // A string ends with its line, at the latest.
                '\n' => self.place = Place::Code,
                _ if character == quote => self.place = Place::Code,
                _ => {}
            },
            Place::Template => match (character, next) {
                ('\\', _) => return true,
                ('`', _) => self.place = Place::Code,
                ('$', Some('{')) => {
                    self.open.extend(['`', '{']);
                    self.place = Place::Code;
                    return true;
                }
                _ => {}
            },
            Place::LineComment if character == '\n' => self.place = Place::Code,
            Place::BlockComment if (character, next) == ('*', Some('/')) => {
                self.place = Place::Code;
                return true;
            }
            Place::LineComment | Place::BlockComment => {}
            Place::Regex => match character {
                '\\' => return true,
                '/' | '\n' => self.place = Place::Code,
                _ => {}
            },
        }
        false
    }

    fn code(&mut self, character: char, next: Option<char>) -> bool {
        match (character, next) {
            ('/', Some('/')) => self.place = Place::LineComment,
            ('/', Some('*')) => {
                self.place = Place::BlockComment;
                return true;
            }
            ('/', _) if !self.is_after_value() => self.place = Place::Regex,
            ('"' | '\'', _) => self.place = Place::Quoted(character),
            ('`', _) => self.place = Place::Template,
            ('(' | '[' | '{', _) => self.open.push(character),
            (')' | ']' | '}', _) => {
                self.is_wrong |= self.open.pop().is_none();
                if character == '}' && self.open.last() == Some(&'`') {
                    self.open.pop();
                    self.place = Place::Template;
                }
            }
            _ => {}
        }
        self.note_word(character);
        if !character.is_whitespace() && self.place != Place::LineComment {
            self.before = character;
        }
        false
    }

    /// Whether a slash divides: a regular expression does not follow a value.
    fn is_after_value(&self) -> bool {
        let ends_value = self.before.is_alphanumeric() || ")]}_$'\"`".contains(self.before);
        ends_value && !BEFORE_VALUES.contains(&self.word.as_str())
    }

    fn note_word(&mut self, character: char) {
        let is_of_word = character.is_alphanumeric() || "_$".contains(character);
        if character.is_whitespace() {
            self.is_in_word = false;
            return;
        }
        if !is_of_word || !self.is_in_word {
            self.word.clear();
            // The name of a property is not a keyword.
            self.word.extend((self.before == '.').then_some('.'));
        }
        if is_of_word {
            self.word.push(character);
        }
        self.is_in_word = is_of_word;
    }
}

/// Whether the last line ends with an operator that needs a right side.
fn ends_with_operator(text: &str) -> bool {
    let line = text.trim_end();
    let is_increment = line.ends_with("++") || line.ends_with("--");
    let ends = ["=", ",", "&&", "||", "=>", "+", "-", "*", "?", ":", "."];
    !is_increment && !line.is_empty() && ends.iter().any(|end| line.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::{Growing, is_open, with_repeatable_declarations};

    #[test]
    fn lines_that_arrive_one_by_one_are_scanned_as_one_text() {
        let mut script = Growing::new();
        for line in ["f(`a\n", "${b /* (\n", "*/ + ')' }`, {\n"] {
            script.push(line);
            assert!(script.is_open(), "{line}");
        }
        script.push("})\n");
        assert!(!script.is_open());
        assert_eq!(script.text(), "f(`a\n${b /* (\n*/ + ')' }`, {\n})\n");
    }

    #[test]
    fn an_open_bracket_template_or_comment_goes_on() {
        for open in [
            "db.t.find({",
            "f(",
            "`a\nb",
            "`${",
            "`${a",
            "/* a",
            "x = [1,\n2",
            "a &&",
            "const f = () =>",
            "x =",
            "db.t.",
            "'a\\",
        ] {
            assert!(is_open(open), "{open}");
        }
    }

    #[test]
    fn whole_scripts_and_wrong_ones_do_not() {
        for whole in [
            "",
            "db.t.find({a: '}'})",
            "'('",
            "\"(\"",
            "/[(]/.test('a')",
            "a = b / c; d = '('",
            "`${{a: 1}}`",
            "// (",
            "/* ( */ 1",
            "'it\\'s ('",
            "i++",
            ")",
            "}{",
            "'unfinished (",
            "x = 4 / 2",
            "f = (s) => { return /[({]/.test(s) }",
            "a.in / b.min / '('.length",
            "show dbs",
            "{a: 1}",
        ] {
            assert!(!is_open(whole), "{whole}");
        }
    }

    #[test]
    fn declarations_at_the_top_level_may_be_repeated() {
        for (given, made) in [
            ("const a = 1; let b", "var a = 1; var b"),
            ("const {a, b} = f()\nlet[c] = d", "var {a, b} = f()\nvar[c] = d"),
            ("for (let i = 0;;) { const x = 1 }", "for (let i = 0;;) { const x = 1 }"),
            ("'const a'; a.let = 1; // let x\nconstant = 5", "'const a'; a.let = 1; // let x\nconstant = 5"),
            ("`${f(() => { let x })} const y`; let z = 1", "`${f(() => { let x })} const y`; var z = 1"),
        ] {
            assert_eq!(with_repeatable_declarations(given), made);
        }
    }
}
