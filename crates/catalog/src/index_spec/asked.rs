//! Checks of a client's index specification beyond those of any specification. Indexes of an earlier version may fail
//! them, and are still read at each start.

use super::options::check_id_options;
use super::parse::is_on_id;
use super::{IndexSpec, compound_wildcard};
use crate::key_pattern::cannot_create;
use crate::kinds;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef, order};
use bunko_errors::{ErrorCode, Failure, Result};

impl IndexSpec {
    /// Parses a client's index specification.
    /// # Errors
    /// As [`Self::parse`]. `CannotCreateIndex` for a name with a NUL, for `_fts` outside a text index, and for
    /// `prepareUnique` together with `unique`. For `wildcardProjection`: 51270 for an empty document, 51271 for an
    /// operator, 31249 and 31250 for a path through another one, 31324 for a positional path, 16410 for another name
    /// with `$`, and 40352, 40353 and 15998 for empty names. For compound wildcard indexes: codes from 7246200 to
    /// 7246211.
    pub fn parse_asked(spec: DocumentRef<'_>) -> Result<Self> {
        compound_wildcard::check(spec)?;
        let parsed = Self::parse(spec)?;
        let key = spec.get("key").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
        if is_misdirected_id(key) {
            check_id_options(spec)?;
            let key = ValueText(ValueRef::Document(key));
            let message = format!("The field 'key' for an _id index must be {{_id: 1}}, but got {key}");
            return Err(Failure::bad_value(message));
        }
        if parsed.kind.name() != kinds::TEXT_INDEX && key.get(kinds::TEXT_TERMS).is_some() {
            let message = format!("the field '{}' can only be in the key of a text index", kinds::TEXT_TERMS);
            return Err(cannot_create(message));
        }
        if parsed.is_unique && parsed.prepares_unique {
            return Err(cannot_create(format!(
                "an index that is unique cannot prepare to become so: 'unique' and 'prepareUnique' are both set in {}",
                ValueText(ValueRef::Document(spec))
            )));
        }
        if parsed.name.contains('\0') {
            return Err(cannot_create("index name cannot contain NUL bytes".to_owned()));
        }
        if let Some(ValueRef::Document(projection)) = spec.get("wildcardProjection") {
            let mut paths = Vec::new();
            check_projection(projection, "", &mut paths)?;
            check_collisions(&paths)?;
        }
        Ok(parsed)
    }
}

/// Whether the key would be that of the `_id` index if it were ascending and without a fraction.
fn is_misdirected_id(key: DocumentRef<'_>) -> bool {
    let is_exact = key.first().is_some_and(|field| order::equal(field.value, ValueRef::Int32(1)));
    is_on_id(key, -1.0) || is_on_id(key, 1.0) && !is_exact
}

fn check_projection(projection: DocumentRef<'_>, above: &str, paths: &mut Vec<String>) -> Result<()> {
    for field in projection {
        check_path(field.name)?;
        let path = if above.is_empty() { field.name.to_owned() } else { format!("{above}.{}", field.name) };
        match field.value {
            ValueRef::Document(nested) => match nested.iter().next() {
                None => {
                    let message =
                        format!("An empty sub-projection is not a valid value. Found empty object at path '{path}'");
                    return Err(Failure::new(ErrorCode(51270), message));
                }
                Some(first) if first.name.starts_with('$') => {
                    let message = format!(
                        "Bad projection specification, cannot use computed fields when parsing a spec in Basic mode: \
                         {path} has {}",
                        first.name
                    );
                    return Err(Failure::new(ErrorCode(51271), message));
                }
                Some(_) => check_projection(nested, &path, paths)?,
            },
            _ => paths.push(path),
        }
    }
    Ok(())
}

fn check_path(path: &str) -> Result<()> {
    let refused = |code: i32, message: &str| Err(Failure::new(ErrorCode(code), format!("{message}: '{path}'")));
    if path.is_empty() {
        return refused(40352, "FieldPath cannot be constructed with empty string");
    }
    if path.ends_with(".$") {
        return refused(31324, "Cannot use positional projection in a wildcard projection");
    }
    if path.ends_with('.') {
        return refused(40353, "FieldPath must not end with a '.'");
    }
    if path.split('.').any(str::is_empty) {
        return refused(15998, "FieldPath field names may not be empty strings");
    }
    if path.split('.').any(|name| name.starts_with('$')) {
        return refused(16410, "FieldPath field names may not start with '$'");
    }
    Ok(())
}

/// Checks that no path equals another one or leads through it.
fn check_collisions(paths: &[String]) -> Result<()> {
    let is_through =
        |path: &str, other: &str| path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    for (number, path) in paths.iter().enumerate() {
        for before in &paths[..number] {
            let code = match (is_through(path, before), is_through(before, path)) {
                (true, _) => 31249,
                (false, true) => 31250,
                (false, false) => continue,
            };
            return Err(Failure::new(ErrorCode(code), format!("Path collision at {path} remaining portion {before}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn code_of(projection: &str) -> i32 {
        let spec = format!("{{key: {{'$**': 1}}, name: 'n', wildcardProjection: {projection}}}");
        let spec = shell::parse_document(&spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
        IndexSpec::parse_asked(spec.as_ref()).map_or_else(|failure| failure.code().0, |_| 0)
    }

    #[test]
    fn projections_are_of_paths_alone() {
        for right in ["{a: 1}", "{a: {b: 1, c: true}, 'd.e': 1}", "{a: 0, b: 0}", "{_id: 1, a: 0}", "{ab: 1, a: 1}"] {
            assert_eq!(code_of(right), 0, "{right}");
        }
        for (wrong, code) in [
            ("{a: {$slice: 1}}", 51271),
            ("{a: {b: {$elemMatch: {c: 1}}}}", 51271),
            ("{a: {$meta: 'textScore'}}", 51271),
            ("{a: {}}", 51271),
            ("{a: 'text'}", 51271),
            ("{a: 1, 'a.b': 1}", 31249),
            ("{'a.b': 1, a: 1}", 31250),
            ("{a: {b: 1}, 'a.b': 1}", 31249),
            ("{'a.$': 1}", 31324),
            ("{'$a': 1}", 16410),
            ("{'a.$b': 1}", 16410),
            ("{'a.': 1}", 40353),
            ("{'a..b': 1}", 15998),
            ("{'': 1}", 40352),
        ] {
            assert_eq!(code_of(wrong), code, "{wrong}");
        }
    }
}
