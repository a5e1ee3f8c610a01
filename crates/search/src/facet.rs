//! `facet`: counts results by their values.

use crate::operators::Clause;
use crate::schema::{Schema, Types};
use crate::unit::Unit;
use crate::{FieldType, NormalizerName, Reader, Refusal};
use bunko_bson::{ArrayBuf, DocumentBuf, Value, ValueRef, number, order};
use bunko_errors::{Failure, Result};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Maximum number of values of one facet, and of its bounds.
const BUCKETS_MAX: usize = 1_000;
/// Default number of values of a facet of strings.
const BUCKETS_USUAL: i64 = 10;
/// Maximum number of different values that a facet of strings counts.
const VALUES_MAX: usize = 1_000_000;

/// One facet.
#[derive(Debug)]
pub(crate) struct Facet {
    name: String,
    path: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// One count for each string; this many are returned, the most frequent first.
    Strings(usize),
    /// One count for each bucket between bounds of numbers, or of dates. `outside` names the bucket of all other
    /// values.
    Bounds { bounds: Vec<Value>, outside: Option<String>, of: Bounded },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounded {
    Numbers,
    Dates,
}

/// Counts of one facet.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    strings: HashMap<String, i64>,
    buckets: Vec<i64>,
    outside: i64,
}

/// Reads the collector: its clause, and the facets.
pub(crate) fn parse(reader: &Reader<'_>) -> Result<(Option<Clause>, Vec<Facet>)> {
    let clause = reader.inner("operator")?.map(|operator| Clause::parse_alone(&operator)).transpose()?;
    if clause.as_ref().is_some_and(|clause| clause.operator.spares_facets()) {
        return Err(Failure::not_supported_yet("doesNotAffect in the operator of facets"));
    }
    let named = reader.required(reader.inner("facets")?, "facets")?;
    let mut facets = Vec::new();
    for field in named.document() {
        // Reads the value at hand: a look-up by name would walk all names again for each facet.
        let facet = Reader::of_value(field.value, named.at(field.name), named.refusal())?;
        facets.push(Facet::parse(field.name, &facet)?);
    }
    reader.done()?;
    if facets.is_empty() { Err(reader.wrong("facets", "cannot be empty")) } else { Ok((clause, facets)) }
}

impl Facet {
    fn parse(name: &str, reader: &Reader<'_>) -> Result<Self> {
        let kind = reader.one_of("type", &[("date", "date"), ("number", "number"), ("string", "string")])?;
        let kind = reader.required(kind, "type")?;
        let path = reader.required(reader.string("path")?, "path")?.to_owned();
        let kind = match kind {
            "string" => {
                let most = reader.integer_within("numBuckets", 1, BUCKETS_MAX as i64)?.unwrap_or(BUCKETS_USUAL);
                Kind::Strings(most as usize)
            }
            "number" => bounds(reader, Bounded::Numbers)?,
            _ => bounds(reader, Bounded::Dates)?,
        };
        reader.done()?;
        Ok(Self { name: name.to_owned(), path, kind })
    }

    /// Refuses a path that the index does not have in the form that the facet needs.
    pub fn check(&self, schema: &Schema) -> Result<()> {
        let types = schema.types(&self.path);
        let (is_there, needed) = match &self.kind {
            Kind::Strings(_) => (of_strings(types).is_some(), "token"),
            Kind::Bounds { of: Bounded::Numbers, .. } => {
                (types.has(|kind| matches!(kind, FieldType::Number { .. } | FieldType::NumberFacet)), "number")
            }
            Kind::Bounds { of: Bounded::Dates, .. } => {
                (types.has(|kind| matches!(kind, FieldType::Date | FieldType::DateFacet)), "date")
            }
        };
        if is_there {
            return Ok(());
        }
        Err(Refusal::Query.failure(format!("Path '{}' needs to be indexed as {needed} for faceting", self.path)))
    }

    pub fn counts(&self) -> Counts {
        let buckets = if let Kind::Bounds { bounds, .. } = &self.kind { bounds.len() - 1 } else { 0 };
        Counts { buckets: vec![0; buckets], ..Counts::default() }
    }

    /// Counts a document once for each different value, or for each bucket, that it has.
    pub fn count(&self, unit: &Unit<'_>, counts: &mut Counts) -> Result<()> {
        let mut seen: HashSet<String> = HashSet::new();
        let mut buckets: BTreeSet<Option<usize>> = BTreeSet::new();
        for field in unit.values(&self.path) {
            match (&self.kind, field.value) {
                (Kind::Strings(_), ValueRef::String(text)) => {
                    let text = match of_strings(field.types) {
                        Some(NormalizerName::None) => text.to_owned(),
                        Some(NormalizerName::Lowercase) => text.to_lowercase(),
                        None => continue,
                    };
                    seen.insert(text);
                }
                (Kind::Bounds { bounds, of, .. }, value) if of.is(value) => {
                    let begun = bounds.partition_point(|bound| order::compare(bound.as_ref(), value).is_le());
                    // A value below the first bound, or from the last bound on, is in no bucket (`None`).
                    buckets.insert(begun.checked_sub(1).filter(|bucket| *bucket < bounds.len() - 1));
                }
                _ => {}
            }
        }
        for text in seen {
            if counts.strings.len() >= VALUES_MAX && !counts.strings.contains_key(&text) {
                let message = format!("the facet \"{}\" has more than {VALUES_MAX} different values", self.name);
                return Err(Refusal::Query.failure(message));
            }
            *counts.strings.entry(text).or_default() += 1;
        }
        for bucket in buckets {
            match bucket {
                Some(bucket) => counts.buckets[bucket] += 1,
                None => counts.outside += 1,
            }
        }
        Ok(())
    }

    /// Adds the facet's counts to `told`, the document of all facets.
    pub fn tell(&self, counts: Counts, told: &mut DocumentBuf) {
        let bucket = |id: ValueRef<'_>, count: i64| DocumentBuf::new().with("_id", id).with("count", count);
        let buckets: Vec<DocumentBuf> = match &self.kind {
            Kind::Strings(most) => {
                let mut values: Vec<(String, i64)> = counts.strings.into_iter().collect();
                values.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
                values.iter().take(*most).map(|(text, count)| bucket(ValueRef::String(text), *count)).collect()
            }
            Kind::Bounds { bounds, outside, .. } => {
                let inside = bounds.iter().zip(&counts.buckets);
                let mut buckets: Vec<DocumentBuf> =
                    inside.map(|(bound, count)| bucket(bound.as_ref(), *count)).collect();
                buckets.extend(outside.iter().map(|name| bucket(ValueRef::String(name), counts.outside)));
                buckets
            }
        };
        let buckets: ArrayBuf = buckets.iter().collect();
        told.append(&self.name, &DocumentBuf::new().with("buckets", &buckets));
    }
}

/// The normalization by which a facet counts the strings of a field.
fn of_strings(types: Types<'_>) -> Option<NormalizerName> {
    let is_facet = types.mapped().iter().any(|kind| matches!(kind, FieldType::StringFacet));
    types.token().or_else(|| is_facet.then_some(NormalizerName::None))
}

impl Bounded {
    fn is(self, value: ValueRef<'_>) -> bool {
        match self {
            Self::Numbers => matches!(value, ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_)),
            Self::Dates => matches!(value, ValueRef::DateTime(_)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Numbers => "numbers",
            Self::Dates => "dates",
        }
    }
}

fn bounds(reader: &Reader<'_>, of: Bounded) -> Result<Kind> {
    let wrong = |what: &str| -> Failure { reader.wrong("boundaries", what) };
    let bounds = reader.required(reader.array("boundaries")?, "boundaries")?;
    let outside = reader.string("default")?.map(str::to_owned);
    let mut read: Vec<Value> = Vec::new();
    for bound in bounds.iter() {
        if !of.is(bound) || number::as_f64(bound).is_some_and(f64::is_nan) {
            return Err(wrong(&format!("must be an array of {}", of.name())));
        }
        if read.last().is_some_and(|last| order::compare(last.as_ref(), bound).is_ge()) {
            return Err(wrong("must be in ascending order, and distinct"));
        }
        read.push(bound.to_value());
    }
    if !(2..=BUCKETS_MAX).contains(&read.len()) {
        return Err(wrong(&format!("must have 2 to {BUCKETS_MAX} elements")));
    }
    Ok(Kind::Bounds { bounds: read, outside, of })
}
