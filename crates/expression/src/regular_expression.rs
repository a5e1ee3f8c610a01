//! Regular expressions of `$regexMatch` and its kin.

use crate::call::{Call, Operator, Parameters, Prepared};
use crate::compiled_pattern::Pattern;
use crate::variables::EvaluationContext;
use crate::{Evaluated, ParseScope, made};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_pattern::Stopped;

/// One search: a text and the expression to find in it.
pub(crate) struct Search<'c, 'v> {
    call: &'c Call,
    input: Evaluated<'v>,
    own: Option<Pattern>,
}

/// A place in a text.
#[derive(Clone, Copy, Default)]
pub(crate) struct TextPosition {
    pub(crate) byte: usize,
    /// Number of characters before the place.
    pub(crate) character: usize,
}

/// A match: its place, and the document by which the operators report it.
pub(crate) struct RegexMatch {
    pub(crate) start: TextPosition,
    /// End of the match, in bytes.
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

/// Compiles a regex or a string; `None` if `regex` is null.
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
    /// The search for one document; `None` if the text or the expression is null.
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

    fn stopped(&self, stopped: Stopped<Failure>) -> Failure {
        let code = match stopped {
            Stopped::Told(failure) => return failure,
            Stopped::Exceeded(code) => code,
        };
        let message = format!(
            "Error occurred while executing the regular expression in {}. Result code: {code}",
            self.call.name()
        );
        Failure::new(ErrorCode(51156), message)
    }

    pub(crate) fn is_match(&self, operation: &OperationContext) -> Result<bool> {
        let matched = self.pattern()?.0.is_match(self.text(), |steps| operation.work(steps));
        matched.map_err(|stopped| self.stopped(stopped))
    }

    /// Finds the first match.
    pub(crate) fn find(&self, operation: &OperationContext) -> Result<Option<RegexMatch>> {
        self.find_at(self.pattern()?, TextPosition::default(), operation)
    }

    /// Visits the matches one after the other, until there is none or the visitor fails.
    pub(crate) fn each(
        &self,
        operation: &OperationContext,
        mut visit: impl FnMut(RegexMatch) -> Result<()>,
    ) -> Result<()> {
        let text = self.text();
        let pattern = self.pattern()?;
        let mut from = TextPosition::default();
        while let Some(found) = self.find_at(pattern, from, operation)? {
            // An empty match would be found again.
            let step = if found.end == found.start.byte { self.character_bytes_at(found.end) } else { 0 };
            let byte = found.end + step;
            let passed = text.get(found.start.byte..byte).map_or(0, |passed| passed.chars().count());
            from = TextPosition { byte, character: found.start.character + passed };
            visit(found)?;
            // MongoDB reports no empty match after the last character.
            if from.byte >= text.len() {
                break;
            }
        }
        Ok(())
    }

    /// Finds the first match that begins at a place or after it.
    fn find_at(
        &self,
        pattern: &Pattern,
        from: TextPosition,
        operation: &OperationContext,
    ) -> Result<Option<RegexMatch>> {
        let text = self.text();
        let groups = pattern.0.find(text, from.byte, |steps| operation.work(steps));
        let groups = groups.map_err(|stopped| self.stopped(stopped))?;
        let mut groups = groups.into_iter().flatten();
        // A search that succeeds always has group 0, the whole match.
        let Some(found) = groups.next().flatten() else { return Ok(None) };
        let mut captures = ArrayBuf::new();
        for group in groups {
            match group.and_then(|group| text.get(group)) {
                Some(capture) => captures.push(capture),
                None => captures.push(ValueRef::Null),
            };
        }
        let (start, end) = (found.start, found.end);
        let passed = text.get(from.byte..start).unwrap_or_default().chars().count();
        let start = TextPosition { byte: start, character: from.character + passed };
        let document = DocumentBuf::new()
            .with("match", text.get(start.byte..end).unwrap_or_default())
            .with("idx", start.character as i32)
            .with("captures", &captures);
        Ok(Some(RegexMatch { start, end, document }))
    }
}
