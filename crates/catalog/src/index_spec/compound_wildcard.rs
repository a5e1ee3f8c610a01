//! Restrictions of compound wildcard indexes: the wildcard's paths and the other fields must not overlap.
//!
//! Source: MongoDB manual, "Compound Wildcard Indexes", "Wildcard Index Restrictions".

use crate::key_pattern::is_true;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// The part of a key pattern that stands for all paths.
const ALL_PATHS: &str = "$**";

/// Checks the fields of a key pattern with a wildcard and other fields; any other pattern passes.
/// # Errors
/// 7246204 for a field that the wildcard's path covers. For a projection: 7246200 for overlapping paths, 7246211 for
/// included paths beside excluded ones, 7246208 for a field that is included, and 7246209 or 7246210 for a field that
/// is not excluded.
pub(super) fn check(spec: DocumentRef<'_>) -> Result<()> {
    let Some(ValueRef::Document(key)) = spec.get("key") else { return Ok(()) };
    let is_wildcard = |name: &str| name == ALL_PATHS || name.ends_with(".$**");
    let mut wildcards = key.iter().map(|field| field.name).filter(|name| is_wildcard(name));
    let (Some(wildcard), None) = (wildcards.next(), wildcards.next()) else { return Ok(()) };
    let others: Vec<&str> = key.iter().map(|field| field.name).filter(|name| !is_wildcard(name)).collect();
    if others.is_empty() || key.iter().any(|field| !field.value.is_number()) {
        return Ok(());
    }
    let root = wildcard.trim_end_matches(ALL_PATHS).trim_end_matches('.');
    if !root.is_empty() {
        return match others.iter().find(|other| overlap(other, root)) {
            None => Ok(()),
            Some(other) => refuse(7_246_204, &format!("the field '{other}' overlaps with '{wildcard}'")),
        };
    }
    match spec.get("wildcardProjection") {
        Some(ValueRef::Document(projection)) if !projection.is_empty() => check_projection(projection, others),
        _ => Ok(()),
    }
}

fn check_projection(projection: DocumentRef<'_>, others: Vec<&str>) -> Result<()> {
    let (mut included, mut excluded) = (Vec::new(), Vec::new());
    if !read(projection, "", &mut included, &mut excluded) {
        return Ok(());
    }
    let paths: Vec<&String> = included.iter().chain(&excluded).collect();
    for (number, path) in paths.iter().enumerate() {
        if let Some(before) = paths[..number].iter().find(|before| overlap(before, path)) {
            return refuse(7_246_200, &format!("the paths '{before}' and '{path}' of 'wildcardProjection' overlap"));
        }
    }
    // `_id` may be included or excluded in either form of projection.
    let has_others = |paths: &[String]| paths.iter().any(|path| path != "_id");
    match (has_others(&included), has_others(&excluded)) {
        (true, true) => refuse(7_246_211, "'wildcardProjection' must either include or exclude paths"),
        (true, false) => check_included(&included, &others),
        (false, false) if !included.is_empty() => check_included(&included, &others),
        (false, _) => check_excluded(excluded, others),
    }
}

fn check_included(included: &[String], others: &[&str]) -> Result<()> {
    match others.iter().find(|other| included.iter().any(|path| overlap(path, other))) {
        None => Ok(()),
        Some(other) => refuse(7_246_208, &format!("the field '{other}' is included by 'wildcardProjection'")),
    }
}

/// Checks that each field, or a path that leads to it, is excluded. Fields and paths are walked in order of their
/// names. A field that is not excluded fails with 7246209 if there is a later path, and with 7246210 if there is none.
fn check_excluded(mut excluded: Vec<String>, mut others: Vec<&str>) -> Result<()> {
    excluded.sort_unstable();
    others.sort_unstable();
    let mut paths = excluded.iter().peekable();
    for other in others {
        while paths.next_if(|path| path.as_str() < other && !is_within(other, path)).is_some() {}
        match paths.peek() {
            Some(path) if is_within(other, path) => {}
            Some(_) => return refuse(7_246_209, &format!("'wildcardProjection' must exclude the field '{other}'")),
            None => return refuse(7_246_210, &format!("'wildcardProjection' must exclude the field '{other}'")),
        }
    }
    Ok(())
}

/// Reads the paths of a projection. Returns false if the projection has anything but paths; parsing the specification
/// then refuses it.
fn read(projection: DocumentRef<'_>, above: &str, included: &mut Vec<String>, excluded: &mut Vec<String>) -> bool {
    projection.iter().all(|field| {
        let path = if above.is_empty() { field.name.to_owned() } else { format!("{above}.{}", field.name) };
        match field.value {
            ValueRef::Document(nested) => return read(nested, &path, included, excluded),
            value if is_true(value) => included.push(path),
            value if value.is_number() || matches!(value, ValueRef::Boolean(_)) => excluded.push(path),
            _ => return false,
        }
        true
    })
}

/// Whether `path` equals `other` or is below it.
fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn overlap(one: &str, other: &str) -> bool {
    is_within(one, other) || is_within(other, one)
}

fn refuse(code: i32, why: &str) -> Result<()> {
    Err(Failure::new(ErrorCode(code), format!("Not a valid compound wildcard index: {why}")))
}

#[cfg(test)]
mod tests {
    use crate::IndexSpec;
    use bunko_testkit::shell;

    fn code_of(key: &str, projection: &str) -> i32 {
        let projection =
            if projection.is_empty() { String::new() } else { format!(", wildcardProjection: {projection}") };
        let spec = format!("{{key: {key}, name: 'n'{projection}}}");
        let spec = shell::parse_document(&spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
        IndexSpec::parse_asked(spec.as_ref()).map_or_else(|failure| failure.code().0, |_| 0)
    }

    #[test]
    fn the_wildcard_and_the_other_fields_are_different_ones() {
        for (key, projection) in [
            ("{a: 1, 'b.$**': 1}", ""),
            ("{a: 1, 'b.$**': -1, c: 1}", ""),
            ("{a: 1, '$**': 1}", "{a: 0}"),
            ("{'$**': -1, a: 1, b: 1}", "{b: 0, a: 0}"),
            ("{'$**': 1, c: 1}", "{_id: 0, a: 1}"),
            ("{'$**': 1, c: 1}", "{_id: 1, a: 0, c: 0}"),
            ("{'$**': 1, c: 1}", "{_id: 1}"),
            ("{'$**': 1, d: 1}", "{a: {b: 1, c: 1}}"),
            ("{_id: 1, '$**': 1}", "{_id: 0}"),
            ("{_id: 1, 'a.b': 1, '$**': 1}", "{_id: 0, a: 0}"),
            ("{b: 1, '$**': 1}", "{'a-x': 0, a: 0, b: 0}"),
        ] {
            assert_eq!(code_of(key, projection), 0, "{key} {projection}");
        }
        for (key, projection, code) in [
            ("{a: 1, '$**': 1}", "", 67),
            ("{a: 1, 'a.$**': 1}", "", 7_246_204),
            ("{'a.b.c': 1, 'a.b.$**': 1}", "", 7_246_204),
            ("{a: 1, 'a.b.$**': 1}", "", 7_246_204),
            ("{'a.$**': 1, 'b.$**': 1}", "", 7_246_201),
            ("{'a.$**': 1, b: 'text'}", "", 67),
            ("{'$**': 1, c: 1}", "{'a.b': 1, 'a.b.c': 1}", 7_246_200),
            ("{'$**': 1, c: 1}", "{_id: 0, a: 0, b: 1}", 7_246_211),
            ("{a: 1, '$**': 1}", "{a: 1}", 7_246_208),
            ("{_id: 1, '$**': 1}", "{_id: 1, a: 1}", 7_246_208),
            ("{'$**': 1, _id: 1, e: 1}", "{_id: 1, e: 0}", 7_246_209),
            ("{a: 1, _id: 1, '$**': 1}", "{a: 0}", 7_246_209),
            ("{a: 1, b: 1, '$**': 1}", "{b: 0}", 7_246_209),
            ("{a: 1, '$**': 1}", "{_id: 0, 'a.b': 0}", 7_246_209),
            ("{a: 1, '$**': 1}", "{_id: 0}", 7_246_210),
            ("{_id: 1, '$**': 1, a: 1}", "{_id: 0}", 7_246_210),
            ("{b: 1, '$**': 1}", "{_id: 0, a: 0}", 7_246_210),
            ("{'$**': 1, 'e.c': 1}", "{_id: 1, 'e.b': 0}", 7_246_210),
            ("{a: 1, '$**': 1}", "{a: 'text'}", 51271),
            ("{a: 'wildcard'}", "", 7_246_202),
            ("{'$**': 'wildcard'}", "", 67),
        ] {
            assert_eq!(code_of(key, projection), code, "{key} {projection}");
        }
    }
}
