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
    ("$sampleRate", ErrorCode::BAD_VALUE, "$sampleRate is not supported"),
];

/// Those that stand behind one.
pub(super) const ON_FIELD: &[Refusal] = &[
    ("$near", ErrorCode::NO_QUERY_EXECUTION_PLANS, "unable to find index for $geoNear query ($near)"),
    ("$nearSphere", ErrorCode::NO_QUERY_EXECUTION_PLANS, "unable to find index for $geoNear query ($nearSphere)"),
    ("$geoNear", ErrorCode::NO_QUERY_EXECUTION_PLANS, "unable to find index for $geoNear query"),
    ("$maxDistance", ErrorCode::BAD_VALUE, "$maxDistance is not supported: there are no geospatial queries"),
    ("$minDistance", ErrorCode::BAD_VALUE, "$minDistance is not supported: there are no geospatial queries"),
    ("$geoWithin", ErrorCode::BAD_VALUE, "$geoWithin is not supported: there are no geospatial queries"),
    ("$within", ErrorCode::BAD_VALUE, "$within is not supported: there are no geospatial queries"),
    ("$geoIntersects", ErrorCode::BAD_VALUE, "$geoIntersects is not supported: there are no geospatial queries"),
];

fn named(refusals: &[Refusal], name: &str) -> Option<Failure> {
    refusals.iter().find(|refused| refused.0 == name).map(|&(_, code, message)| Failure::new(code, message))
}

/// The refusal of an operator of that name in place of a field's name, if it is one of these.
pub(crate) fn top_level(name: &str, level: Level) -> Option<Failure> {
    if name == "$text" && level == Level::Element {
        return Some(Failure::bad_value("$text can only be applied to the top-level document"));
    }
    named(TOP_LEVEL, name)
}

/// The refusal of an operator of that name behind a field's name, if it is one of these.
pub(crate) fn on_field(name: &str) -> Option<Failure> {
    if name == "$where" {
        return Some(Failure::bad_value("$where cannot be applied to a field"));
    }
    named(ON_FIELD, name)
}

#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TOP_LEVEL.iter().chain(ON_FIELD).map(|refused| refused.0)
}
