//! Wildcard indexes: the values of all paths or of those below one, with other fields by their values: `{'$**': 1}`,
//! `{'a.b.$**': -1}`, `{c: 1, 'a.$**': 1}`.
//!
//! A key consists of a path and a value, between the values of the other fields. Positions in arrays are not part of
//! paths; an array inside another array is one value. A nested document has the keys of its fields; an empty one is a
//! value. In a compound index, a document without any of the paths has a key without a path. `_id` is excluded unless
//! `wildcardProjection` includes it or the index is on the paths below a field.
//! Source: MongoDB manual, "Wildcard Indexes" and "Compound Wildcard Indexes".

use crate::array_walk::ArrayWalk;
use crate::index_kind::{Answers, IndexKind, KeySet, KindEntry, ReadKind};
use crate::key_pattern::{cannot_create, is_true};
use crate::{IndexField, IndexSpec, KeyForm, Multikey};
use bunko_bson::key_string::{self, Direction};
use bunko_bson::{ArrayRef, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use std::ops::Range;
use std::sync::Arc;

pub(super) const ENTRY: KindEntry = KindEntry { name: "wildcard", options: &["wildcardProjection"], read };

/// The part of a key pattern that stands for all paths.
pub(super) const ALL_PATHS: &str = "$**";
/// Maximum number of paths in a projection.
const PROJECTED_PATHS_MAX: usize = 1_000;
/// Maximum number of combinations of the values of the other fields.
const COMBINATIONS_MAX: usize = 1 << 20;

#[derive(Debug)]
struct Wildcard {
    paths: Paths,
    /// Number of fields before the paths.
    before: usize,
    /// Number of fields after the values.
    behind: usize,
}

/// The paths that are indexed.
#[derive(Debug)]
enum Paths {
    /// These paths and all below them.
    Within(Vec<String>),
    /// All paths except these and those below them.
    Without(Vec<String>),
}

/// The name of the path, which precedes its values as a field of its own.
const PATH: &str = "$_path";

fn read(key: DocumentRef<'_>, spec: DocumentRef<'_>) -> Result<ReadKind> {
    refuse_properties(key, spec)?;
    let mut fields = Vec::new();
    let mut found = None;
    for field in key {
        if !field.name.contains(ALL_PATHS) {
            fields.push(IndexField {
                path: field.name.to_owned(),
                direction: direction(field.value),
                form: KeyForm::Value,
            });
            continue;
        }
        let root = field.name.strip_suffix(ALL_PATHS).filter(|root| root.is_empty() || root.ends_with('.'));
        let Some(root) = root.map(|root| root.trim_end_matches('.')).filter(|root| !root.contains(ALL_PATHS)) else {
            return Err(cannot_create(format!("wildcard indexes end with '$**', but got '{}'", field.name)));
        };
        if found.is_some() {
            let message = "wildcard indexes do not support more than one wildcard field";
            return Err(Failure::new(ErrorCode(7_246_201), message));
        }
        found = Some((root, fields.len()));
        for path in [PATH, field.name] {
            let direction = if path == PATH { Direction::Ascending } else { direction(field.value) };
            fields.push(IndexField { path: path.to_owned(), direction, form: KeyForm::Value });
        }
    }
    let Some((root, before)) = found else { return Err(cannot_create("wildcard index without wildcard".to_owned())) };
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
    let behind = fields.len() - before - 2;
    check_others(&fields, before, &paths)?;
    Ok(ReadKind {
        kind: Arc::new(Wildcard { paths, before, behind }),
        fields,
        key: None,
        options: spec
            .iter()
            .filter(|option| option.name == "wildcardProjection")
            .fold(bunko_bson::DocumentBuf::new(), |options, option| options.with(option.name, option.value)),
    })
}

fn direction(value: ValueRef<'_>) -> Direction {
    let is_descending = number::as_f64(value).is_some_and(|number| number < 0.0);
    if is_descending { Direction::Descending } else { Direction::Ascending }
}

fn refuse_properties(key: DocumentRef<'_>, spec: DocumentRef<'_>) -> Result<()> {
    if key.iter().any(|field| field.value.as_str().is_some()) {
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
    if spec.get("v").and_then(number::as_f64) == Some(1.0) {
        return Err(cannot_create("Index type 'wildcard' is not allowed with index version v: 1".to_owned()));
    }
    Ok(())
}

/// Checks that the other fields of a compound index are not among the wildcard's paths; a projection must exclude them.
fn check_others(fields: &[IndexField], before: usize, paths: &Paths) -> Result<()> {
    let is_own = |position: usize| (before..before + 2).contains(&position);
    for (_, field) in fields.iter().enumerate().filter(|(position, _)| !is_own(*position)) {
        if paths.leads_through(&field.path) {
            return Err(cannot_create(format!(
                "The field '{}' of a compound wildcard index must not be one of the wildcard's paths; exclude it by \
                 'wildcardProjection'",
                field.path
            )));
        }
    }
    Ok(())
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
    read_paths(projection, None, &mut included, &mut excluded)?;
    // `_id` may be included or excluded in either form of projection.
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
    prefix: Option<&str>,
    included: &mut Vec<String>,
    excluded: &mut Vec<String>,
) -> Result<()> {
    for field in projection {
        let path = below(prefix, field.name);
        match field.value {
            ValueRef::Document(nested) if !nested.is_empty() => read_paths(nested, Some(&path), included, excluded)?,
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

/// The path of a field below another one, or at the top. A name may be empty: `{'': {x: 1}}` has the path `.x`.
fn below(prefix: Option<&str>, name: &str) -> String {
    prefix.map_or_else(|| name.to_owned(), |prefix| format!("{prefix}.{name}"))
}

/// Whether `path` equals `other` or is below it.
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
        let mut multikey = Multikey::default();
        let others = self.before + self.behind;
        if others == 0 {
            let mut walk = Walk { of: self, index, multikey, add: &mut |key| keys.add(key.to_vec()) };
            walk.document(document, None)?;
            return Ok(walk.multikey);
        }
        let befores = combinations(index, 0..self.before, document, &mut multikey)?;
        let first_behind = self.before + 2;
        let behinds = combinations(index, first_behind..first_behind + self.behind, document, &mut multikey)?;
        let mut add = |middle: &[u8]| {
            for (before, behind) in befores.iter().flat_map(|before| behinds.iter().map(move |behind| (before, behind)))
            {
                keys.add([before.as_slice(), middle, behind].concat())?;
            }
            Ok(())
        };
        let mut has_paths = false;
        let mut walk = Walk {
            of: self,
            index,
            multikey,
            add: &mut |middle| {
                has_paths = true;
                add(middle)
            },
        };
        walk.document(document, None)?;
        let multikey = walk.multikey;
        if !has_paths {
            let mut no_path = Vec::new();
            for field in &index.fields[self.before..self.before + 2] {
                key_string::append(&mut no_path, ValueRef::MinKey, field.direction);
            }
            add(&no_path)?;
        }
        Ok(multikey)
    }

    fn check_arrays(&self, index: &IndexSpec, arrays: &Multikey) -> Result<()> {
        let is_own = |position: usize| (self.before..self.before + 2).contains(&position);
        let mut others = index.fields.iter().enumerate().filter(|(position, _)| !is_own(*position));
        match others.find(|(position, _)| arrays.is_multikey_at(*position)) {
            None => Ok(()),
            Some((_, field)) => {
                let message = format!(
                    "The field '{}' of the compound wildcard index '{}' must not be, or lead through, an array",
                    field.path, index.name
                );
                Err(Failure::new(ErrorCode(7_246_301), message))
            }
        }
    }

    fn answers(&self) -> Answers {
        Answers::ByPath { before: self.before }
    }

    fn covers(&self, path: &str) -> bool {
        self.paths.has(path)
    }

    fn covers_below(&self, path: &str) -> bool {
        let is_cut = |excluded: &[String]| excluded.iter().any(|other| is_within(other, path));
        self.paths.has(path) && !matches!(&self.paths, Paths::Without(excluded) if is_cut(excluded))
    }
}

/// Makes the parts of a key for some fields of an index: one for each combination of their values.
fn combinations(
    index: &IndexSpec,
    positions: Range<usize>,
    document: DocumentRef<'_>,
    multikey: &mut Multikey,
) -> Result<Vec<Vec<u8>>> {
    let mut parts = vec![Vec::new()];
    for position in positions {
        let field = &index.fields[position];
        let mut values = Vec::new();
        let arrays = ArrayWalk::run(std::iter::once(field.path.as_str()), document, &mut |found| {
            values.extend(found.map(|value| value.unwrap_or(ValueRef::Null).to_value()));
            Ok(())
        })?;
        for component in (0..field.path.split('.').count()).filter(|component| arrays.has_array_at(0, *component)) {
            multikey.note(position, component);
        }
        if parts.len() * values.len() > COMBINATIONS_MAX {
            let message = format!("a document has more than {COMBINATIONS_MAX} combinations in index {}", index.name);
            return Err(Failure::new(ErrorCode::CANNOT_BUILD_INDEX_KEYS, message));
        }
        parts = parts
            .iter()
            .flat_map(|part| {
                values.iter().map(|value| {
                    let mut key = part.clone();
                    index.strings.append_key(&mut key, value.as_ref(), field.direction);
                    key
                })
            })
            .collect();
    }
    Ok(parts)
}

struct Walk<'w> {
    of: &'w Wildcard,
    index: &'w IndexSpec,
    multikey: Multikey,
    /// Takes the part of a key that consists of a path and a value; the caller adds the other fields.
    add: &'w mut dyn FnMut(&[u8]) -> Result<()>,
}

impl Walk<'_> {
    fn document(&mut self, document: DocumentRef<'_>, prefix: Option<&str>) -> Result<()> {
        for field in document {
            // Paths cannot reach a field with a dot in its name.
            if field.name.contains('.') {
                continue;
            }
            let path = below(prefix, field.name);
            if self.of.paths.leads_through(&path) {
                self.value(field.value, &path)?;
            }
        }
        Ok(())
    }

    fn value(&mut self, value: ValueRef<'_>, path: &str) -> Result<()> {
        match value {
            ValueRef::Document(document) if !document.is_empty() => self.document(document, Some(path)),
            ValueRef::Array(array) => self.array(array, path),
            value => self.add(path, value),
        }
    }

    fn array(&mut self, array: ArrayRef<'_>, path: &str) -> Result<()> {
        self.multikey.note(self.of.before + 1, 0);
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
        if !self.of.paths.has(path) {
            return Ok(());
        }
        let mut key = Vec::with_capacity(path.len() + 24);
        let [of_path, of_value] = [0, 1].map(|position| self.index.fields[self.of.before + position].direction);
        key_string::append(&mut key, ValueRef::String(path), of_path);
        self.index.strings.append_key(&mut key, value, of_value);
        (self.add)(&key)
    }
}
