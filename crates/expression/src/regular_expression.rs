//! Regular expressions of `$regexMatch` and its kin.

use crate::call::{Call, Operator, Parameters, Prepared};
use crate::variables::EvaluationContext;
use crate::{Evaluated, ParseScope, made};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use pcre2::bytes::{CaptureLocations, Regex, RegexBuilder};
use std::sync::OnceLock;

/// A compiled expression.
pub(crate) struct Pattern {
    regex: Regex,
    /// Compiled from `source` when it is first needed: for texts in ASCII, without UTF, so that not all of the text is
    /// checked again for each match. Nothing where it would mean something else.
    ascii: OnceLock<Option<Regex>>,
    source: String,
    options: String,
}

/// Longest pattern in bytes. Source: MongoDB manual, "$regex".
const PATTERN_BYTES_MAX: usize = 16 * 1024;

impl Pattern {
    /// Compiles a pattern with the options `i m s x u` (`u` is always on).
    /// # Errors
    /// 51109 and 51110 for a zero byte, 51108 for another option, 51111 for a pattern that does not compile.
    pub(crate) fn compile(operator: &str, pattern: &str, options: &str) -> Result<Self> {
        for (text, code, what) in [(pattern, 51109, ""), (options, 51110, " options")] {
            if text.contains('\0') {
                let message = format!("{operator}: regular expression{what} cannot contain an embedded null byte");
                return Err(Failure::new(ErrorCode(code), message));
            }
        }
        if let Some(other) = options.chars().find(|option| !"imsxu".contains(*option)) {
            let message = format!("{operator} invalid flag in regex options: {other}");
            return Err(Failure::new(ErrorCode(51108), message));
        }
        let invalid = |why: String| Failure::new(ErrorCode(51111), format!("Invalid Regex in {operator}: {why}"));
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(invalid("regular expression is too large".to_owned()));
        }
        let compiled = builder(options).utf(true).build(pattern).map(|regex| Self {
            regex,
            ascii: OnceLock::new(),
            source: pattern.to_owned(),
            options: options.to_owned(),
        });
        compiled.map_err(|error| {
            let text = error.to_string();
            // "PCRE2: error compiling pattern at offset 1: why"
            let why = text.split_once("at offset ").and_then(|(_, rest)| rest.split_once(": "));
            invalid(why.map_or(text.as_str(), |(_, why)| why).to_owned())
        })
    }

    /// The expression for many matches in one text.
    fn for_many(&self, text: &str) -> &Regex {
        if !self.source.is_ascii() || !text.is_ascii() {
            return &self.regex;
        }
        let ascii = self.ascii.get_or_init(|| builder(&self.options).build(&self.source).ok());
        ascii.as_ref().unwrap_or(&self.regex)
    }
}

/// What the options say, all of which are known.
fn builder(options: &str) -> RegexBuilder {
    let mut builder = RegexBuilder::new();
    builder.jit_if_available(true);
    builder.caseless(options.contains('i')).multi_line(options.contains('m'));
    builder.dotall(options.contains('s')).extended(options.contains('x'));
    builder
}

/// One search: a text and the expression to find in it.
pub(crate) struct Search<'c, 'v> {
    call: &'c Call,
    input: Evaluated<'v>,
    own: Option<Pattern>,
}

/// A place in a text.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    pub(crate) byte: usize,
    /// How many characters stand before it.
    pub(crate) character: usize,
}

/// A match, where it is, and as the operators report it.
pub(crate) struct Found {
    pub(crate) start: Place,
    /// In bytes.
    pub(crate) end: usize,
    pub(crate) document: DocumentBuf,
}

/// Reads a search's arguments; a constant expression is compiled now.
pub(crate) fn parse_search(
    operator: &'static Operator,
    parameters: &Parameters,
    value: ValueRef<'_>,
    scope: &ParseScope,
) -> Result<Call> {
    let arguments = parameters.parse(value, scope)?;
    let options = if arguments[2].is_absent() { Some(None) } else { arguments[2].as_literal().map(Some) };
    let prepared = match (arguments[1].as_literal(), options) {
        (Some(regex), Some(options)) => match compile(operator.name, regex, options)? {
            Some(pattern) => Prepared::Pattern(pattern),
            None => Prepared::Nothing,
        },
        _ => Prepared::Nothing,
    };
    Ok(Call { prepared, ..Call::new(operator, arguments) })
}

/// Compiles a regex or a string; nothing where it is null.
fn compile(operator: &str, regex: ValueRef<'_>, options: Option<ValueRef<'_>>) -> Result<Option<Pattern>> {
    let failure = |code, message: &str| Failure::new(ErrorCode(code), format!("{operator}{message}"));
    let options = match options {
        None | Some(ValueRef::Null | ValueRef::Undefined) => None,
        Some(ValueRef::String(options)) => Some(options),
        Some(_) => return Err(failure(51106, " needs 'options' to be of type string")),
    };
    match (regex, options) {
        (ValueRef::Null | ValueRef::Undefined, _) => Ok(None),
        (ValueRef::String(pattern), options) => {
            Pattern::compile(operator, pattern, options.unwrap_or_default()).map(Some)
        }
        (ValueRef::Regex { options: own, .. }, Some(_)) if !own.is_empty() => {
            Err(failure(51107, ": found regex option(s) specified in both 'regex' and 'option' fields"))
        }
        (ValueRef::Regex { pattern, options: own }, options) => {
            Pattern::compile(operator, pattern, options.unwrap_or(own)).map(Some)
        }
        _ => Err(failure(51105, " needs 'regex' to be of type string or regex")),
    }
}

impl<'a> Search<'a, 'a> {
    /// The search for one document; nothing where the text or the expression is null.
    pub(crate) fn of(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Option<Self>> {
        let input = call.argument(0, context)?;
        let own = match call.prepared {
            Prepared::Pattern(_) => None,
            _ => {
                let (regex, options) = (call.argument(1, context)?, call.optional(2, context)?);
                compile(call.name(), regex.or_null(), options.as_ref().map(Evaluated::or_null))?
            }
        };
        let has_pattern = own.is_some() || matches!(call.prepared, Prepared::Pattern(_));
        match input.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(None),
            Some(ValueRef::String(_)) if !has_pattern => Ok(None),
            Some(ValueRef::String(text)) => {
                context.operation().work(made::text_steps(text))?;
                Ok(Some(Self { call, input, own }))
            }
            Some(_) => Err(call.failure(51104, " needs 'input' to be of type string")),
        }
    }

    pub(crate) fn text(&self) -> &str {
        self.input.get().and_then(ValueRef::as_str).unwrap_or_default()
    }

    /// Length of the character at a byte, 1 at the end.
    fn character_bytes_at(&self, byte: usize) -> usize {
        self.text().get(byte..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
    }

    fn pattern(&self) -> Result<&Pattern> {
        match (&self.own, &self.call.prepared) {
            (Some(pattern), _) | (None, Prepared::Pattern(pattern)) => Ok(pattern),
            _ => Err(self.call.failure(51105, " needs 'regex' to be of type string or regex")),
        }
    }

    fn runtime_failure(&self, error: &pcre2::Error) -> Failure {
        let message = format!(
            "Error occurred while executing the regular expression in {}. Result code: {}",
            self.call.name(),
            error.code()
        );
        Failure::new(ErrorCode(51156), message)
    }

    pub(crate) fn is_match(&self) -> Result<bool> {
        self.pattern()?.regex.is_match(self.text().as_bytes()).map_err(|error| self.runtime_failure(&error))
    }

    /// The first match.
    pub(crate) fn find(&self) -> Result<Option<Found>> {
        let regex = &self.pattern()?.regex;
        self.find_at(regex, &mut regex.capture_locations(), Place::default())
    }

    /// Visits the matches one after the other, until there is none or the visitor fails.
    pub(crate) fn each(&self, mut visit: impl FnMut(Found) -> Result<()>) -> Result<()> {
        let text = self.text();
        let regex = self.pattern()?.for_many(text);
        let mut locations = regex.capture_locations();
        let mut from = Place::default();
        while let Some(found) = self.find_at(regex, &mut locations, from)? {
            // An empty match would be found again.
            let step = if found.end == found.start.byte { self.character_bytes_at(found.end) } else { 0 };
            let byte = found.end + step;
            let passed = text.get(found.start.byte..byte).map_or(0, |passed| passed.chars().count());
            from = Place { byte, character: found.start.character + passed };
            visit(found)?;
            // MongoDB reports no empty match behind the last character.
            if from.byte >= text.len() {
                break;
            }
        }
        Ok(())
    }

    /// The first match from a place on.
    fn find_at(&self, regex: &Regex, locations: &mut CaptureLocations, from: Place) -> Result<Option<Found>> {
        let text = self.text();
        let found = regex
            .captures_read_at(locations, text.as_bytes(), from.byte)
            .map_err(|error| self.runtime_failure(&error))?;
        let Some(found) = found else { return Ok(None) };
        let mut captures = ArrayBuf::new();
        for group in 1..locations.len() {
            match locations.get(group).and_then(|(start, end)| text.get(start..end)) {
                Some(capture) => captures.push(capture),
                None => captures.push(ValueRef::Null),
            };
        }
        let (start, end) = (found.start(), found.end());
        let passed = text.get(from.byte..start).unwrap_or_default().chars().count();
        let start = Place { byte: start, character: from.character + passed };
        let document = DocumentBuf::new()
            .with("match", text.get(start.byte..end).unwrap_or_default())
            .with("idx", start.character as i32)
            .with("captures", &captures);
        Ok(Some(Found { start, end, document }))
    }
}
