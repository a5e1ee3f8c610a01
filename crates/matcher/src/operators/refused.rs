//! Operators of MongoDB's that need an engine we do not have: refused by name, never ignored.

use crate::parse::Level;
use bunko_errors::{ErrorCode, Failure};

pub(super) type Refusal = (&'static str, ErrorCode, &'static str);

// Name, code and message. Where MongoDB itself refuses an operator for want of what it needs (a script engine, a text
// or geospatial index), these are its words.

/// Those that stand in place of a field's name.
pub(super) const TOP_LEVEL: &[Refusal] = &[
    ("$where", ErrorCode::BAD_VALUE, "no globalScriptEngine in $where parsing"),
    ("$text", ErrorCode::INDEX_NOT_FOUND, "text index required for $text query"),
];

fn named(name: &str) -> Option<Failure> {
    TOP_LEVEL.iter().find(|refused| refused.0 == name).map(|&(_, code, message)| Failure::new(code, message))
}

/// The refusal of an operator of that name in place of a field's name, if it is one of these.
pub(crate) fn top_level(name: &str, level: Level) -> Option<Failure> {
    if name == "$text" && level != Level::Document {
        return Some(Failure::bad_value(match level {
            Level::Validator => "$text is not allowed in this context",
            _ => "$text can only be applied to the top-level document",
        }));
    }
    named(name)
}

/// The refusal of an operator of that name behind a field's name, if it stands elsewhere only.
pub(crate) fn on_field(name: &str) -> Option<Failure> {
    (name == "$where").then(|| Failure::bad_value("$where cannot be applied to a field"))
}

#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TOP_LEVEL.iter().map(|refused| refused.0)
}
