//! The request of a `$vectorSearch` stage.
//! Source: MongoDB manual, "Run Vector Search Queries"; answers of MongoDB 8.2.

use crate::similarity::normalize;
use crate::{ComponentKind, Components, Definition, Filter, Similarity, query_error};
use bunko_bson::{DocumentRef, Value, ValueRef, number};
use bunko_errors::Result;

/// Greatest number of candidates of an approximate search.
const CANDIDATES_MAX: i32 = 10_000;
/// First limit that an exact search refuses.
const EXACT_LIMIT_END: i32 = 2_147_483_631;

/// A search as it was asked for, not yet checked against an index.
#[derive(Clone, Debug)]
pub struct Request {
    /// The index's name.
    pub index: String,
    /// Path of the field whose vectors are searched.
    pub path: String,
    /// The vector that the results are nearest to.
    pub query: Components,
    /// Greatest number of documents returned; at least 1.
    pub limit: usize,
    /// Number of candidates of an approximate search; `None` for an exact one.
    pub candidates: Option<usize>,
    /// Filters that documents must pass.
    pub filters: Vec<Filter>,
    /// `_id` of documents that `explain` reports on.
    pub traced: Vec<Value>,
}

/// A search that was checked against an index.
#[derive(Debug)]
pub(crate) struct Prepared<'r> {
    /// Position of the field among the index's vector fields.
    pub(crate) column: usize,
    /// The query's vector, normalized as the field's vectors are.
    pub(crate) query: Components,
    pub(crate) request: &'r Request,
}

impl Request {
    /// Reads the specification of the stage. Unknown fields are ignored.
    /// # Errors
    /// [`query_error()`] for the first field that is wrong.
    pub fn parse(specification: DocumentRef<'_>) -> Result<Self> {
        let given = |name: &str| specification.get(name).filter(|value| !value.is_nullish());
        let index = required("index", string("index", given("index"))?)?;
        if index.is_empty() {
            return Err(query_error("\"index\" cannot be empty"));
        }
        let path = required("path", string("path", given("path"))?)?;
        let query = match (given("queryVector"), given("query")) {
            (Some(_), Some(_)) | (None, None) => {
                return Err(query_error("exactly one of \"query\" and \"queryVector\" must be present"));
            }
            (None, Some(_)) => {
                return Err(query_error(format!("\"query\" is not supported: '{path}' is not indexed as autoEmbed")));
            }
            (Some(vector), None) => Components::queried(vector)?,
        };
        if given("model").is_some() {
            return Err(query_error("\"model\" cannot be present together with \"queryVector\""));
        }
        let is_exact = boolean("exact", given("exact"))?.unwrap_or(false);
        let candidates = integer("numCandidates", given("numCandidates"))?;
        let limit = required("limit", integer("limit", given("limit"))?)?;
        if limit < 1 {
            return Err(query_error("\"limit\" must be positive"));
        }
        check_candidates(is_exact, candidates, limit)?;
        let mut filters = Vec::new();
        for name in ["filter", "parentFilter"] {
            match given(name) {
                None => {}
                Some(ValueRef::Document(filter)) => filters.push(Filter::parse(name, filter)?),
                Some(_) => return Err(query_error(format!("\"{name}\" must be a document"))),
            }
        }
        check_preference(given("searchNodePreference"))?;
        if boolean("returnStoredSource", given("returnStoredSource"))? == Some(true) {
            return Err(query_error("\"returnStoredSource\" is not supported yet"));
        }
        let traced = traced(given("explainOptions"))?;
        let (limit, candidates) = (limit as usize, candidates.map(|candidates| candidates as usize));
        Ok(Self { index: index.to_owned(), path: path.to_owned(), query, limit, candidates, filters, traced })
    }

    /// Checks the request against the index that it names.
    /// # Errors
    /// [`query_error()`] for the first field that is wrong.
    pub fn check(&self, definition: &Definition) -> Result<()> {
        self.prepare(definition).map(drop)
    }

    /// Checks the request as [`Self::check`] does, and returns the facts that a search needs.
    /// # Errors
    /// As [`Self::check`].
    pub(crate) fn prepare(&self, definition: &Definition) -> Result<Prepared<'_>> {
        let column = definition.vector(&self.path);
        let column = column.ok_or_else(|| query_error(format!("{} is not indexed as vector", self.path)))?;
        let field = &definition.vectors[column];
        let mut query = self.query.clone();
        if query.dimensions() != field.dimensions {
            return Err(query_error(format!(
                "vector field is indexed with {} dimensions but queried with {}",
                field.dimensions,
                query.dimensions()
            )));
        }
        if !query.are_finite() {
            return Err(query_error("\"queryVector\" must have finite elements only"));
        }
        if query.kind() == ComponentKind::Bits && field.similarity != Similarity::Euclidean {
            return Err(query_error("binary vectors can be compared by euclidean similarity only"));
        }
        if field.similarity == Similarity::Cosine {
            let has_length = match &mut query {
                Components::Float32(numbers) => normalize(numbers),
                Components::Int8(bytes) => bytes.iter().any(|byte| *byte != 0),
                Components::Bits(_) => true,
            };
            if !has_length {
                return Err(query_error("\"queryVector\" cannot be a zero vector where the similarity is cosine"));
            }
        }
        self.filters.iter().try_for_each(|filter| filter.check(definition))?;
        if self.candidates.is_none() && self.limit >= EXACT_LIMIT_END as usize {
            return Err(query_error(format!("\"limit\" must be below {EXACT_LIMIT_END} in an exact search")));
        }
        Ok(Prepared { column, query, request: self })
    }
}

fn required<T>(name: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| query_error(format!("\"{name}\" is required")))
}

fn string<'v>(name: &str, value: Option<ValueRef<'v>>) -> Result<Option<&'v str>> {
    match value {
        None => Ok(None),
        Some(ValueRef::String(text)) => Ok(Some(text)),
        Some(_) => Err(query_error(format!("\"{name}\" must be a string"))),
    }
}

fn boolean(name: &str, value: Option<ValueRef<'_>>) -> Result<Option<bool>> {
    match value {
        None => Ok(None),
        Some(ValueRef::Boolean(boolean)) => Ok(Some(boolean)),
        Some(_) => Err(query_error(format!("\"{name}\" must be a boolean"))),
    }
}

/// Reads a 32-bit integer, which may be sent as a double; `None` if it is missing.
fn integer(name: &str, value: Option<ValueRef<'_>>) -> Result<Option<i32>> {
    let Some(value) = value else { return Ok(None) };
    let overflow = || query_error(format!("\"{name}\" overflowed"));
    match value {
        ValueRef::Int32(_) | ValueRef::Int64(_) => {}
        ValueRef::Double(number) if number.is_infinite() => return Err(overflow()),
        ValueRef::Double(number) if number.fract() == 0.0 => {
            let is_small = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
            return if is_small { Ok(Some(number as i32)) } else { Err(overflow()) };
        }
        _ => return Err(query_error(format!("\"{name}\" must be an integer"))),
    }
    let number = number::as_i64_exact(value).and_then(|number| i32::try_from(number).ok());
    number.map(Some).ok_or_else(overflow)
}

fn check_candidates(is_exact: bool, candidates: Option<i32>, limit: i32) -> Result<()> {
    match (is_exact, candidates) {
        (true, None) => Ok(()),
        (true, Some(_)) => Err(query_error("\"numCandidates\" must be omitted in an exact search")),
        (false, None) => Err(query_error("\"numCandidates\" is required for approximate vector search")),
        (false, Some(candidates)) if !(1..=CANDIDATES_MAX).contains(&candidates) => {
            Err(query_error(format!("\"numCandidates\" must be within bounds [1, {CANDIDATES_MAX}]")))
        }
        (false, Some(candidates)) if candidates < limit => {
            Err(query_error("\"numCandidates\" must be greater than or equal to \"limit\""))
        }
        (false, Some(_)) => Ok(()),
    }
}

/// Checks `searchNodePreference`. It has no effect, as there is only one search node.
fn check_preference(value: Option<ValueRef<'_>>) -> Result<()> {
    match value {
        None => Ok(()),
        Some(ValueRef::Document(preference)) => {
            let name = "searchNodePreference.key";
            let key = preference.get("key").filter(|key| !key.is_nullish());
            required(name, string(name, key)?).map(drop)
        }
        Some(_) => Err(query_error("\"searchNodePreference\" must be a document")),
    }
}

fn traced(value: Option<ValueRef<'_>>) -> Result<Vec<Value>> {
    let name = "explainOptions.traceDocumentIds";
    let options = match value {
        None => return Ok(Vec::new()),
        Some(ValueRef::Document(options)) => options,
        Some(_) => return Err(query_error("\"explainOptions\" must be a document")),
    };
    match options.get("traceDocumentIds").filter(|ids| !ids.is_nullish()) {
        None => Err(query_error(format!("\"{name}\" is required"))),
        Some(ValueRef::Array(ids)) if ids.is_empty() => Err(query_error(format!("\"{name}\" cannot be empty"))),
        Some(ValueRef::Array(ids)) => Ok(ids.iter().map(ValueRef::to_value).collect()),
        Some(_) => Err(query_error(format!("\"{name}\" must be an array"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{ArrayBuf, DocumentBuf};

    fn asked(changes: &[(&str, ValueRef<'_>)]) -> Result<Request> {
        let vector: ArrayBuf = [1.0, 0.0].into_iter().collect();
        let usual = DocumentBuf::new()
            .with("index", "i")
            .with("path", "v")
            .with("queryVector", &vector)
            .with("numCandidates", 10)
            .with("limit", 5);
        let mut all = DocumentBuf::new();
        for field in usual.as_ref() {
            if !changes.iter().any(|(name, _)| *name == field.name) {
                all.append(field.name, field.value);
            }
        }
        for (name, value) in changes {
            all.append(name, *value);
        }
        Request::parse(all.as_ref())
    }

    #[test]
    fn wrong_fields_are_refused_with_one_code() {
        let empty = DocumentBuf::new();
        for change in [
            ("index", ValueRef::Null),
            ("index", ValueRef::String("")),
            ("path", ValueRef::Int32(1)),
            ("queryVector", ValueRef::Null),
            ("query", ValueRef::Document(empty.as_ref())),
            ("model", ValueRef::String("m")),
            ("exact", ValueRef::Int32(1)),
            ("exact", ValueRef::Boolean(true)),
            ("numCandidates", ValueRef::Null),
            ("numCandidates", ValueRef::Int32(0)),
            ("numCandidates", ValueRef::Int32(10_001)),
            ("numCandidates", ValueRef::Double(10.5)),
            ("limit", ValueRef::Null),
            ("limit", ValueRef::Int32(11)),
            ("limit", ValueRef::Int64(1 << 40)),
            ("limit", ValueRef::Double(f64::INFINITY)),
            ("limit", ValueRef::Double(f64::NAN)),
            ("filter", ValueRef::Int32(1)),
            ("parentFilter", ValueRef::String("x")),
            ("searchNodePreference", ValueRef::Document(empty.as_ref())),
            ("explainOptions", ValueRef::Document(empty.as_ref())),
        ] {
            assert_eq!(asked(&[change]).map_err(|failure| failure.code().0).err(), Some(8), "{change:?}");
        }
    }

    #[test]
    fn null_fields_count_as_missing_and_unknown_fields_mean_nothing() {
        let asked = asked(&[
            ("exact", ValueRef::Boolean(true)),
            ("numCandidates", ValueRef::Null),
            ("limit", ValueRef::Double(3.0)),
            ("parentFilter", ValueRef::Null),
            ("unknown", ValueRef::MinKey),
        ]);
        let asked = asked.unwrap();
        assert_eq!((asked.limit, asked.candidates, asked.filters.len()), (3, None, 0));
    }
}
