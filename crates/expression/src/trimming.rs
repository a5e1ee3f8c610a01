//! Trimming, for `$trim`, `$ltrim` and `$rtrim`.

use crate::call::Call;
use crate::printed::printed;
use crate::variables::EvaluationContext;
use crate::{Evaluated, made};
use bunko_bson::ValueRef;
use bunko_errors::Result;

/// The ends of the text to trim.
#[derive(Clone, Copy)]
pub(crate) enum Ends {
    Start,
    End,
    Both,
}

/// The characters trimmed by default, sorted.
/// Source: MongoDB manual, "$trim", "Whitespace Characters".
const WHITE_SPACE: &[char] = &[
    '\0', '\t', '\n', '\u{b}', '\u{c}', '\r', ' ', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}', '\u{2002}',
    '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}', '\u{200a}',
];

/// Evaluates an operator whose arguments are the text and, optionally, the characters.
pub(crate) fn trimmed<'a>(call: &'a Call, context: &EvaluationContext<'a>, ends: Ends) -> Result<Evaluated<'a>> {
    let Some(text) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    let Some(input) = text.get().and_then(ValueRef::as_str) else {
        let (found, kind) = (printed(&text), text.type_name());
        return Err(
            call.failure(50699, &format!(" requires its input to be a string, got {found} (of type {kind}) instead."))
        );
    };
    let given = match call.optional(1, context)? {
        None => None,
        Some(characters) if characters.is_nullish() => return Ok(Evaluated::null()),
        Some(characters) => match characters.get() {
            Some(ValueRef::String(characters)) => {
                context.operation().work(made::text_steps(characters))?;
                let mut sorted = context.operation().sort_by(characters.chars().collect(), char::cmp)?;
                sorted.dedup();
                Some(sorted)
            }
            _ => {
                let (found, kind) = (printed(&characters), characters.type_name());
                let message = format!(" requires 'chars' to be a string, got {found} (of type {kind}) instead.");
                return Err(call.failure(50700, &message));
            }
        },
    };
    let cut = given.as_deref().unwrap_or(WHITE_SPACE);
    let trimmed = match ends {
        Ends::Start => cut_start(input, cut, context)?,
        Ends::End => cut_end(input, cut, context)?,
        Ends::Both => cut_end(cut_start(input, cut, context)?, cut, context)?,
    };
    made::string(trimmed.to_owned(), context)
}

fn cut_start<'v>(text: &'v str, cut: &[char], context: &EvaluationContext<'_>) -> Result<&'v str> {
    for (byte, character) in text.char_indices() {
        context.operation().work(1)?;
        if cut.binary_search(&character).is_err() {
            return Ok(&text[byte..]);
        }
    }
    Ok("")
}

fn cut_end<'v>(text: &'v str, cut: &[char], context: &EvaluationContext<'_>) -> Result<&'v str> {
    for (byte, character) in text.char_indices().rev() {
        context.operation().work(1)?;
        if cut.binary_search(&character).is_err() {
            return Ok(&text[..byte + character.len_utf8()]);
        }
    }
    Ok("")
}
