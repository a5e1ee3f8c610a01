//! Scripts in expressions and accumulators: how their texts are found.

use crate::{Expression, ParseScope};
use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_javascript::Function;

/// What is wrong with a script's text.
pub(crate) struct Refusals {
    /// It is no constant.
    pub(crate) not_constant: (i32, String),
    /// It is neither a string nor code.
    pub(crate) no_text: (i32, String),
}

/// Reads a constant text as a script.
/// # Errors
/// Those given; 4660800 where no script may stand; those of [`bunko_javascript::Scripts::admit`].
pub(crate) fn parse(operator: &str, value: ValueRef<'_>, refusals: Refusals, scope: &ParseScope) -> Result<Function> {
    let refuse = |(code, message): (i32, String)| Failure::new(ErrorCode(code), message);
    let Some(scripts) = scope.scripts() else {
        let message = format!("{operator} cannot be used inside a validator.");
        return Err(Failure::new(ErrorCode(4_660_800), message));
    };
    let expression = Expression::parse(value, scope)?;
    // As on MongoDB: the scripts of accumulators may be made of variables, the body of `$function` may not.
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
/// The code given, unless it is `js`.
pub(crate) fn check_language(language: ValueRef<'_>, code: i32) -> Result<()> {
    if language.as_str() == Some("js") {
        return Ok(());
    }
    Err(Failure::new(ErrorCode(code), "Currently the only supported language specifier is 'js'."))
}
