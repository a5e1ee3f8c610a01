//! `queryString`: operators in Lucene's notation. It is read into the other operators.
//!
//! ```text
//! word  "a phrase"~2  field:word  wor*  w?rd  word~1  /pattern/  [a TO b}  a AND b  a OR b  NOT a  +a -b  (a b)
//! ```

use super::compound::Compound;
use super::constant_terms::{ConstantTerms, compile, compile_regex, of_wildcard};
use super::phrase::Phrase;
use super::text::{Criteria, Form, Text};
use super::{Clause, Operator, UseOfPostings};
use crate::Reader;
use crate::evaluation::{Cut, Evaluation};
use crate::fuzzy::Fuzzy;
use crate::paths::{Path, TextField, text_fields};
use crate::postings::{Postings, Rows};
use crate::score::Score;
use crate::unit::Unit;
use bunko_errors::Result;

/// Deepest nesting of parentheses.
const DEPTH_MAX: usize = 50;
/// Maximum number of clauses between two parentheses. Source: Lucene, `IndexSearcher.getMaxClauseCount`.
const CLAUSES_MAX: usize = 1_024;

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let path = reader.required(reader.string("defaultPath")?, "defaultPath")?;
    let query = reader.required(reader.word("query")?, "query")?;
    let mut notation = Notation { text: query, at: 0 };
    let read = notation.clauses(path, 0).and_then(|clause| notation.end().map(|()| clause));
    let clause = read.map_err(|why| reader.wrong("query", &format!("cannot be parsed: {why}")))?;
    Ok(clause.operator)
}

struct Notation<'q> {
    text: &'q str,
    /// Number of bytes that have been read.
    at: usize,
}

/// Whether a clause has to match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occurs {
    Must,
    Should,
    Not,
}

type Read<T> = std::result::Result<T, String>;

fn clause(name: &'static str, operator: impl Operator + 'static) -> Clause {
    Clause { name, operator: Box::new(operator), score: Score::Kept }
}

impl Notation<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        let blanks = self.rest().len() - self.rest().trim_start().len();
        self.at += blanks;
    }

    fn take(&mut self, sign: &str) -> bool {
        let is_there = self.rest().starts_with(sign);
        if is_there {
            self.at += sign.len();
        }
        is_there
    }

    /// Reads `word` if it comes next, before white space, `(` or the text's end; returns whether it did.
    fn take_word(&mut self, word: &str) -> bool {
        let Some(behind) = self.rest().strip_prefix(word) else { return false };
        let ends = behind.is_empty() || behind.starts_with(|letter: char| letter.is_whitespace() || letter == '(');
        if ends {
            self.at += word.len();
        }
        ends
    }

    fn end(&mut self) -> Read<()> {
        self.skip_blanks();
        if self.rest().is_empty() { Ok(()) } else { Err(format!("unexpected '{}'", self.rest())) }
    }

    /// Reads clauses up to the end or to a closing parenthesis.
    fn clauses(&mut self, path: &str, depth: usize) -> Read<Clause> {
        if depth > DEPTH_MAX {
            return Err(format!("parentheses stand {DEPTH_MAX} deep at most"));
        }
        let mut found: Vec<(Occurs, Clause)> = Vec::new();
        let mut joins_next = false;
        loop {
            self.skip_blanks();
            if self.rest().is_empty() || self.rest().starts_with(')') {
                break;
            }
            if self.take_word("AND") || self.take("&&") {
                let Some(last) = found.last_mut().filter(|_| !joins_next) else {
                    return Err("AND joins nothing".to_owned());
                };
                if last.0 == Occurs::Should {
                    last.0 = Occurs::Must;
                }
                joins_next = true;
                self.expect_more()?;
                continue;
            }
            if self.take_word("OR") || self.take("||") {
                if found.is_empty() || joins_next {
                    return Err("OR joins nothing".to_owned());
                }
                self.expect_more()?;
                if self.rest().starts_with("AND ") || self.rest().starts_with("OR ") {
                    return Err("OR joins nothing".to_owned());
                }
                continue;
            }
            let mut occurs = if joins_next { Occurs::Must } else { Occurs::Should };
            joins_next = false;
            if self.take_word("NOT") || self.take("-") || self.take("!") {
                occurs = Occurs::Not;
                self.skip_blanks();
            } else if self.take("+") {
                occurs = Occurs::Must;
            }
            found.push((occurs, self.one(path, depth)?));
            if found.len() > CLAUSES_MAX {
                return Err(format!("there are {CLAUSES_MAX} clauses at most"));
            }
        }
        if found.is_empty() || joins_next {
            return Err("a clause is missing".to_owned());
        }
        Ok(together(found))
    }

    fn expect_more(&mut self) -> Read<()> {
        self.skip_blanks();
        if self.rest().is_empty() || self.rest().starts_with(')') {
            return Err("a clause is missing at the end".to_owned());
        }
        Ok(())
    }

    /// Reads one clause, with its field if it names one.
    fn one(&mut self, path: &str, depth: usize) -> Read<Clause> {
        if let Some(field) = self.field() {
            return self.one_at(&field, depth);
        }
        self.one_at(path, depth)
    }

    /// Reads the name of a field before a colon; `None`, and reads nothing, if there is none.
    fn field(&mut self) -> Option<String> {
        let mut name = String::new();
        let mut letters = self.rest().char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                ':' if !name.is_empty() => {
                    self.at += at + 1;
                    return Some(name);
                }
                '\\' => name.push(letters.next()?.1),
                _ if letter.is_whitespace() || "()[]{}\"/~^:+-!".contains(letter) => return None,
                _ => name.push(letter),
            }
        }
        None
    }

    fn one_at(&mut self, path: &str, depth: usize) -> Read<Clause> {
        let paths = vec![Path { name: path.to_owned(), is_wildcard: path.contains('*'), multi: None }];
        let mut clause = if self.take("(") {
            let inner = self.clauses(path, depth + 1)?;
            if !self.take(")") {
                return Err("a parenthesis is not closed".to_owned());
            }
            inner
        } else if self.take("\"") {
            let text = self.until('"')?;
            let slop = if self.take("~") { self.number()?.unwrap_or(2.0) as i64 } else { 0 };
            clause("phrase", Phrase { queries: vec![text], paths, slop })
        } else if self.take("/") {
            let text = self.until('/')?;
            let patterns = vec![compile_regex(&text)?];
            clause("regex", ConstantTerms { patterns, paths, allows_analyzed: true })
        } else if self.rest().starts_with(['[', '{']) {
            clause("range", self.range(paths)?)
        } else {
            self.word(paths)?
        };
        if self.take("^") {
            let boost = self.number()?.ok_or("a boost is missing")?;
            clause.score = Score::Boost(boost as f32);
        }
        Ok(clause)
    }

    fn until(&mut self, end: char) -> Read<String> {
        let mut text = String::new();
        let mut letters = self.rest().char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => {
                    let next = letters.next().ok_or("nothing follows a backslash")?.1;
                    // The pattern keeps its escapes; only `\/` is resolved.
                    if end == '/' && next != '/' {
                        text.push('\\');
                    }
                    text.push(next);
                }
                letter if letter == end => {
                    self.at += at + letter.len_utf8();
                    return Ok(text);
                }
                letter => text.push(letter),
            }
        }
        Err(format!("'{end}' is missing"))
    }

    fn number(&mut self) -> Read<Option<f64>> {
        let length = self.rest().find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let digits = &self.rest()[..length.unwrap_or(self.rest().len())];
        if digits.is_empty() {
            return Ok(None);
        }
        let number = digits.parse().map_err(|_| format!("'{digits}' is not a number"))?;
        self.at += digits.len();
        Ok(Some(number))
    }

    fn word(&mut self, paths: Vec<Path>) -> Read<Clause> {
        let (mut plain, mut pattern, mut is_pattern) = (String::new(), String::new(), false);
        let mut letters = self.rest().char_indices().peekable();
        let mut end = self.rest().len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => {
                    let next = letters.next().ok_or("nothing follows a backslash")?.1;
                    plain.push(next);
                    pattern.extend(['\\', next]);
                }
                _ if letter.is_whitespace() || "()[]{}\"~^".contains(letter) => {
                    end = at;
                    break;
                }
                '*' | '?' => {
                    is_pattern = true;
                    plain.push(letter);
                    pattern.push(letter);
                }
                ':' => return Err("a field has no clause after it".to_owned()),
                _ => {
                    plain.push(letter);
                    pattern.push(letter);
                }
            }
        }
        if end == 0 || matches!(plain.as_str(), "AND" | "OR" | "NOT") {
            return Err(format!("unexpected '{}'", self.rest()));
        }
        self.at += end;
        if is_pattern {
            let patterns = vec![compile(&of_wildcard(&pattern.to_lowercase()))?];
            return Ok(clause("wildcard", ConstantTerms { patterns, paths, allows_analyzed: true }));
        }
        let mut fuzzy = None;
        if self.take("~") {
            let edits_max = self.number()?.map_or(2, |number| (number as usize).clamp(0, 2));
            fuzzy = Some(Fuzzy { edits_max, prefix: 0, expansions_max: 50 });
        }
        let queries = vec![plain];
        Ok(clause("text", Text { queries, paths, fuzzy, criteria: Criteria::Any, form: Form::Cut }))
    }

    fn range(&mut self, paths: Vec<Path>) -> Read<WordRange> {
        let low_is_inside = self.take("[");
        if !low_is_inside {
            self.take("{");
        }
        let low = self.bound()?;
        if !self.take_word("TO") {
            return Err("TO is missing".to_owned());
        }
        let high = self.bound()?;
        let high_is_inside = self.take("]");
        if !high_is_inside && !self.take("}") {
            return Err("a range is not closed".to_owned());
        }
        Ok(WordRange { paths, low, high, low_is_inside, high_is_inside })
    }

    fn bound(&mut self) -> Read<Option<String>> {
        self.skip_blanks();
        let text = if self.take("\"") {
            self.until('"')?
        } else {
            let length = self.rest().find(|letter: char| letter.is_whitespace() || "]}".contains(letter));
            let text = self.rest()[..length.unwrap_or(self.rest().len())].to_owned();
            self.at += text.len();
            text
        };
        self.skip_blanks();
        match text.as_str() {
            "" => Err("a bound is missing".to_owned()),
            "*" => Ok(None),
            text => Ok(Some(text.to_lowercase())),
        }
    }
}

/// Combines clauses into a `compound`; a single clause without `NOT` stays as it is.
fn together(mut found: Vec<(Occurs, Clause)>) -> Clause {
    if found.len() == 1 && found[0].0 != Occurs::Not {
        return found.remove(0).1;
    }
    let mut compound = Compound::default();
    for (occurs, clause) in found {
        match occurs {
            Occurs::Must => compound.must.push(clause),
            Occurs::Should => compound.should.push(clause),
            Occurs::Not => compound.must_not.push(clause),
        }
    }
    compound.should_least = usize::from(compound.must.is_empty() && !compound.should.is_empty());
    clause("compound", compound)
}

/// Matches the words that are between two words in the order of their letters.
#[derive(Debug)]
struct WordRange {
    paths: Vec<Path>,
    low: Option<String>,
    high: Option<String>,
    low_is_inside: bool,
    high_is_inside: bool,
}

impl WordRange {
    fn takes(&self, word: &str) -> bool {
        let above = self.low.as_deref().is_none_or(|low| word > low || self.low_is_inside && word == low);
        above && self.high.as_deref().is_none_or(|high| word < high || self.high_is_inside && word == high)
    }
}

impl Operator for WordRange {
    fn use_of_postings(&self) -> UseOfPostings {
        UseOfPostings::Wanted
    }

    fn candidates(&self, postings: &Postings, evaluation: &Evaluation) -> Result<Rows> {
        let mut rows = Rows::NONE;
        for (field, _) in postings.texts(&self.paths) {
            rows = rows.or(postings.words_like(field, evaluation, |word| Ok(self.takes(word)))?);
        }
        Ok(rows)
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        for field in text_fields(unit, &self.paths, &evaluation.operation)? {
            let cut = evaluation.cut(unit, &field)?;
            if cut.frequencies.keys().any(|word| self.takes(word)) {
                return Ok(Some(1.0));
            }
        }
        Ok(None)
    }

    fn mark(&self, field: &TextField<'_>, cut: &Cut, _: &Evaluation, marks: &mut [bool]) -> Result<()> {
        if self.paths.iter().any(|path| path.takes(&field.path)) {
            for (token, mark) in cut.tokens.iter().zip(marks) {
                *mark |= self.takes(&token.text);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Read<Clause> {
        let mut notation = Notation { text: query, at: 0 };
        let clause = notation.clauses("a", 0)?;
        notation.end().map(|()| clause)
    }

    #[test]
    fn notation_becomes_operators() {
        for (query, name) in [
            ("word", "text"),
            ("\"two words\"~3", "phrase"),
            ("b.c:wor*", "wildcard"),
            ("/w.*d/", "regex"),
            ("[a TO c}", "range"),
            ("a AND b", "compound"),
            ("NOT (a OR b)", "compound"),
            ("word~1^2", "text"),
        ] {
            assert_eq!(read(query).map(|clause| clause.name), Ok(name), "{query}");
        }
    }

    #[test]
    fn malformed_query_strings_are_refused() {
        for query in ["a AND AND", "AND a", "a OR", "(a", "a)", "\"a", "[a b]", "a:", ":a", "NOT"] {
            assert!(read(query).is_err(), "{query}");
        }
    }
}
