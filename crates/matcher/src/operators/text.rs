//! `$text`: text search.

use super::TopLevelOperator;
use crate::expression::Expression;
use crate::operands::TextSearch;
use crate::parser::{FilterUse, Level, Parser};
use bunko_bson::{StringUse, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_text::{CaseRule, DiacriticRule};
use std::sync::Arc;

pub(crate) const TEXT: TopLevelOperator = TopLevelOperator { name: "$text", strings: StringUse::AsBytes, parse };

fn parse(parser: &Parser<'_>, value: ValueRef<'_>) -> Result<Expression> {
    if parser.level == Level::Element {
        return Err(Failure::bad_value("$text can only be applied to the top-level document"));
    }
    if parser.place == FilterUse::Elsewhere || parser.level == Level::Validator {
        return Err(Failure::bad_value("$text is not allowed in this context"));
    }
    let ValueRef::Document(operand) = value else { return Err(Failure::bad_value("$text expects an object")) };
    let (mut search, mut language) = (None, None);
    let (mut case, mut diacritics) = (CaseRule::Folded, DiacriticRule::Stripped);
    for field in operand {
        match field.name {
            "$search" => search = Some(string(field.name, field.value)?),
            // An empty language means the index's default.
            "$language" => language = Some(string(field.name, field.value)?).filter(|name| !name.is_empty()),
            "$caseSensitive" if truth(field.name, field.value)? => case = CaseRule::Kept,
            "$diacriticSensitive" if truth(field.name, field.value)? => diacritics = DiacriticRule::Kept,
            "$caseSensitive" | "$diacriticSensitive" => {}
            _ => return Err(Failure::bad_value("extra fields in $text")),
        }
    }
    let Some(search) = search else {
        return Err(Failure::new(ErrorCode::NO_SUCH_KEY, "Missing expected field \"$search\""));
    };
    Ok(Expression::Text(Arc::new(TextSearch::new(search, language, case, diacritics))))
}

fn string(name: &str, value: ValueRef<'_>) -> Result<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong_type(name, "string", value))
}

fn truth(name: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Boolean(truth) => Ok(truth),
        value => number::as_f64(value)
            .map(|number| number != 0.0)
            .ok_or_else(|| wrong_type(name, "boolean or number", value)),
    }
}

fn wrong_type(name: &str, expected: &str, value: ValueRef<'_>) -> Failure {
    let found = value.kind().alias();
    Failure::type_mismatch(format!("\"{name}\" had the wrong type. Expected {expected}, found {found}"))
}
