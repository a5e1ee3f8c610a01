//! Scripts in expressions and accumulators: reading their texts.

use crate::{Expression, ParseScope};
use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_javascript::Function;

/// The errors about a script's text.
pub(crate) struct Refusals {
    /// The text is not constant.
    pub(crate) not_constant: (i32, String),
    /// The text is neither a string nor code.
    pub(crate) no_text: (i32, String),
}

/// Reads a constant text as a script.
/// # Errors
/// The given refusals; 4660800 where scripts are not allowed; errors of [`bunko_javascript::Scripts::admit`].
pub(crate) fn parse(operator: &str, value: ValueRef<'_>, refusals: Refusals, scope: &ParseScope) -> Result<Function> {
    let refuse = |(code, message): (i32, String)| Failure::new(ErrorCode(code), message);
    let Some(scripts) = scope.scripts() else {
        let message = format!("{operator} cannot be used inside a validator.");
        return Err(Failure::new(ErrorCode(4_660_800), message));
    };
    let expression = Expression::parse(value, scope)?;
    // As on MongoDB: scripts of accumulators may be computed from variables, the body of `$function` may not.
    let constant = match operator {
        "$function" => expression.as_literal().map(ValueRef::to_value),
        _ => expression.constant_value(scope)?,
    };
    let Some(constant) = constant else { return Err(refuse(refusals.not_constant)) };
    let Some(text) = Function::text_of(constant.as_ref()) else { return Err(refuse(refusals.no_text)) };
    scripts.admit()?;
    Ok(scripts.function(text))
}

/// Checks `lang`.
/// # Errors
/// The given code, unless the language is `js`.
pub(crate) fn check_language(language: ValueRef<'_>, code: i32) -> Result<()> {
    if language.as_str() == Some("js") {
        return Ok(());
    }
    Err(Failure::new(ErrorCode(code), "Currently the only supported language specifier is 'js'."))
}
