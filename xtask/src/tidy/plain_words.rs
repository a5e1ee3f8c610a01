//! Comments, documents and texts for users are read once: turns of phrase that make a reader go back are refused.

use std::path::Path;

use crate::findings::Findings;
use crate::module_tree;
use crate::rust_source::{Piece, RustSource};
use crate::source_tree;

/// A turn of phrase that is refused, and what reads better.
struct Turn {
    name: &'static str,
    instead: &'static str,
    is_in: fn(&Sentence<'_>) -> bool,
}

const TURNS: &[Turn] = &[
    Turn {
        name: "a person without a name",
        instead: "name the actor: the thread, the client, the caller",
        is_in: |sentence| sentence.words.iter().any(|word| PERSONS.contains(&word.to_lowercase().as_str())),
    },
    Turn {
        name: "\"Who\" as the subject",
        instead: "begin with the actor",
        is_in: |sentence| sentence.begins("Who") && sentence.mark != '?' && !sentence.second_is(&["am", "are", "is"]),
    },
    Turn {
        name: "\"Those\" as the subject",
        instead: "name the things",
        is_in: |sentence| {
            sentence.begins("Those") && sentence.second_is(&["of", "who", "that", "which", "with", "in", "for"])
        },
    },
    Turn {
        name: "\"The same\" for a thing named before",
        instead: "say the thing again, or \"As `other`, ...\"",
        is_in: |sentence| {
            let after = ["of", "as", "for", "once", "where", "with", "in", "while"];
            sentence.begins("The same")
                && (sentence.words.len() == 2 || sentence.pauses_behind(1) || sentence.word_is(2, &after))
        },
    },
    Turn { name: "\"What ...\" for a noun", instead: "a noun: \"Fields that ...\"", is_in: is_clause_for_noun },
    Turn {
        name: "\"Of ...\" before the subject",
        instead: "the subject first",
        is_in: |sentence| {
            let subject = ["one", "none", "all", "only", "some", "each", "the", "it", "is", "are", "has", "have"];
            let later = sentence.words.iter().skip(2);
            let is_of_things = sentence.words.get(1).is_some_and(|word| word.starts_with(char::is_lowercase));
            sentence.begins("Of")
                && is_of_things
                && !sentence.second_is(&["course"])
                && later.clone().any(|word| subject.contains(word))
        },
    },
    Turn {
        name: "\"and so is ...\"",
        instead: "a sentence of its own",
        is_in: |sentence| {
            let verbs = ["is", "are", "has", "have", "do", "does", "did", "was", "were", "can", "may", "must"];
            let inverted = |at: usize| sentence.word_is(at, &verbs) && at + 1 < sentence.words.len();
            sentence.phrase(&["and", "so"]).any(|at| inverted(at + 2) && !sentence.pauses_behind(at + 2))
        },
    },
    Turn {
        name: "an old-fashioned turn",
        instead: "available; whether; useless; except",
        is_in: |sentence| {
            let objects = ["the", "those", "that", "what", "one", "its"];
            OLD.iter().any(|phrase| sentence.phrase(phrase).next().is_some())
                || sentence.phrase(&["but", "for"]).any(|at| sentence.word_is(at + 2, &objects))
        },
    },
    Turn {
        name: "\"One that\" for a thing named before",
        instead: "name the thing",
        is_in: |sentence| {
            (sentence.begins("One") || sentence.begins("Another"))
                && sentence.second_is(&["that", "which", "who", "of"])
        },
    },
];

/// Words that name no actor.
const PERSONS: &[&str] = &["whoever", "whomever", "whosoever", "nobody", "somebody", "anybody", "everybody"];
const OLD: &[&[&str]] =
    &[&["to", "be", "had"], &["be", "it"], &["in", "vain"], &["such", "as", "come"], &["such", "as", "can"]];

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    for folder in ["crates", "xtask", "tests", "fuzz", "packaging"] {
        for file in source_tree::files(root, folder)?.iter().filter(|file| file.has_extension("rs")) {
            comments(&file.name, &RustSource::parse(&file.read()?).comments, findings);
        }
    }
    for file in source_tree::files(root, "")?.iter().filter(|file| file.has_extension("md")) {
        document(&file.name, &file.read()?, findings);
    }
    for module in module_tree::crates(root)?.iter().flat_map(|found| &found.modules) {
        literals(&module.file, &module.source.literals, findings);
    }
    Ok(())
}

/// Comments on lines that follow each other are one text; a code block of a doc comment is none.
fn comments(file: &str, comments: &[Piece], findings: &mut Findings) {
    let mut block = Block::default();
    let mut last_line = 0;
    for comment in comments {
        if comment.line != last_line + 1 || comment.text.is_empty() {
            block.judge(file, findings);
        }
        block.add(comment.line, comment.text.strip_prefix('#').unwrap_or(&comment.text));
        last_line = comment.line;
    }
    block.judge(file, findings);
}

/// Paragraphs, items of lists and rows of tables are a text each; code blocks, headings and quotations are none.
fn document(file: &str, text: &str, findings: &mut Findings) {
    let mut block = Block::default();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("```") {
            in_code = !in_code;
        }
        let is_text = !in_code && !line.is_empty() && !line.starts_with(['`', '#', '>']);
        if !is_text || line.starts_with(['-', '*', '|']) || line.starts_with(|first: char| first.is_ascii_digit()) {
            block.judge(file, findings);
        }
        if is_text {
            block.add(number + 1, line.trim_start_matches(['-', ' ']));
        }
    }
    block.judge(file, findings);
}

/// Texts of at least three words: errors, log lines and help.
fn literals(file: &str, literals: &[Piece], findings: &mut Findings) {
    for literal in literals.iter().filter(|literal| literal.text.split_whitespace().count() >= 3) {
        let mut block = Block::default();
        block.add(literal.line, &literal.text.replace("\\n", ". ").replace('\\', " "));
        block.text.push_str(". ");
        block.judge(file, findings);
    }
}

/// Lines of one text.
#[derive(Default)]
struct Block {
    first_line: usize,
    text: String,
}

impl Block {
    fn add(&mut self, line: usize, text: &str) {
        if self.text.is_empty() {
            self.first_line = line;
        }
        self.text.push_str(text);
        self.text.push(' ');
    }

    fn judge(&mut self, file: &str, findings: &mut Findings) {
        let text = without_code(&std::mem::take(&mut self.text));
        for (sentence, mark) in sentences(&text) {
            let parsed = Sentence { words: sentence.split_whitespace().map(bare).collect(), raw: sentence, mark };
            for turn in TURNS.iter().filter(|turn| (turn.is_in)(&parsed)) {
                let (line, Turn { name, instead, .. }) = (self.first_line, turn);
                findings.fail(format!("{file}:{line}: {name} in {:?}: {instead}", sentence.trim()));
            }
        }
    }
}

/// The text with `x` for each span of code.
fn without_code(text: &str) -> String {
    text.split('`').enumerate().map(|(number, part)| if number % 2 == 1 { "x" } else { part }).collect()
}

/// The sentences of a text, each with the mark that ends it. Cells of a table end with `|`, the text without a mark
/// with a blank.
fn sentences(text: &str) -> Vec<(&str, char)> {
    let mut found = Vec::new();
    let mut start = 0;
    for (offset, mark) in text.match_indices(['.', '?', '!', ':', ';', '|']) {
        if mark == "|" || text[offset + 1..].starts_with(' ') {
            found.push((text[start..offset].trim(), mark.chars().next().unwrap_or(' ')));
            start = offset + 1;
        }
    }
    found.push((text[start..].trim(), ' '));
    found
}

fn bare(word: &str) -> &str {
    word.trim_matches(|character: char| !character.is_alphanumeric())
}

struct Sentence<'a> {
    words: Vec<&'a str>,
    raw: &'a str,
    mark: char,
}

impl Sentence<'_> {
    fn begins(&self, words: &str) -> bool {
        self.raw.starts_with(char::is_alphabetic)
            && words.split(' ').enumerate().all(|(at, word)| self.words.get(at) == Some(&word))
    }

    fn word_is(&self, at: usize, among: &[&str]) -> bool {
        self.words.get(at).is_some_and(|word| among.contains(word))
    }

    fn second_is(&self, among: &[&str]) -> bool {
        self.word_is(1, among)
    }

    /// Whether a comma or the like follows a word.
    fn pauses_behind(&self, at: usize) -> bool {
        let word = self.raw.split_whitespace().nth(at);
        word.is_some_and(|word| !word.ends_with(char::is_alphanumeric))
    }

    /// Where the words stand in a row.
    fn phrase<'a>(&'a self, phrase: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
        (0..self.words.len()).filter(move |&at| self.words[at..].starts_with(phrase))
    }
}

/// `What the server saw.`, but not `What is the limit?`, `What happens to it.` nor the title `What it does`.
fn is_clause_for_noun(sentence: &Sentence<'_>) -> bool {
    let verbs = ["is", "are", "does", "do", "can", "if", "to", "happens", "was", "were"];
    let subjects = ["the", "it", "a", "an", "this", "that", "you", "I", "we", "do", "expect", "not"];
    let asks = sentence.word_is(1, &verbs) && sentence.word_is(2, &subjects);
    sentence.begins("What") && sentence.words.len() > 2 && sentence.mark == '.' && !asks
}

#[cfg(test)]
mod tests {
    use super::{comments, document, literals};
    use crate::findings::Findings;
    use crate::rust_source::RustSource;

    fn found(check: impl FnOnce(&mut Findings)) -> Vec<String> {
        let mut findings = Findings::default();
        check(&mut findings);
        findings.failures
    }

    fn of_comment(text: &str) -> usize {
        let source = RustSource::parse(&format!("/// {text}\nfn f() {{}}"));
        found(|findings| comments("a.rs", &source.comments, findings)).len()
    }

    #[test]
    fn each_turn_is_found() {
        for text in [
            "Read by whoever comes first.",
            "Waits. Nobody reads it.",
            "Who holds the lock goes on.",
            "Those of the collection.",
            "The same of a database.",
            "Reads it: The same, but later.",
            "What the client sent.",
            "Of two entries the older one is kept.",
            "The file is synced and so is its folder.",
            "The latch is not to be had.",
            "Any server, be it old or new.",
            "Every key but for the last.",
            "One that waits is woken.",
            "Another of these is taken.",
        ] {
            assert_eq!(of_comment(text), 1, "{text}");
        }
    }

    #[test]
    fn plain_sentences_pass() {
        for text in [
            "The thread that comes first reads it.",
            "Who are you?",
            "The same key may stand twice.",
            "What is the limit?",
            "Of course the limit is kept.",
            "It is full, and so the client waits.",
            "Reads one that of two.",
            "`Who holds` is a field; `whoever` too.",
        ] {
            assert_eq!(of_comment(text), 0, "{text}");
        }
    }

    #[test]
    fn lines_are_joined_and_the_first_is_named() {
        let source = RustSource::parse("fn f() {\n    // It is synced and\n    // so is the folder.\n}");
        let failures = found(|findings| comments("a.rs", &source.comments, findings));
        assert_eq!(
            failures,
            ["a.rs:2: \"and so is ...\" in \"It is synced and so is the folder\": a sentence of its own"]
        );
    }

    #[test]
    fn documents_are_read_without_their_code() {
        let text = "# Who reads\n\nWho reads this\n- Those of it.\n```\nWho reads\n```\n| Nobody | x |\n";
        assert_eq!(found(|findings| document("a.md", text, findings)).len(), 3);
    }

    #[test]
    fn literals_of_several_words_are_read() {
        let source = RustSource::parse("fn f() { g(\"Nobody\"); g(\"it is read \\\n  by nobody\") }");
        assert_eq!(found(|findings| literals("a.rs", &source.literals, findings)).len(), 1);
    }
}
