//! `$regex` with `$options`, and regex literals.

use super::FieldOperator;
use crate::expression::{Condition, Expression};
use crate::operands::Regex;
use crate::parser::Operand;
use crate::path::Path;
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

pub(crate) const REGEX: FieldOperator =
    FieldOperator { name: "$regex", strings: StringUse::AsBytes, parse: |_, operand| parse(operand) };

/// `$regex` reads the options; this only checks that there is a `$regex`.
pub(crate) const OPTIONS: FieldOperator = FieldOperator {
    name: "$options",
    strings: StringUse::AsBytes,
    parse: |_, operand| match operand.siblings.get("$regex") {
        Some(_) => Ok(Expression::And(Vec::new())),
        None => Err(Failure::bad_value("$options needs a $regex")),
    },
};

/// A condition that a string at the path matches.
pub(crate) fn expression(path: &Path, pattern: &str, options: &str) -> Result<Expression> {
    Ok(Condition::Regex(Regex::new(pattern, options)?).at(path))
}

/// Whether a non-empty `$options` comes before `$regex`.
fn options_come_first(operand: &Operand<'_>) -> bool {
    let first = operand.siblings.iter().find(|field| matches!(field.name, "$regex" | "$options"));
    first.is_some_and(|field| field.name == OPTIONS.name)
}

fn parse(operand: &Operand<'_>) -> Result<Expression> {
    let given = match operand.siblings.get("$options") {
        None => None,
        Some(ValueRef::String(options)) => Some(options),
        Some(_) => return Err(Failure::bad_value("$options has to be a string")),
    };
    let (pattern, options) = match operand.value {
        ValueRef::String(pattern) => (pattern, given.unwrap_or("")),
        ValueRef::Regex { pattern, options: "" } => (pattern, given.unwrap_or("")),
        ValueRef::Regex { pattern, options } => match given {
            None => (pattern, options),
            Some(_) if !options_come_first(operand) => {
                return Err(Failure::new(ErrorCode(51075), "options set in both $regex and $options"));
            }
            Some("") => (pattern, options),
            Some(_) => return Err(Failure::new(ErrorCode(51074), "options set in both $options and $regex")),
        },
        _ => return Err(Failure::bad_value("$regex has to be a string")),
    };
    for (text, what) in [(pattern, "Regular expression"), (options, "Regular expression options string")] {
        if text.contains('\0') {
            return Err(Failure::bad_value(format!("{what} cannot contain an embedded null byte")));
        }
    }
    expression(operand.path, pattern, options)
}
