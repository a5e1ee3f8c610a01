//! Operators of MongoDB's that need an engine we do not have: refused by name, never ignored.

use bunko_errors::{ErrorCode, Failure};

/// Name, code and message. Where MongoDB itself refuses an operator for want of what it needs (a script engine, a
/// text or geospatial index), these are its words.
const REFUSED: &[(&str, ErrorCode, &str)] = &[
    ("$where", ErrorCode::BAD_VALUE, "no globalScriptEngine in $where parsing"),
    ("$text", ErrorCode::INDEX_NOT_FOUND, "text index required for $text query"),
    ("$near", ErrorCode::NO_QUERY_EXECUTION_PLANS, "unable to find index for $geoNear query ($near)"),
    ("$nearSphere", ErrorCode::NO_QUERY_EXECUTION_PLANS, "unable to find index for $geoNear query ($nearSphere)"),
    ("$geoNear", ErrorCode::NO_QUERY_EXECUTION_PLANS, "unable to find index for $geoNear query"),
    ("$maxDistance", ErrorCode::BAD_VALUE, "$maxDistance is not supported: there are no geospatial queries"),
    ("$minDistance", ErrorCode::BAD_VALUE, "$minDistance is not supported: there are no geospatial queries"),
    ("$geoWithin", ErrorCode::BAD_VALUE, "$geoWithin is not supported: there are no geospatial queries"),
    ("$within", ErrorCode::BAD_VALUE, "$within is not supported: there are no geospatial queries"),
    ("$geoIntersects", ErrorCode::BAD_VALUE, "$geoIntersects is not supported: there are no geospatial queries"),
    ("$jsonSchema", ErrorCode::BAD_VALUE, "$jsonSchema is not supported"),
    ("$sampleRate", ErrorCode::BAD_VALUE, "$sampleRate is not supported"),
];

/// The refusal of an operator of that name, if it is one of these.
pub(crate) fn failure(name: &str) -> Option<Failure> {
    REFUSED.iter().find(|refused| refused.0 == name).map(|&(_, code, message)| Failure::new(code, message))
}

#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    REFUSED.iter().map(|refused| refused.0)
}
