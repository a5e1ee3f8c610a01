//! `span`: words at certain distances and in certain order.

use super::{Operator, UseOfPostings, queries};
use crate::evaluation::{Cut, Evaluation};
use crate::paths::{self, Path, TextField, text_fields};
use crate::postings::{Postings, Rows};
use crate::unit::Unit;
use crate::{Reader, StringField};
use bunko_errors::Result;
use std::collections::{BTreeSet, HashSet};

/// Maximum number of places that one clause may find in a text.
const PLACES_MAX: usize = 10_000;

#[derive(Debug)]
struct Span {
    clause: SpanClause,
}

/// A clause that finds places in a text.
#[derive(Debug)]
enum SpanClause {
    Term { paths: Vec<Path>, queries: Vec<String> },
    First { inner: Box<SpanClause>, end_most: u32 },
    Near { clauses: Vec<SpanClause>, slop: u32, in_order: bool },
    Or(Vec<SpanClause>),
    Subtract { include: Box<SpanClause>, exclude: Box<SpanClause> },
    Contains { little: Box<SpanClause>, big: Box<SpanClause>, returns: Returned },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Returned {
    Inner,
    Outer,
}

/// A range of positions; the end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct PositionRange {
    start: u32,
    end: u32,
}

const WAYS: [&str; 6] = ["contains", "first", "near", "or", "subtract", "term"];

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Span { clause: SpanClause::parse_part(reader)? }))
}

impl SpanClause {
    fn parse(reader: &Reader<'_>) -> Result<Self> {
        let clause = Self::parse_part(reader)?;
        reader.done()?;
        Ok(clause)
    }

    /// Parses a clause that may have a `score` beside it.
    fn parse_part(reader: &Reader<'_>) -> Result<Self> {
        let found: Vec<&str> = WAYS.into_iter().filter(|way| reader.value(way).is_some()).collect();
        let [way] = found[..] else {
            return Err(reader.failure(&format!("must have one of [{}]", WAYS.join(", "))));
        };
        let inner = reader.required(reader.inner(way)?, way)?;
        let one = |name: &str| Self::parse(&inner.required(inner.inner(name)?, name)?).map(Box::new);
        let clauses = || {
            let clauses = inner.required(inner.inners("clauses")?, "clauses")?;
            if clauses.is_empty() {
                return Err(inner.wrong("clauses", "cannot be empty"));
            }
            clauses.iter().map(Self::parse).collect::<Result<Vec<_>>>()
        };
        let most = i64::from(i32::MAX);
        let parsed = match way {
            "term" => Self::Term { paths: paths::parse(&inner)?, queries: queries(&inner)? },
            "first" => {
                let end = inner.integer_within("endPositionLte", 0, most)?.unwrap_or(3);
                Self::First { inner: one("operator")?, end_most: end as u32 }
            }
            "near" => {
                let slop = inner.integer_within("slop", 0, most)?.unwrap_or(0);
                let in_order = inner.boolean("inOrder")?.unwrap_or(false);
                Self::Near { clauses: clauses()?, slop: slop as u32, in_order }
            }
            "or" => Self::Or(clauses()?),
            "subtract" => Self::Subtract { include: one("include")?, exclude: one("exclude")? },
            _ => {
                let returned =
                    inner.one_of("spanToReturn", &[("inner", Returned::Inner), ("outer", Returned::Outer)])?;
                let returns = inner.required(returned, "spanToReturn")?;
                Self::Contains { little: one("little")?, big: one("big")?, returns }
            }
        };
        // Only the whole span has a score.
        inner.not_supported_yet(&["score"])?;
        inner.done()?;
        Ok(parsed)
    }

    /// Adds the searched words of all clauses, with the paths to search.
    fn terms<'s>(&'s self, found: &mut Vec<(&'s [Path], &'s [String])>) {
        match self {
            Self::Term { paths, queries } => found.push((paths, queries)),
            Self::First { inner, .. } => inner.terms(found),
            Self::Near { clauses, .. } | Self::Or(clauses) => clauses.iter().for_each(|clause| clause.terms(found)),
            Self::Subtract { include, exclude } => [include, exclude].into_iter().for_each(|one| one.terms(found)),
            Self::Contains { little, big, .. } => [little, big].into_iter().for_each(|one| one.terms(found)),
        }
    }

    /// The places in the text of a field.
    fn places(&self, field: &TextField<'_>, cut: &Cut, evaluation: &Evaluation) -> Result<Vec<PositionRange>> {
        let mut places = match self {
            Self::Term { paths, queries } => {
                evaluation.operation.work(1 + paths.len() / 16)?;
                if !paths.iter().any(|path| path.takes(&field.path)) {
                    return Ok(Vec::new());
                }
                let words = words(field.string, queries, evaluation)?;
                let tokens = cut.tokens.iter().filter(|token| words.contains(&token.text));
                tokens.map(|token| PositionRange { start: token.position, end: token.position + 1 }).collect()
            }
            Self::First { inner, end_most } => {
                let mut places = inner.places(field, cut, evaluation)?;
                places.retain(|place| place.end <= *end_most);
                places
            }
            Self::Or(clauses) => {
                let mut places = Vec::new();
                for clause in clauses {
                    places.extend(clause.places(field, cut, evaluation)?);
                }
                places
            }
            Self::Subtract { include, exclude } => {
                let excluded = exclude.places(field, cut, evaluation)?;
                let places = include.places(field, cut, evaluation)?;
                let mut kept = Vec::new();
                for place in places {
                    evaluation.operation.work(1 + excluded.len() / 16)?;
                    if !excluded.iter().any(|other| place.start < other.end && other.start < place.end) {
                        kept.push(place);
                    }
                }
                kept
            }
            Self::Contains { little, big, returns } => {
                let little = little.places(field, cut, evaluation)?;
                let big = big.places(field, cut, evaluation)?;
                evaluation.operation.work(little.len().saturating_mul(big.len()) / 8)?;
                let holds =
                    |big: &PositionRange, little: &PositionRange| big.start <= little.start && little.end <= big.end;
                match returns {
                    Returned::Inner => {
                        little.into_iter().filter(|little| big.iter().any(|big| holds(big, little))).collect()
                    }
                    Returned::Outer => {
                        big.into_iter().filter(|big| little.iter().any(|little| holds(big, little))).collect()
                    }
                }
            }
            Self::Near { clauses, slop, in_order } => {
                let each =
                    clauses.iter().map(|clause| clause.places(field, cut, evaluation)).collect::<Result<Vec<_>>>()?;
                near(&each, *slop, *in_order, evaluation)?
            }
        };
        places.sort_unstable();
        places.dedup();
        places.truncate(PLACES_MAX);
        Ok(places)
    }
}

fn words(string: &StringField, queries: &[String], evaluation: &Evaluation) -> Result<BTreeSet<String>> {
    let mut words = BTreeSet::new();
    for query in queries {
        let searched = evaluation.cut_searched(string, query)?;
        evaluation.operation.work(searched.tokens.len())?;
        words.extend(searched.tokens.iter().map(|token| token.text.clone()));
    }
    Ok(words)
}

/// Combinations of one place of each clause, with at most `slop` other positions between them.
fn near(each: &[Vec<PositionRange>], slop: u32, in_order: bool, evaluation: &Evaluation) -> Result<Vec<PositionRange>> {
    // The range of a combination, the number of its positions that the clauses cover, and the end of the last clause.
    let mut combined: Vec<(PositionRange, u32, u32)> = Vec::new();
    for (number, places) in each.iter().enumerate() {
        if number == 0 {
            combined = places.iter().map(|place| (*place, place.end - place.start, place.end)).collect();
            continue;
        }
        let mut next = HashSet::new();
        for (whole, own, last) in &combined {
            evaluation.operation.work(1 + places.len() / 4)?;
            for place in places {
                if in_order && place.start < *last {
                    continue;
                }
                if !in_order && place.start < whole.end && whole.start < place.end {
                    continue;
                }
                let both = PositionRange { start: whole.start.min(place.start), end: whole.end.max(place.end) };
                let own = own + place.end - place.start;
                // Without order, later clauses may fill the gaps, so only ordered combinations can be dropped here.
                if in_order && (both.end - both.start).saturating_sub(own) > slop {
                    continue;
                }
                if next.len() < PLACES_MAX {
                    next.insert((both, own, place.end));
                }
            }
        }
        combined = next.into_iter().collect();
    }
    let fits = |(place, own, _): &(PositionRange, u32, u32)| (place.end - place.start).saturating_sub(*own) <= slop;
    Ok(combined.into_iter().filter(fits).map(|(place, _, _)| place).collect())
}

impl Span {
    fn fields<'u>(&self, unit: &'u Unit<'_>, evaluation: &Evaluation) -> Result<Vec<TextField<'u>>> {
        let mut terms = Vec::new();
        self.clause.terms(&mut terms);
        let (mut fields, mut known) = (Vec::new(), HashSet::new());
        for (paths, _) in terms {
            for field in text_fields(unit, paths, &evaluation.operation)? {
                if field.string.has_positions() && known.insert(field.key.clone()) {
                    fields.push(field);
                }
            }
        }
        Ok(fields)
    }

    /// All searched words. The sum of scores depends on their order, so it is fixed.
    fn words(&self, string: &StringField, evaluation: &Evaluation) -> Result<BTreeSet<String>> {
        let mut terms = Vec::new();
        self.clause.terms(&mut terms);
        let mut all = BTreeSet::new();
        for (_, queries) in terms {
            all.extend(words(string, queries, evaluation)?);
        }
        Ok(all)
    }
}

impl Operator for Span {
    fn count(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<()> {
        for field in self.fields(unit, evaluation)? {
            let words = self.words(field.string, evaluation)?;
            evaluation.count(unit, &field, |word| Ok(words.contains(word)))?;
        }
        Ok(())
    }

    fn use_of_postings(&self) -> UseOfPostings {
        UseOfPostings::Wanted
    }

    fn candidates(&self, postings: &Postings, evaluation: &Evaluation) -> Result<Rows> {
        let mut terms = Vec::new();
        self.clause.terms(&mut terms);
        let paths: Vec<Path> = terms.iter().flat_map(|(paths, _)| paths.iter().cloned()).collect();
        let mut rows = Rows::NONE;
        for (field, string) in postings.texts(&paths) {
            for word in self.words(string, evaluation)? {
                rows = rows.or(postings.word(field, &word, evaluation)?);
            }
        }
        Ok(rows)
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        let mut score = None;
        for field in self.fields(unit, evaluation)? {
            let cut = evaluation.cut(unit, &field)?;
            let places = self.clause.places(&field, &cut, evaluation)?;
            if places.is_empty() {
                continue;
            }
            let words = self.words(field.string, evaluation)?;
            let rarity = evaluation.rarity(&field.key, words.iter().map(String::as_str));
            let frequency = places.len() as f32;
            *score.get_or_insert(0.0) +=
                evaluation.score(&field.key, field.string.has_norms, rarity, frequency, cut.tokens.len());
        }
        Ok(score)
    }

    fn mark(&self, field: &TextField<'_>, cut: &Cut, evaluation: &Evaluation, marks: &mut [bool]) -> Result<()> {
        let places = self.clause.places(field, cut, evaluation)?;
        if places.is_empty() {
            return Ok(());
        }
        let words = self.words(field.string, evaluation)?;
        for (token, mark) in cut.tokens.iter().zip(marks) {
            evaluation.operation.work(1 + places.len() / 16)?;
            let is_in = places.iter().any(|place| (place.start..place.end).contains(&token.position));
            *mark |= is_in && words.contains(&token.text);
        }
        Ok(())
    }
}
