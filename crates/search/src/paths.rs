//! The paths of an operator: one, several, or a wildcard, each with one of its analyses.

use crate::unit::{Field, Unit};
use crate::{Reader, StringField};
use bunko_bson::ValueRef;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::collections::HashSet;

/// A path of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub name: String,
    /// Whether `*` in the name matches any text.
    pub is_wildcard: bool,
    /// The name of an alternative analysis; `None` for the field's own.
    pub multi: Option<String>,
}

/// The texts of one path under one analysis.
pub(crate) struct TextField<'s> {
    /// The key of the statistics: the path and the analysis.
    pub key: String,
    pub path: String,
    pub string: &'s StringField,
}

impl Path {
    pub fn exactly(name: &str) -> Self {
        Self { name: name.to_owned(), is_wildcard: false, multi: None }
    }

    /// Whether the path, or its wildcard, matches a path of a document.
    pub fn takes(&self, path: &str) -> bool {
        if self.is_wildcard { takes(self.name.as_bytes(), path.as_bytes()) } else { self.name == path }
    }
}

/// Whether a text matches a pattern, in which `*` matches any text.
fn takes(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut begun, mut star) = (0, 0, None);
    let mut pattern_at = 0;
    while at < text.len() {
        if pattern.get(pattern_at) == Some(&b'*') {
            star = Some(pattern_at);
            begun = at;
            pattern_at += 1;
        } else if pattern.get(pattern_at) == Some(&text[at]) {
            pattern_at += 1;
            at += 1;
        } else if let Some(star) = star {
            pattern_at = star + 1;
            begun += 1;
            at = begun;
        } else {
            return false;
        }
    }
    pattern[pattern_at..].iter().all(|byte| *byte == b'*')
}

/// Parses all forms of `path`.
/// # Errors
/// If it is malformed or missing.
pub(crate) fn parse(reader: &Reader<'_>) -> Result<Vec<Path>> {
    let value = reader.required(reader.value("path"), "path")?;
    let paths = match value {
        ValueRef::Array(array) => array.iter().map(|value| path(reader, value)).collect::<Result<Vec<_>>>()?,
        other => vec![path(reader, other)?],
    };
    if paths.is_empty() {
        return Err(reader.wrong("path", "cannot be empty"));
    }
    Ok(paths)
}

fn path(reader: &Reader<'_>, value: ValueRef<'_>) -> Result<Path> {
    match value {
        ValueRef::String(name) => Ok(Path::exactly(name)),
        ValueRef::Document(document) => {
            let reader = Reader::new(document, reader.at("path"), reader.refusal());
            let (value, wildcard, multi) =
                (reader.string("value")?, reader.string("wildcard")?, reader.string("multi")?);
            reader.done()?;
            let (name, is_wildcard) = match (value, wildcard) {
                (Some(name), None) => (name, false),
                (None, Some(name)) => (name, true),
                _ => return Err(reader.failure("must have one of [value, wildcard]")),
            };
            if is_wildcard && name.contains("**") {
                return Err(reader.wrong("wildcard", "cannot contain \"**\""));
            }
            Ok(Path { name: name.to_owned(), is_wildcard, multi: multi.map(str::to_owned) })
        }
        _ => Err(reader.wrong("path", "must be a string, a document, or an array of them")),
    }
}

/// The distinct text fields of a unit that the paths match.
/// # Errors
/// Errors of counting work: there may be very many fields and paths.
pub(crate) fn text_fields<'u>(
    unit: &'u Unit<'_>,
    paths: &[Path],
    operation: &OperationContext,
) -> Result<Vec<TextField<'u>>> {
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    let fields = unit.text_paths();
    operation.work(unit.fields.len() / 16)?;
    for path in paths {
        operation.work(1 + fields.len() / 16)?;
        for field in fields.iter().filter(|field| path.takes(&field.path)) {
            for text in of_field(field, path.multi.as_deref(), path.is_wildcard) {
                operation.work(1)?;
                // A single path matches each text field once.
                if paths.len() == 1 || known.insert(text.key.clone()) {
                    found.push(text);
                }
            }
        }
    }
    Ok(found)
}

/// The text fields of a field: with the alternative analysis `multi`, with its own, or with all.
pub(crate) fn of_field<'u>(field: &'u Field<'_>, multi: Option<&str>, all: bool) -> Vec<TextField<'u>> {
    let Some(string) = field.types.string() else { return Vec::new() };
    let whole = |key: String, string| TextField { key, path: field.path.clone(), string };
    let with = |name: &str| format!("{}\0{name}", field.path);
    match multi {
        Some(name) => string.multi.get(name).map(|string| whole(with(name), string)).into_iter().collect(),
        None if all => {
            let further = string.multi.iter().map(|(name, string)| whole(with(name), string));
            std::iter::once(whole(field.path.clone(), string)).chain(further).collect()
        }
        None => vec![whole(field.path.clone(), string)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, path, expected) in [
            ("*", "a.b", true),
            ("a.*", "a.b.c", true),
            ("a.*", "ab", false),
            ("*.c", "a.b.c", true),
            ("a*b*c", "aXbXbc", true),
        ] {
            assert_eq!(takes(pattern.as_bytes(), path.as_bytes()), expected, "{pattern} {path}");
        }
    }
}
