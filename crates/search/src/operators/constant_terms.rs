//! `wildcard` and `regex`: words that match a pattern. All matches have the same score.

use super::{Operator, UseOfPostings, queries};
use crate::evaluation::{Cut, Evaluation};
use crate::paths::{self, Path, TextField, text_fields};
use crate::postings::{Postings, Rows};
use crate::schema::Schema;
use crate::unit::Unit;
use crate::{Reader, StringField};
use bunko_errors::Result;
use bunko_pattern::{Pattern, Stopped};
use std::fmt::Write as _;

/// Steps counted for a match before the pattern itself counts: a pattern that backtracks takes long for few characters.
const MATCH_STEPS: usize = 64;

/// Words that match patterns.
#[derive(Debug)]
pub(super) struct ConstantTerms {
    pub patterns: Vec<Pattern>,
    pub paths: Vec<Path>,
    /// Whether analyzed fields may be searched.
    pub allows_analyzed: bool,
}

pub(super) fn parse_wildcard(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    parse(reader, |query| compile(&of_wildcard(query)))
}

pub(super) fn parse_regex(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    parse(reader, compile_regex)
}

fn parse(reader: &Reader<'_>, compile: fn(&str) -> Result<Pattern, String>) -> Result<Box<dyn Operator>> {
    let (queries, paths) = (queries(reader)?, paths::parse(reader)?);
    let allows_analyzed = reader.boolean("allowAnalyzedField")?.unwrap_or(false);
    let compile =
        |query: &String| compile(query).map_err(|why| reader.wrong("query", &format!("is not a valid pattern: {why}")));
    let patterns = queries.iter().map(compile).collect::<Result<_>>()?;
    Ok(Box::new(ConstantTerms { patterns, paths, allows_analyzed }))
}

/// Compiles a pattern that must match a whole word.
pub(super) fn compile(pattern: &str) -> Result<Pattern, String> {
    Pattern::compile(&format!("\\A(?:{pattern})\\z"), "s")
}

/// A Lucene pattern that must match a whole word. It is first compiled alone: an unmatched parenthesis must not end the
/// group around it.
pub(super) fn compile_regex(query: &str) -> Result<Pattern, String> {
    let pattern = of_regex(query);
    Pattern::compile(&pattern, "s")?;
    compile(&pattern)
}

/// `?` matches any character, `*` any number of characters, and `\` escapes the next character.
pub(super) fn of_wildcard(query: &str) -> String {
    let mut pattern = String::new();
    let mut letters = query.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '?' => pattern.push('.'),
            '*' => pattern.push_str(".*"),
            '\\' => push_literal(&mut pattern, letters.next().unwrap_or('\\')),
            other => push_literal(&mut pattern, other),
        }
    }
    pattern
}

fn push_literal(pattern: &mut String, letter: char) {
    if letter.is_ascii() && !letter.is_ascii_alphanumeric() {
        let _ = write!(pattern, "\\x{{{:x}}}", letter as u32);
    } else {
        pattern.push(letter);
    }
}

/// Translates a Lucene pattern, which has no anchors: outside of brackets, `^` and `$` are literal.
fn of_regex(query: &str) -> String {
    let mut pattern = String::new();
    let (mut inside, mut escaped) = (false, false);
    for letter in query.chars() {
        match letter {
            _ if escaped => {
                escaped = false;
                pattern.push(letter);
                continue;
            }
            '\\' => escaped = true,
            '[' => inside = true,
            ']' => inside = false,
            '^' | '$' if !inside => pattern.push('\\'),
            _ => {}
        }
        pattern.push(letter);
    }
    pattern
}

impl ConstantTerms {
    fn matches(&self, word: &str, evaluation: &Evaluation) -> Result<bool> {
        for pattern in &self.patterns {
            evaluation.operation.work(MATCH_STEPS)?;
            match pattern.is_match(word, |steps| evaluation.operation.work(steps)) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(Stopped::Told(failure)) => return Err(failure),
                // A word for which the pattern takes too long does not match.
                Err(_) => {}
            }
        }
        Ok(false)
    }

    fn is_whole(schema: &Schema, field: &StringField) -> bool {
        schema.of_documents(field).is_ok_and(|analyzer| analyzer.is_keyword())
    }
}

impl Operator for ConstantTerms {
    fn check(&self, schema: &Schema) -> Result<()> {
        if self.allows_analyzed {
            return Ok(());
        }
        for path in self.paths.iter().filter(|path| !path.is_wildcard) {
            let Some(mut field) = schema.types(&path.name).string() else { continue };
            if let Some(multi) = path.multi.as_ref().and_then(|name| field.multi.get(name)) {
                field = multi;
            }
            if !Self::is_whole(schema, field) {
                let message =
                    format!("\"{}\" is an analyzed field, \"allowAnalyzedField\" must be true to search it", path.name);
                return Err(crate::Refusal::Query.failure(message));
            }
        }
        Ok(())
    }

    fn use_of_postings(&self) -> UseOfPostings {
        UseOfPostings::Wanted
    }

    fn candidates(&self, postings: &Postings, evaluation: &Evaluation) -> Result<Rows> {
        let mut rows = Rows::NONE;
        for (field, string) in postings.texts(&self.paths) {
            if self.allows_analyzed || Self::is_whole(&evaluation.schema, string) {
                rows = rows.or(postings.words_like(field, evaluation, |word| self.matches(word, evaluation))?);
            }
        }
        Ok(rows)
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        for field in text_fields(unit, &self.paths, &evaluation.operation)? {
            if !self.allows_analyzed && !Self::is_whole(&evaluation.schema, field.string) {
                continue;
            }
            let cut = evaluation.cut(unit, &field)?;
            for word in cut.frequencies.keys() {
                if self.matches(word, evaluation)? {
                    return Ok(Some(1.0));
                }
            }
        }
        Ok(None)
    }

    fn mark(&self, field: &TextField<'_>, cut: &Cut, evaluation: &Evaluation, marks: &mut [bool]) -> Result<()> {
        if self.paths.iter().any(|path| path.takes(&field.path)) {
            for (token, mark) in cut.tokens.iter().zip(marks) {
                *mark |= self.matches(&token.text, evaluation)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, word: &str) -> bool {
        let pattern = compile(pattern).expect("a pattern");
        pattern.is_match(word, |_| Ok::<(), ()>(())).unwrap_or(false)
    }

    #[test]
    fn patterns_match_whole_words() {
        assert!(matches(&of_wildcard("qu*k"), "quick") && !matches(&of_wildcard("qu?k"), "quick"));
        assert!(matches(&of_wildcard("a\\*.b"), "a*.b") && !matches(&of_wildcard("a.b"), "axb"));
        assert!(matches(&of_regex("qu[^x]+k"), "quick") && !matches(&of_regex("qui"), "quick"));
        assert!(matches(&of_regex("a$"), "a$"));
        assert!(compile_regex("a)|(?:b").is_err() && compile_regex("(a|b)").is_ok());
    }
}
