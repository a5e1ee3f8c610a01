//! The values of all paths, or of those below one: `{'$**': 1}`, `{'a.b.$**': -1}`.
//!
//! A key is a path and a value. Positions in arrays are no part of paths; an array inside another is one value. Documents have
//! no keys but those of their fields, unless they are empty. Where `wildcardProjection` does not say otherwise, `_id` is left
//! out.
//! Source: MongoDB manual, "Wildcard Indexes".

use super::{Answers, IndexKind, KeyForm, KindEntry, ReadKind};
use crate::index_keys::KeySet;
use crate::key_pattern::{cannot_create, is_true};
use crate::{IndexField, IndexSpec, Multikey};
use bunko_bson::key_string::{self, Direction};
use bunko_bson::{ArrayRef, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

pub(super) const ENTRY: KindEntry = KindEntry { name: "wildcard", options: &["wildcardProjection"], read };

/// What stands for all paths in a key pattern.
pub(super) const ALL_PATHS: &str = "$**";
/// Most paths in a projection.
const PROJECTED_PATHS_MAX: usize = 1_000;

#[derive(Debug)]
struct Wildcard {
    paths: Paths,
}

/// Which paths are indexed.
#[derive(Debug)]
enum Paths {
    /// These, and what is below them.
    Within(Vec<String>),
    /// All but these, and what is below them.
    Without(Vec<String>),
}

fn read(key: DocumentRef<'_>, spec: DocumentRef<'_>) -> Result<ReadKind> {
    let mut fields = key.iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        return Err(cannot_create("compound wildcard indexes are not supported".to_owned()));
    };
    if field.value.as_str().is_some() {
        return Err(cannot_create(
            "A numeric value in a $** index key pattern must be positive or negative.".to_owned(),
        ));
    }
    for option in ["sparse", "unique"] {
        if spec.get(option).is_some_and(is_true) {
            return Err(cannot_create(format!("Index type 'wildcard' does not support the {option} option")));
        }
    }
    if spec.get("expireAfterSeconds").is_some() {
        return Err(cannot_create("Index type 'wildcard' cannot be a TTL index".to_owned()));
    }
    let root = field.name.strip_suffix(ALL_PATHS).filter(|root| root.is_empty() || root.ends_with('.'));
    let Some(root) = root.map(|root| root.trim_end_matches('.')).filter(|root| !root.contains(ALL_PATHS)) else {
        return Err(cannot_create(format!("wildcard indexes end with '$**', but got '{}'", field.name)));
    };
    let paths = match spec.get("wildcardProjection") {
        None if root.is_empty() => Paths::Without(vec!["_id".to_owned()]),
        None => Paths::Within(vec![root.to_owned()]),
        Some(ValueRef::Document(projection)) => read_projection(projection, root)?,
        Some(other) => {
            return Err(Failure::type_mismatch(format!(
                "The field 'wildcardProjection' must be a non-empty object, but got {}",
                other.kind().alias()
            )));
        }
    };
    let is_descending = number::as_f64(field.value).is_some_and(|number| number < 0.0);
    let direction = if is_descending { Direction::Descending } else { Direction::Ascending };
    Ok(ReadKind {
        kind: Arc::new(Wildcard { paths }),
        fields: vec![
            IndexField { path: "$_path".to_owned(), direction: Direction::Ascending, form: KeyForm::Value },
            IndexField { path: field.name.to_owned(), direction, form: KeyForm::Value },
        ],
        key: None,
        options: spec
            .iter()
            .filter(|option| option.name == "wildcardProjection")
            .fold(bunko_bson::DocumentBuf::new(), |options, option| options.with(option.name, option.value)),
    })
}

fn read_projection(projection: DocumentRef<'_>, root: &str) -> Result<Paths> {
    if !root.is_empty() {
        return Err(Failure::failed_to_parse(
            "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}",
        ));
    }
    if projection.is_empty() {
        return Err(Failure::failed_to_parse("The 'wildcardProjection' field can't be an empty object"));
    }
    let (mut included, mut excluded) = (Vec::new(), Vec::new());
    read_paths(projection, "", &mut included, &mut excluded)?;
    // `_id` may be said beside either.
    let is_id = |path: &String| path == "_id";
    let (includes_id, excludes_id) = (included.iter().any(is_id), excluded.iter().any(is_id));
    let includes_others = included.iter().any(|path| !is_id(path));
    let excludes_others = excluded.iter().any(|path| !is_id(path));
    match (includes_others, excludes_others) {
        (true, true) => Err(Failure::new(
            ErrorCode(31254),
            format!("Cannot do exclusion on field {} in inclusion projection", excluded.join(", ")),
        )),
        (true, false) => Ok(Paths::Within(included)),
        (false, true) => {
            if !includes_id && !excludes_id {
                excluded.push("_id".to_owned());
            }
            Ok(Paths::Without(excluded))
        }
        (false, false) if includes_id => Ok(Paths::Within(included)),
        (false, false) => Ok(Paths::Without(excluded)),
    }
}

fn read_paths(
    projection: DocumentRef<'_>,
    prefix: &str,
    included: &mut Vec<String>,
    excluded: &mut Vec<String>,
) -> Result<()> {
    for field in projection {
        let path = below(prefix, field.name);
        match field.value {
            ValueRef::Document(nested) if !nested.is_empty() => read_paths(nested, &path, included, excluded)?,
            value if value.is_number() || matches!(value, ValueRef::Boolean(_)) => {
                if is_true(value) {
                    included.push(path);
                } else {
                    excluded.push(path);
                }
            }
            value => {
                return Err(Failure::new(
                    ErrorCode(51271),
                    format!(
                        "Bad projection specification, cannot use computed fields when parsing a spec in Basic mode: \
                         {path} is {}",
                        value.kind().alias()
                    ),
                ));
            }
        }
        if included.len() + excluded.len() > PROJECTED_PATHS_MAX {
            return Err(cannot_create(format!("a 'wildcardProjection' has at most {PROJECTED_PATHS_MAX} paths")));
        }
    }
    Ok(())
}

fn below(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// Whether a path is another one or leads through it.
fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Paths {
    fn has(&self, path: &str) -> bool {
        match self {
            Self::Within(paths) => paths.iter().any(|own| is_within(path, own)),
            Self::Without(paths) => !paths.iter().any(|other| is_within(path, other)),
        }
    }

    /// Whether the path, or one below it, is indexed.
    fn leads_through(&self, path: &str) -> bool {
        self.has(path) || matches!(self, Self::Within(paths) if paths.iter().any(|own| is_within(own, path)))
    }
}

impl IndexKind for Wildcard {
    fn name(&self) -> &'static str {
        "wildcard"
    }

    fn keys(&self, index: &IndexSpec, document: DocumentRef<'_>, keys: &mut KeySet<'_>) -> Result<Multikey> {
        let mut walk = Walk { paths: &self.paths, index, keys, multikey: Multikey::default() };
        walk.document(document, "")?;
        Ok(walk.multikey)
    }

    fn answers(&self) -> Answers {
        Answers::ByPath
    }

    fn covers(&self, path: &str) -> bool {
        self.paths.has(path)
    }
}

struct Walk<'w, 'k> {
    paths: &'w Paths,
    index: &'w IndexSpec,
    keys: &'w mut KeySet<'k>,
    multikey: Multikey,
}

impl Walk<'_, '_> {
    fn document(&mut self, document: DocumentRef<'_>, prefix: &str) -> Result<()> {
        for field in document {
            // No path leads to a name with a dot in it.
            if field.name.contains('.') {
                continue;
            }
            let path = below(prefix, field.name);
            if self.paths.leads_through(&path) {
                self.value(field.value, &path)?;
            }
        }
        Ok(())
    }

    fn value(&mut self, value: ValueRef<'_>, path: &str) -> Result<()> {
        match value {
            ValueRef::Document(document) if !document.is_empty() => self.document(document, path),
            ValueRef::Array(array) => self.array(array, path),
            value => self.add(path, value),
        }
    }

    fn array(&mut self, array: ArrayRef<'_>, path: &str) -> Result<()> {
        self.multikey.note(1, 0);
        if array.is_empty() {
            return self.add(path, ValueRef::Undefined);
        }
        for element in array.iter() {
            match element {
                ValueRef::Array(_) => self.add(path, element)?,
                element => self.value(element, path)?,
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &str, value: ValueRef<'_>) -> Result<()> {
        if !self.paths.has(path) {
            return Ok(());
        }
        let mut key = Vec::with_capacity(path.len() + 24);
        let [of_path, of_value] = [0, 1].map(|position| self.index.fields[position].direction);
        key_string::append(&mut key, ValueRef::String(path), of_path);
        self.index.strings.append_key(&mut key, value, of_value);
        self.keys.add(key)
    }
}
