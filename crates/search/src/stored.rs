//! The part of a document that `returnStoredSource` returns.

use crate::StoredSource;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};

impl StoredSource {
    /// The stored source of the embedded documents at `scope`; paths below `scope` become relative to it.
    pub(crate) fn below(&self, scope: &str) -> Self {
        let below = |paths: &[String]| {
            let strip = |path: &String| {
                let rest = path.strip_prefix(scope).and_then(|rest| rest.strip_prefix('.'));
                rest.unwrap_or(path).to_owned()
            };
            paths.iter().map(strip).collect()
        };
        match self {
            Self::Include(paths) => Self::Include(below(paths)),
            Self::Exclude(paths) => Self::Exclude(below(paths)),
            other => other.clone(),
        }
    }
}

/// The stored fields of a document, and `_id`; an empty document if nothing is stored.
pub(crate) fn shown(document: DocumentRef<'_>, source: &StoredSource) -> DocumentBuf {
    match source {
        StoredSource::Nothing => DocumentBuf::new(),
        StoredSource::All => document.to_owned(),
        StoredSource::Include(paths) => filtered(document, "", &|path| match relation(paths, path) {
            Relation::Named => Some(Kept::Whole),
            Relation::Above => Some(Kept::Part),
            Relation::None => (path == "_id").then_some(Kept::Whole),
        }),
        StoredSource::Exclude(paths) => filtered(document, "", &|path| match relation(paths, path) {
            Relation::Named => (path == "_id").then_some(Kept::Whole),
            Relation::Above => Some(Kept::Part),
            Relation::None => Some(Kept::Whole),
        }),
    }
}

/// The relation of a path to the named paths.
enum Relation {
    /// The path is a named path, or below one.
    Named,
    /// A named path is below it.
    Above,
    None,
}

fn relation(paths: &[String], path: &str) -> Relation {
    let is_inside = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'));
    if paths.iter().any(|named| named == path || is_inside(path, named)) {
        return Relation::Named;
    }
    if paths.iter().any(|named| is_inside(named, path)) { Relation::Above } else { Relation::None }
}

/// The stored part of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Whole,
    Part,
}

type Keeps<'k> = dyn Fn(&str) -> Option<Kept> + 'k;

fn filtered(document: DocumentRef<'_>, prefix: &str, keeps: &Keeps<'_>) -> DocumentBuf {
    let mut kept = DocumentBuf::new();
    for field in document {
        let path = if prefix.is_empty() { field.name.to_owned() } else { format!("{prefix}.{}", field.name) };
        match (keeps(&path), field.value) {
            (None, _) => {}
            (Some(Kept::Part), ValueRef::Document(inner)) => {
                kept.append(field.name, &filtered(inner, &path, keeps));
            }
            (Some(Kept::Part), ValueRef::Array(inner)) => {
                kept.append(field.name, &filtered_array(inner, &path, keeps));
            }
            (Some(_), value) => {
                kept.append(field.name, value);
            }
        }
    }
    kept
}

fn filtered_array(array: bunko_bson::ArrayRef<'_>, path: &str, keeps: &Keeps<'_>) -> ArrayBuf {
    let mut kept = ArrayBuf::new();
    for value in array.iter() {
        match value {
            ValueRef::Document(inner) => kept.push(&filtered(inner, path, keeps)),
            ValueRef::Array(inner) => kept.push(&filtered_array(inner, path, keeps)),
            other => kept.push(other),
        };
    }
    kept
}
