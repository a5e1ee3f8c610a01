//! Operators of MongoDB's that need an engine we do not have: refused by name, never ignored.

use bunko_errors::{ErrorCode, Failure};

pub(super) type Refusal = (&'static str, ErrorCode, &'static str);

// Name, code and message. Where MongoDB itself refuses an operator for want of what it needs (a script engine), these are
// its words.

/// Those that stand in place of a field's name.
pub(super) const TOP_LEVEL: &[Refusal] = &[("$where", ErrorCode::BAD_VALUE, "no globalScriptEngine in $where parsing")];

/// The refusal of an operator of that name in place of a field's name, if it is one of these.
pub(crate) fn top_level(name: &str) -> Option<Failure> {
    TOP_LEVEL.iter().find(|refused| refused.0 == name).map(|&(_, code, message)| Failure::new(code, message))
}

/// The refusal of an operator of that name behind a field's name, if it stands elsewhere only.
pub(crate) fn on_field(name: &str) -> Option<Failure> {
    (name == "$where").then(|| Failure::bad_value("$where cannot be applied to a field"))
}

#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TOP_LEVEL.iter().map(|refused| refused.0)
}
