//! Regular expressions of `$regexMatch` and its kin.

use crate::call::{Call, Operator, Parameters, Prepared};
use crate::variables::EvaluationContext;
use crate::{Evaluated, ParseScope};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use pcre2::bytes::{Regex, RegexBuilder};

/// A compiled expression.
pub(crate) struct Pattern(pub(crate) Regex);

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
        let mut builder = RegexBuilder::new();
        builder.utf(true).jit_if_available(true);
        for option in options.chars() {
            match option {
                'i' => builder.caseless(true),
                'm' => builder.multi_line(true),
                's' => builder.dotall(true),
                'x' => builder.extended(true),
                'u' => &mut builder,
                other => {
                    let message = format!("{operator} invalid flag in regex options: {other}");
                    return Err(Failure::new(ErrorCode(51108), message));
                }
            };
        }
        let invalid = |why: String| Failure::new(ErrorCode(51111), format!("Invalid Regex in {operator}: {why}"));
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(invalid("regular expression is too large".to_owned()));
        }
        builder.build(pattern).map(Self).map_err(|error| {
            let text = error.to_string();
            // "PCRE2: error compiling pattern at offset 1: why"
            let why = text.split_once("at offset ").and_then(|(_, rest)| rest.split_once(": "));
            invalid(why.map_or(text.as_str(), |(_, why)| why).to_owned())
        })
    }
}

/// One search: a text and the expression to find in it.
pub(crate) struct Search<'c, 'v> {
    call: &'c Call,
    input: Evaluated<'v>,
    own: Option<Pattern>,
}

/// A match, where it is in bytes, and as the operators report it.
pub(crate) struct Found {
    pub(crate) start: usize,
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
                let compiled = compile(call.name(), regex.or_null(), options.as_ref().map(Evaluated::or_null))?;
                match compiled {
                    Some(pattern) => Some(pattern),
                    None => return Ok(None),
                }
            }
        };
        match input.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(None),
            Some(ValueRef::String(_)) => Ok(Some(Self { call, input, own })),
            Some(_) => Err(call.failure(51104, " needs 'input' to be of type string")),
        }
    }

    pub(crate) fn text(&self) -> &str {
        self.input.get().and_then(ValueRef::as_str).unwrap_or_default()
    }

    /// Length of the character at a byte, 1 at the end.
    pub(crate) fn character_bytes_at(&self, byte: usize) -> usize {
        self.text().get(byte..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
    }

    fn regex(&self) -> Result<&Regex> {
        match (&self.own, &self.call.prepared) {
            (Some(pattern), _) | (None, Prepared::Pattern(pattern)) => Ok(&pattern.0),
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
        self.regex()?.is_match(self.text().as_bytes()).map_err(|error| self.runtime_failure(&error))
    }

    /// The first match from a byte on.
    pub(crate) fn find_at(&self, from: usize) -> Result<Option<Found>> {
        let (regex, text) = (self.regex()?, self.text());
        let mut locations = regex.capture_locations();
        let found = regex
            .captures_read_at(&mut locations, text.as_bytes(), from)
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
        let document = DocumentBuf::new()
            .with("match", text.get(start..end).unwrap_or_default())
            .with("idx", text.get(..start).unwrap_or_default().chars().count() as i32)
            .with("captures", &captures);
        Ok(Some(Found { start, end, document }))
    }
}
