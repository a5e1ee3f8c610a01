//! Sort patterns: `{a: 1, "b.c": -1}`, and the sort keys of documents.

use crate::metadata::HELD_FIELD;
use crate::{Dependencies, FieldPath, ParseScope, meta};
use bunko_bson::key_string::Direction;
use bunko_bson::{ArrayBuf, DocumentRef, StringOrder, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use std::collections::HashSet;

/// Maximum number of paths of a pattern. Source: MongoDB limits, "Number of Keys in a Sort Pattern".
const FIELDS_MAX: usize = 32;

/// A parsed sort pattern.
#[derive(Clone, Debug)]
pub struct SortPattern {
    parts: Vec<(FieldPath, Direction)>,
}

impl SortPattern {
    /// Reads a pattern.
    /// # Errors
    /// 15974 for a direction that is not a number, 15975 for one that is neither 1 nor -1 as an integer, 7472500 for a
    /// path given twice, 15976 for an empty pattern, 13103 for more than 32 paths, errors of a path, 40218 for `$meta`.
    pub fn parse(pattern: DocumentRef<'_>) -> Result<Self> {
        Self::read(pattern, &|document| meta::parse_in_sort(document, &ParseScope::default()))
    }

    /// As [`Self::parse`], but `{$meta: name}` may replace a direction and sorts the greatest first. Documents must
    /// then hold their metadata in [`HELD_FIELD`].
    /// # Errors
    /// As [`Self::parse`]; 40218 where the scope does not offer the metadata.
    pub fn parse_in(pattern: DocumentRef<'_>, scope: &ParseScope) -> Result<Self> {
        Self::read(pattern, &|document| meta::parse_in_sort(document, scope))
    }

    fn read(pattern: DocumentRef<'_>, meta: &dyn Fn(DocumentRef<'_>) -> Result<&'static str>) -> Result<Self> {
        let mut parts = Vec::new();
        let mut seen = HashSet::new();
        for element in pattern {
            // A direction is truncated: 1.9 is ascending, and 0.9 is invalid.
            let direction = match bunko_bson::number::clamp_to_i64(element.value) {
                Some(1) => Direction::Ascending,
                Some(-1) => Direction::Descending,
                _ if element.value.as_document().is_some() => {
                    let name = meta(element.value.as_document().unwrap_or(DocumentRef::EMPTY))?;
                    parts.push((FieldPath::parse(&format!("{HELD_FIELD}.{name}"))?, Direction::Descending));
                    continue;
                }
                _ => return Err(bad_direction(element.name, element.value)),
            };
            parts.push((FieldPath::parse(element.name)?, direction));
            if !seen.insert(element.name) {
                let message = format!("$sort key must not contain duplicate keys (duplicate: '{}')", element.name);
                return Err(Failure::new(ErrorCode(7_472_500), message));
            }
        }
        if parts.is_empty() {
            return Err(Failure::new(ErrorCode(15976), "$sort stage must have at least one sort key"));
        }
        if seen.len() > FIELDS_MAX {
            return Err(Failure::new(ErrorCode(13103), "too many compound keys"));
        }
        Ok(Self { parts })
    }

    /// Returns the pattern with the direction of each field reversed.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let opposite = |direction| match direction {
            Direction::Ascending => Direction::Descending,
            Direction::Descending => Direction::Ascending,
        };
        Self { parts: self.parts.iter().map(|(path, direction)| (path.clone(), opposite(*direction))).collect() }
    }

    /// Whether the pattern sorts by metadata.
    pub fn reads_metadata(&self) -> bool {
        self.parts.iter().any(|(path, _)| metadata_name(path).is_some())
    }

    /// The fields in their order.
    pub fn parts(&self) -> impl Iterator<Item = (&FieldPath, Direction)> {
        self.parts.iter().map(|(path, direction)| (path, *direction))
    }

    /// Adds the fields that the pattern reads.
    pub fn add_dependencies(&self, dependencies: &mut Dependencies) {
        let fields = self.parts.iter().filter(|(path, _)| metadata_name(path).is_none());
        fields.for_each(|(path, _)| dependencies.add(path.dotted()));
    }

    /// Appends the document's key. Comparing keys as bytes orders documents by the pattern.
    ///
    /// The key uses the least element of an array (the greatest where descending). An empty array sorts below null, a
    /// missing field as null.
    /// # Errors
    /// `BadValue` for a document in which two fields lead through different arrays; errors of counting work.
    pub fn append_key(
        &self,
        key: &mut Vec<u8>,
        document: DocumentRef<'_>,
        operation: &OperationContext,
        strings: &StringOrder,
    ) -> Result<()> {
        let start = key.len();
        for (path, direction) in &self.parts {
            match plain(document, path.components()) {
                Some(value) => strings.append_key(key, value, *direction),
                None => {
                    key.truncate(start);
                    let (least, ()) = self.least_key(document, operation, strings, |_| ())?;
                    key.extend_from_slice(&least);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The values of the document's key, field by field, as `{$meta: "sortKey"}` returns them.
    /// # Errors
    /// As [`Self::append_key`].
    pub fn key_values(
        &self,
        document: DocumentRef<'_>,
        operation: &OperationContext,
        strings: &StringOrder,
    ) -> Result<ArrayBuf> {
        let of = |places: &[PathCursor<'_, '_>]| places.iter().map(|place| place.value).collect();
        Ok(self.least_key(document, operation, strings, of)?.1)
    }

    /// Returns the least key among the combinations of array elements, and the result of `of` for the values of that
    /// key.
    fn least_key<T: Default>(
        &self,
        document: DocumentRef<'_>,
        operation: &OperationContext,
        strings: &StringOrder,
        of: impl Fn(&[PathCursor<'_, '_>]) -> T,
    ) -> Result<(Vec<u8>, T)> {
        let places = self.parts.iter().map(|(path, _)| PathCursor::new(document, path)).collect();
        let mut least = None;
        self.each_key(places, strings, &mut |candidate, places| {
            // A key is about as long as its values.
            operation.work(candidate.len() / 16 + self.parts.len())?;
            if least.as_ref().is_none_or(|(least, _)| candidate < *least) {
                least = Some((candidate, of(places)));
            }
            Ok(())
        })?;
        Ok(least.unwrap_or_default())
    }

    /// Visits the key of each combination of array elements. Arrays are walked one at a time; all fields that lead
    /// through one array advance together.
    fn each_key(
        &self,
        mut places: Vec<PathCursor<'_, '_>>,
        strings: &StringOrder,
        visit: &mut KeyVisitor<'_>,
    ) -> Result<()> {
        places.iter_mut().for_each(PathCursor::advance);
        let arrays: Vec<_> = places.iter().filter_map(PathCursor::array).collect();
        let Some(array) = arrays.first() else {
            let mut key = Vec::new();
            for (place, (_, direction)) in places.iter().zip(&self.parts) {
                strings.append_key(&mut key, place.value, *direction);
            }
            return visit(key, &places);
        };
        if arrays.iter().any(|other| !std::ptr::eq(other.as_bytes(), array.as_bytes())) {
            return Err(Failure::bad_value("cannot sort with keys that are parallel arrays"));
        }
        if array.is_empty() {
            let emptied = places.into_iter().map(PathCursor::in_empty_array).collect();
            return self.each_key(emptied, strings, visit);
        }
        for element in *array {
            self.each_key(places.iter().map(|place| place.at(element.value)).collect(), strings, visit)?;
        }
        Ok(())
    }
}

/// The `$meta` name that a path stands for.
pub fn metadata_name(path: &FieldPath) -> Option<&str> {
    let (field, rest) = path.components().split_first()?;
    (**field == *HELD_FIELD).then(|| rest.first().map_or("", |name| name))
}

fn bad_direction(name: &str, value: ValueRef<'_>) -> Failure {
    if !value.is_number() {
        let found = crate::printed::printed_value(value);
        let message = format!("Illegal key in $sort specification: {name}: {found}");
        return Failure::new(ErrorCode(15974), message);
    }
    Failure::new(ErrorCode(15975), "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
}

/// The position in an array that a name spells: digits without a leading zero.
fn position(name: &str) -> Option<usize> {
    let is_position = name == "0" || !name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
    if is_position { name.parse().ok() } else { None }
}

/// The value at a path without arrays, null if there is none; `None` if the path meets an array.
#[inline]
fn plain<'a>(document: DocumentRef<'a>, path: &[Box<str>]) -> Option<ValueRef<'a>> {
    let (name, rest) = path.split_first()?;
    match document.get(name) {
        Some(ValueRef::Array(_)) => None,
        Some(ValueRef::Document(inner)) if !rest.is_empty() => plain(inner, rest),
        Some(value) if rest.is_empty() => Some(value),
        _ => Some(ValueRef::Null),
    }
}

/// Called with each key and the values that it was made of.
type KeyVisitor<'v> = dyn FnMut(Vec<u8>, &[PathCursor<'_, '_>]) -> Result<()> + 'v;

/// A field's path, partly followed.
#[derive(Clone, Copy)]
struct PathCursor<'a, 'p> {
    value: ValueRef<'a>,
    rest: &'p [Box<str>],
    /// Whether the value is an array's element: an array directly inside an array is not walked.
    expanded: Expanded,
}

/// Whether a value is an array's element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expanded {
    No,
    Yes,
}

impl<'a, 'p> PathCursor<'a, 'p> {
    fn new(document: DocumentRef<'a>, path: &'p FieldPath) -> Self {
        Self { value: ValueRef::Document(document), rest: path.components(), expanded: Expanded::No }
    }

    /// Follows the path up to the next array.
    fn advance(&mut self) {
        while let Some((name, rest)) = self.rest.split_first() {
            match self.value {
                ValueRef::Document(document) => {
                    self.value = document.get(name).unwrap_or(ValueRef::Null);
                    self.rest = rest;
                    self.expanded = Expanded::No;
                }
                ValueRef::Array(_) if self.expanded == Expanded::No => return,
                _ => {
                    self.value = ValueRef::Null;
                    self.rest = &[];
                }
            }
        }
    }

    /// The array that must be walked next, if there is one.
    fn array(&self) -> Option<DocumentRef<'a>> {
        match self.value {
            ValueRef::Array(array) if self.expanded == Expanded::No => Some(array.as_document()),
            _ => None,
        }
    }

    fn at(&self, element: ValueRef<'a>) -> Self {
        if self.array().is_none() {
            return *self;
        }
        // A number in the path may be the position of an element, as in keys of indexes; then only that element counts.
        if let Some((name, rest)) = self.rest.split_first()
            && let (Some(wanted), ValueRef::Array(array)) = (position(name), self.value)
            && let Some(value) = array.get(wanted)
        {
            return Self { value, rest, expanded: Expanded::No };
        }
        Self { value: element, rest: self.rest, expanded: Expanded::Yes }
    }

    fn in_empty_array(self) -> Self {
        match self.array() {
            None => self,
            // Undefined sorts below null, as an empty array must.
            Some(_) if self.rest.is_empty() => Self { value: ValueRef::Undefined, ..self },
            Some(_) => Self { value: ValueRef::Null, rest: &[], ..self },
        }
    }
}
