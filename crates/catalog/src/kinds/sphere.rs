//! Indexes of shapes on the sphere by cells that cover them, with other fields by their values: `{a: '2dsphere', b:
//! 1}`.

use crate::array_walk::ArrayWalk;
use crate::index_kind::{Answers, IndexKind, KeySet, KindEntry, ReadKind};
use crate::key_pattern::{cannot_create, read_fields};
use crate::{IndexSpec, Multikey};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef, number, order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_geometry::{Cell, Stored, covering_of_shape, values_at};
use std::sync::Arc;

pub(super) const ENTRY: KindEntry = KindEntry { name: NAME, options: &[VERSION, COARSEST, FINEST], read };

const NAME: &str = "2dsphere";
const VERSION: &str = "2dsphereIndexVersion";
/// Sizes of the cells that cover a shape. They are checked and shown, but have no effect.
const COARSEST: &str = "coarsestIndexedLevel";
const FINEST: &str = "finestIndexedLevel";
/// Levels with cells of about 100 km and 500 m. Source: MongoDB manual, "2dsphere Index Properties".
const COARSEST_DEFAULT: i64 = 6;
const FINEST_DEFAULT: i64 = 14;
/// The level of the smallest cells.
const LEVEL_MAX: i64 = 30;

/// An index of cells. `cells` finds them for the geospatial fields of a document.
#[derive(Debug)]
struct Sphere {
    name: &'static str,
    /// Whether each field is geospatial.
    is_geo: Vec<bool>,
    cells: CellsOf,
    version: Version,
}

/// How an index treats documents without a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Version 1: a missing shape has a null as its key, and a null is a malformed shape.
    Full,
    /// Versions 2 and 3: no keys.
    Sparse,
}

/// Returns the cell numbers of the shapes that a document has at a path.
pub(super) type CellsOf = fn(DocumentRef<'_>, &str, Version) -> Result<Vec<Value>>;

fn read(key: DocumentRef<'_>, spec: DocumentRef<'_>) -> Result<ReadKind> {
    read_named(NAME, cells, key, spec)
}

/// Reads an index whose geospatial fields have `name` in the key pattern.
pub(super) fn read_named(
    name: &'static str,
    cells: CellsOf,
    key: DocumentRef<'_>,
    spec: DocumentRef<'_>,
) -> Result<ReadKind> {
    let options = read_options(spec)?;
    let is_geo = key.iter().map(|field| field.value.as_str() == Some(name)).collect();
    let is_first = matches!(options.as_ref().get(VERSION), Some(ValueRef::Int32(1)));
    let version = if is_first { Version::Full } else { Version::Sparse };
    let fields = read_fields(key)?;
    Ok(ReadKind { kind: Arc::new(Sphere { name, is_geo, cells, version }), fields, key: None, options })
}

/// The options as `listIndexes` shows them.
fn read_options(spec: DocumentRef<'_>) -> Result<DocumentBuf> {
    let version = match spec.get(VERSION) {
        None => 3,
        Some(value @ (ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_))) => {
            number::as_i64_exact(value).unwrap_or(0)
        }
        Some(value @ ValueRef::Decimal128(_)) => return Err(wrong_version(value)),
        Some(value) => return Err(super::wrong_number(VERSION, value)),
    };
    if !(1..=3).contains(&version) {
        return Err(wrong_version(ValueRef::Int64(version)));
    }
    let level = |name: &str, default| spec.get(name).and_then(number::clamp_to_i64).unwrap_or(default);
    check_levels(level(COARSEST, COARSEST_DEFAULT), level(FINEST, FINEST_DEFAULT))?;
    let mut options = DocumentBuf::new().with(VERSION, version as i32);
    for name in [COARSEST, FINEST] {
        if let Some(level) = spec.get(name) {
            options.append(name, level);
        }
    }
    Ok(options)
}

/// Checks the levels of the largest and the smallest cells.
/// # Errors
/// 16747, 16748 or 16749 for levels that do not exist or are in the wrong order.
fn check_levels(coarsest: i64, finest: i64) -> Result<()> {
    let (code, message) = match () {
        () if coarsest < 0 => (16747, "coarsestIndexedLevel must be >= 0"),
        () if finest > LEVEL_MAX => (16748, "finestIndexedLevel must be <= 30"),
        () if finest < coarsest => (16749, "finestIndexedLevel must be >= coarsestIndexedLevel"),
        () => return Ok(()),
    };
    Err(Failure::new(ErrorCode(code), message))
}

fn wrong_version(value: ValueRef<'_>) -> Failure {
    cannot_create(format!(
        "unsupported geo index version {{ {VERSION}: {} }}, only support versions: [1,2,3]",
        ValueText(value)
    ))
}

impl IndexKind for Sphere {
    fn name(&self) -> &'static str {
        self.name
    }

    fn keys(&self, index: &IndexSpec, document: DocumentRef<'_>, keys: &mut KeySet<'_>) -> Result<Multikey> {
        let mut parts = Vec::with_capacity(index.fields.len());
        let mut is_indexed = self.version == Version::Full;
        for (field, is_geo) in index.fields.iter().zip(&self.is_geo) {
            let values = if *is_geo {
                let cells = (self.cells)(document, &field.path, self.version)?;
                is_indexed |= !cells.is_empty();
                cells
            } else {
                plain_values(document, &field.path)?
            };
            parts.push(if values.is_empty() { vec![Value::Null] } else { values });
        }
        // Since version 2, a document without any of the shapes has no keys.
        if is_indexed {
            super::add_combinations(index, &parts, keys)?;
        }
        Ok(Multikey::default())
    }

    fn check_document(&self, index: &IndexSpec, document: DocumentRef<'_>) -> Result<()> {
        for (field, _) in index.fields.iter().zip(&self.is_geo).filter(|(_, is_geo)| **is_geo) {
            for value in values_at(document, &field.path).into_iter().filter(|value| Stored::may_have_faults(*value)) {
                Stored::parse(value).map_err(|reason| no_keys(document, &reason))?;
            }
        }
        Ok(())
    }

    fn answers(&self) -> Answers {
        Answers::ByItself
    }
}

/// The numbers of the cells that cover the shapes at a path.
fn cells(document: DocumentRef<'_>, path: &str, version: Version) -> Result<Vec<Value>> {
    let values = values_at(document, path);
    if version == Version::Sparse && are_no_shape(&values) {
        return Ok(Vec::new());
    }
    let mut numbers = Vec::new();
    for value in values {
        let stored = Stored::kept(value).map_err(|reason| no_keys(document, &reason))?;
        let Some(shape) = stored.sphere() else {
            return Err(no_keys(document, "longitude/latitude is out of bounds"));
        };
        if version == Version::Full && !shape.is_single() {
            return Err(no_keys(document, "given geometry can't be indexed in the old index format"));
        }
        numbers.extend(covering_of_shape(shape).into_iter().map(Cell::number));
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers.into_iter().map(Value::Int64).collect())
}

/// Whether the values are not a shape: a null, an empty document or an empty array, once or several times. Such a value
/// beside another one is a malformed shape.
fn are_no_shape(values: &[ValueRef<'_>]) -> bool {
    let Some((first, others)) = values.split_first() else { return true };
    let is_no_shape = match first {
        ValueRef::Document(document) => document.is_empty(),
        ValueRef::Array(array) => array.is_empty(),
        other => other.is_nullish(),
    };
    is_no_shape && others.iter().all(|other| order::compare(*first, *other).is_eq())
}

/// The values of a field that is not geospatial.
pub(super) fn plain_values(document: DocumentRef<'_>, path: &str) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    ArrayWalk::run(std::iter::once(path), document, &mut |found| {
        values.extend(found.map(|value| value.unwrap_or(ValueRef::Null).to_value()));
        Ok(())
    })?;
    Ok(values)
}

fn no_keys(document: DocumentRef<'_>, reason: &str) -> Failure {
    let text = ValueText(ValueRef::Document(document));
    Failure::new(ErrorCode(16755), format!("Can't extract geo keys: {text}  {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index_keys;
    use bunko_testkit::shell;

    #[test]
    fn a_document_of_an_earlier_version_keeps_its_keys_until_it_is_written() {
        let document = |text: &str| shell::parse_document(text).expect(text);
        let spec = IndexSpec::parse(document("{key: {g: '2dsphere'}, name: 'g'}").as_ref()).expect("an index");
        let with_hole = |hole: &str| {
            let rings =
                format!("[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]], [[1, 1], [3, 1], [3, 3], [1, 3], [1, 1]], {hole}");
            document(&format!("{{g: {{type: 'Polygon', coordinates: [{rings}]}}}}"))
        };
        let right = with_hole("[[4, 4], [5, 4], [5, 5], [4, 5], [4, 4]]");
        let crossing = with_hole("[[2, 2], [5, 2], [5, 5], [2, 5], [2, 2]]");
        for (document, code) in [(&right, None), (&crossing, Some(ErrorCode(16755)))] {
            assert!(!index_keys(&spec, document.as_ref()).expect("keys").keys.is_empty());
            let refused = spec.kind.check_document(&spec, document.as_ref()).err();
            assert_eq!(refused.map(|failure| failure.code()), code);
        }
    }
}
