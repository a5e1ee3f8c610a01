//! The operators of a search: one file and one line of the table each.

mod autocomplete;
mod compound;
mod constant_terms;
mod embedded_document;
mod equals;
mod exists;
mod geo_shape;
mod geo_within;
mod hierarchy;
mod in_values;
mod more_like_this;
mod near;
mod phrase;
mod query_string;
mod range;
mod span;
mod text;
mod values;
mod vector;

use crate::Reader;
use crate::details::Details;
use crate::evaluation::{Cut, Evaluation};
use crate::paths::TextField;
use crate::postings::{Postings, Rows};
use crate::schema::Schema;
use crate::score::Score;
use crate::unit::Unit;
use bunko_bson::ValueRef;
use bunko_errors::Result;
use std::fmt;

/// Maximum number of strings of `query`. Source: Lucene, `IndexSearcher.getMaxClauseCount`.
const QUERIES_MAX: usize = 1_024;

/// Parses the fields of an operator, except `score`.
type Parse = fn(&Reader<'_>) -> Result<Box<dyn Operator>>;

/// Source: MongoDB Atlas Search manual, "Operators and Collectors".
const OPERATORS: &[(&str, Parse)] = &[
    ("autocomplete", autocomplete::parse),
    ("compound", compound::parse),
    ("embeddedDocument", embedded_document::parse),
    ("equals", equals::parse),
    ("exists", exists::parse),
    ("geoShape", geo_shape::parse),
    ("geoWithin", geo_within::parse),
    ("hasAncestor", hierarchy::parse_ancestor),
    ("hasRoot", hierarchy::parse_root),
    ("in", in_values::parse),
    ("knnBeta", vector::parse_knn),
    ("moreLikeThis", more_like_this::parse),
    ("near", near::parse),
    ("phrase", phrase::parse),
    ("queryString", query_string::parse),
    ("range", range::parse),
    ("regex", constant_terms::parse_regex),
    ("span", span::parse),
    ("term", text::parse_term),
    ("text", text::parse),
    ("vectorSearch", vector::parse),
    ("wildcard", constant_terms::parse_wildcard),
];

/// The use of postings for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UseOfPostings {
    /// The operator reads no words, so postings do not help.
    Unneeded,
    /// Postings give the documents that may match.
    Wanted,
    /// Postings lack the counts that the operator needs.
    Impossible,
}

/// An operator, which matches and scores documents.
pub(crate) trait Operator: fmt::Debug + Send + Sync {
    /// Checks the operator against the fields of the index.
    /// # Errors
    /// `UnknownError`.
    fn check(&self, _schema: &Schema) -> Result<()> {
        Ok(())
    }

    /// Counts the words that scores depend on.
    /// # Errors
    /// Errors of counting work.
    fn count(&self, _unit: &Unit<'_>, _evaluation: &Evaluation) -> Result<()> {
        Ok(())
    }

    /// How the operator uses postings.
    fn use_of_postings(&self) -> UseOfPostings {
        UseOfPostings::Unneeded
    }

    /// The rows of the postings that may match; no other document matches. The evaluation learns the counts of
    /// [`Operator::count`].
    /// # Errors
    /// Errors of counting work.
    fn candidates(&self, _postings: &Postings, _evaluation: &Evaluation) -> Result<Rows> {
        Ok(Rows::All)
    }

    /// The score of a document; `None` if it does not match.
    /// # Errors
    /// Errors of counting work.
    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>>;

    /// Marks the tokens of a field that make the document match.
    /// # Errors
    /// Errors of counting work.
    fn mark(&self, _field: &TextField<'_>, _cut: &Cut, _evaluation: &Evaluation, _marks: &mut [bool]) -> Result<()> {
        Ok(())
    }

    /// The parts of a matching document's score.
    /// # Errors
    /// Errors of counting work.
    fn details(&self, _unit: &Unit<'_>, _evaluation: &Evaluation) -> Result<Vec<Details>> {
        Ok(Vec::new())
    }

    /// Whether some facets ignore this operator (`doesNotAffect`).
    fn spares_facets(&self) -> bool {
        false
    }

    /// The path of the embedded documents that it reads, if any.
    fn embedded_path(&self) -> Option<&str> {
        None
    }
}

/// An operator with the change of its score.
#[derive(Debug)]
pub(crate) struct Clause {
    pub name: &'static str,
    pub operator: Box<dyn Operator>,
    pub score: Score,
}

impl Clause {
    /// The names of the operators in a document; null counts as missing.
    pub fn names(reader: &Reader<'_>) -> Vec<&'static str> {
        let names = OPERATORS.iter().map(|(name, _)| *name);
        names.filter(|name| reader.document().get(name).is_some_and(|value| !matches!(value, ValueRef::Null))).collect()
    }

    /// Parses the only operator of a document that may have other fields too.
    /// # Errors
    /// If there is no operator or more than one, or it is malformed.
    pub fn parse(reader: &Reader<'_>) -> Result<Self> {
        let all = || OPERATORS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        match Self::names(reader).as_slice() {
            [] => Err(reader.failure(&format!("one of [{}] must be present", all()))),
            [name] => Self::named(name, &reader.required(reader.inner(name)?, name)?),
            _ => Err(reader.failure(&format!("only one of [{}] may be present", all()))),
        }
    }

    /// As [`Self::parse`], for a document without other fields.
    pub fn parse_alone(reader: &Reader<'_>) -> Result<Self> {
        let clause = Self::parse(reader)?;
        reader.done()?;
        Ok(clause)
    }

    fn named(name: &str, reader: &Reader<'_>) -> Result<Self> {
        let (name, parse) = OPERATORS.iter().find(|(own, _)| *own == name).expect("it is in the table");
        let operator = parse(reader)?;
        let score = Score::parse(reader)?;
        reader.done()?;
        Ok(Self { name, operator, score })
    }

    /// The score of a document; `None` if it does not match.
    pub fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        evaluation.operation.work(1)?;
        let score = self.operator.score(unit, evaluation)?;
        Ok(score.map(|score| self.score.apply(score, unit)))
    }

    /// The parts of a document's score.
    pub fn details(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<Details>> {
        let Some(raw) = self.operator.score(unit, evaluation)? else { return Ok(None) };
        let made = Details {
            value: raw,
            description: format!("{}, sum of:", self.name),
            parts: self.operator.details(unit, evaluation)?,
        };
        Ok(Some(self.score.explain(made, unit)))
    }
}

/// The strings of `query`, at least one.
/// # Errors
/// If they are missing, empty, too many, or no strings.
pub(crate) fn queries(reader: &Reader<'_>) -> Result<Vec<String>> {
    let value = reader.required(reader.value("query"), "query")?;
    let read = |value: ValueRef<'_>| match value {
        ValueRef::String("") => Err(reader.wrong("query", "cannot be empty")),
        ValueRef::String(text) => Ok(text.to_owned()),
        _ => Err(reader.wrong("query", "must be a string or an array of strings")),
    };
    let queries = match value {
        ValueRef::Array(array) => array.iter().map(read).collect::<Result<Vec<_>>>()?,
        other => vec![read(other)?],
    };
    if queries.is_empty() {
        return Err(reader.wrong("query", "cannot be empty"));
    }
    if queries.len() > QUERIES_MAX {
        return Err(reader.wrong("query", &format!("cannot have more than {QUERIES_MAX} elements")));
    }
    Ok(queries)
}

/// A path that must be a string.
/// # Errors
/// If it is missing or no string.
pub(crate) fn only_path(reader: &Reader<'_>) -> Result<String> {
    Ok(reader.required(reader.string("path")?, "path")?.to_owned())
}

/// One path or several, each a string.
/// # Errors
/// If they are missing or no strings.
pub(crate) fn string_paths(reader: &Reader<'_>) -> Result<Vec<String>> {
    match reader.required(reader.value("path"), "path")? {
        ValueRef::String(path) => Ok(vec![path.to_owned()]),
        ValueRef::Array(_) => {
            let paths = reader.required(reader.strings("path")?, "path")?;
            if paths.is_empty() { Err(reader.wrong("path", "cannot be empty")) } else { Ok(paths) }
        }
        _ => Err(reader.wrong("path", "must be a string or an array of strings")),
    }
}

/// Parses `doesNotAffect`: the facets that ignore the operator.
/// # Errors
/// If it is neither a string nor an array of strings.
pub(crate) fn does_not_affect(reader: &Reader<'_>) -> Result<Vec<String>> {
    match reader.value("doesNotAffect") {
        None => Ok(Vec::new()),
        Some(ValueRef::String(name)) => Ok(vec![name.to_owned()]),
        Some(ValueRef::Array(_)) => Ok(reader.strings("doesNotAffect")?.unwrap_or_default()),
        Some(_) => Err(reader.wrong("doesNotAffect", "must be a string or an array of strings")),
    }
}
