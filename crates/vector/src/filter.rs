//! Filters of `$vectorSearch`: a part of the query language, with rules of its own. Null equals only null, not a
//! missing field; an array passes if one of its elements does.
//! Source: MongoDB manual, "Run Vector Search Queries", "Filter"; answers of MongoDB 8.2.

use crate::bitmap::Bitmap;
use crate::filter_column::FilterColumn;
use crate::token::{self, Class};
use crate::token_test::TokenTest;
use crate::{Definition, query_error};
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::ops::Bound;

/// Greatest depth of nested filters.
const DEPTH_MAX: usize = 100;

/// A condition that documents must pass to be searched.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// Documents that pass all parts.
    All(Vec<Filter>),
    /// Documents that pass at least one part.
    Any(Vec<Filter>),
    /// Documents that do not pass the part.
    Not(Box<Filter>),
    /// Documents whose value at a path passes a test.
    Field(String, TokenTest),
}

impl Filter {
    /// Reads a filter. Error messages call it `name`.
    /// # Errors
    /// [`query_error()`] if the filter is malformed, too deep or has an operator that is not supported.
    pub fn parse(name: &str, filter: DocumentRef<'_>) -> Result<Self> {
        document(name, filter, 0)
    }

    /// Checks that an index has all paths of the filter.
    /// # Errors
    /// [`query_error()`] that names the first path that is missing.
    pub fn check(&self, definition: &Definition) -> Result<()> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().try_for_each(|part| part.check(definition)),
            Self::Not(part) => part.check(definition),
            Self::Field(path, _) if definition.filters.contains(path) => Ok(()),
            Self::Field(path, _) => Err(query_error(format!("Path '{path}' needs to be indexed as filter"))),
        }
    }

    /// Whether a document passes.
    pub fn passes(&self, document: DocumentRef<'_>) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.passes(document)),
            Self::Any(parts) => parts.iter().any(|part| part.passes(document)),
            Self::Not(part) => !part.passes(document),
            Self::Field(path, test) => test.passes(&token::of_document(document, path)),
        }
    }

    /// The rows below `rows` that pass. `column` finds the postings of the paths that [`Self::check`] accepted.
    /// # Errors
    /// As [`OperationContext::work`].
    pub(crate) fn rows<'c>(
        &self,
        rows: usize,
        column: &dyn Fn(&str) -> Option<&'c FilterColumn>,
        operation: &OperationContext,
    ) -> Result<Bitmap> {
        // Each part fills and combines a set of all rows.
        operation.work(1 + rows / 512)?;
        Ok(match self {
            Self::All(parts) => {
                let mut all = Bitmap::full(rows);
                for part in parts {
                    all.and(&part.rows(rows, column, operation)?);
                }
                all
            }
            Self::Any(parts) => {
                let mut any = Bitmap::empty(rows);
                for part in parts {
                    any.or(&part.rows(rows, column, operation)?);
                }
                any
            }
            Self::Not(part) => {
                let mut others = Bitmap::full(rows);
                others.and_not(&part.rows(rows, column, operation)?);
                others
            }
            Self::Field(path, test) => {
                column(path).map_or_else(|| Bitmap::empty(rows), |column| column.rows(test, rows))
            }
        })
    }
}

fn document(name: &str, filter: DocumentRef<'_>, depth: usize) -> Result<Filter> {
    if depth == DEPTH_MAX {
        return Err(query_error(format!("\"{name}\" is nested too deeply")));
    }
    let mut parts = Vec::new();
    for field in filter {
        let path = format!("{name}.{}", field.name);
        parts.push(match field.name {
            "$and" => Filter::All(clauses(&path, field.value, depth)?),
            "$or" => Filter::Any(clauses(&path, field.value, depth)?),
            "$nor" => Filter::Not(Box::new(Filter::Any(clauses(&path, field.value, depth)?))),
            operator if operator.starts_with('$') => {
                return Err(query_error(format!("\"{name}\" has an operator that is not supported: {operator}")));
            }
            of => condition(&path, of, field.value, depth)?,
        });
    }
    Ok(match parts.len() {
        1 => parts.remove(0),
        _ => Filter::All(parts),
    })
}

fn clauses(name: &str, value: ValueRef<'_>, depth: usize) -> Result<Vec<Filter>> {
    let ValueRef::Array(array) = value else {
        return Err(query_error(format!("\"{name}\" must be an array")));
    };
    if array.is_empty() {
        return Err(query_error(format!("\"{name}\" cannot be empty")));
    }
    let clause = |(position, clause): (usize, ValueRef<'_>)| match clause {
        ValueRef::Document(clause) => document(&format!("{name}[{position}]"), clause, depth + 1),
        _ => Err(query_error(format!("\"{name}[{position}]\" must be a document"))),
    };
    array.iter().enumerate().map(clause).collect()
}

/// Reads the condition of a field: a value, or a document of operators.
fn condition(name: &str, of: &str, value: ValueRef<'_>, depth: usize) -> Result<Filter> {
    match value {
        ValueRef::Document(operators) if operators.first().is_some_and(|first| first.name.starts_with('$')) => {
            all_operators(name, of, operators, depth)
        }
        value => Ok(Filter::Field(of.to_owned(), equal(name, value)?)),
    }
}

fn all_operators(name: &str, of: &str, operators: DocumentRef<'_>, depth: usize) -> Result<Filter> {
    if depth == DEPTH_MAX {
        return Err(query_error(format!("\"{name}\" is nested too deeply")));
    }
    let parts =
        operators.iter().map(|field| operator(&format!("{name}.{}", field.name), of, field.name, field.value, depth));
    let mut parts = parts.collect::<Result<Vec<_>>>()?;
    Ok(match parts.len() {
        1 => parts.remove(0),
        _ => Filter::All(parts),
    })
}

fn operator(name: &str, of: &str, operator: &str, value: ValueRef<'_>, depth: usize) -> Result<Filter> {
    let field = |test| Filter::Field(of.to_owned(), test);
    let not = |filter| Filter::Not(Box::new(filter));
    Ok(match operator {
        "$eq" => field(equal(name, value)?),
        "$ne" => not(field(equal(name, value)?)),
        "$in" => field(any_of(name, value)?),
        "$nin" => not(field(any_of(name, value)?)),
        "$gt" | "$gte" | "$lt" | "$lte" => field(compared(name, operator, value)?),
        "$exists" => match value {
            ValueRef::Boolean(true) => field(TokenTest::Exists),
            ValueRef::Boolean(false) => not(field(TokenTest::Exists)),
            _ => return Err(query_error(format!("\"{name}\" must be a boolean"))),
        },
        "$not" => match value {
            ValueRef::Document(operators) if operators.first().is_some_and(|first| first.name.starts_with('$')) => {
                not(all_operators(name, of, operators, depth + 1)?)
            }
            _ => return Err(query_error(format!("\"{name}\" must be a document of operators"))),
        },
        _ => return Err(query_error(format!("\"{name}\" is an operator that is not supported"))),
    })
}

fn token_of(name: &str, value: ValueRef<'_>) -> Result<Box<[u8]>> {
    token::of(value).ok_or_else(|| {
        let kind = value.kind().alias();
        query_error(format!(
            "\"{name}\" must be a boolean, a date, a number, an objectId, a string, a UUID or null, but is {kind}"
        ))
    })
}

fn equal(name: &str, value: ValueRef<'_>) -> Result<TokenTest> {
    Ok(TokenTest::AnyOf(vec![token_of(name, value)?]))
}

fn any_of(name: &str, value: ValueRef<'_>) -> Result<TokenTest> {
    let ValueRef::Array(array) = value else {
        return Err(query_error(format!("\"{name}\" must be an array")));
    };
    if array.is_empty() {
        return Err(query_error(format!("\"{name}\" cannot be empty")));
    }
    let mut class = None;
    let mut tokens = Vec::new();
    for (position, element) in array.iter().enumerate() {
        let name = format!("{name}[{position}]");
        tokens.push(token_of(&name, element)?);
        let own = Class::of(element);
        if own == Some(Class::Null) {
            return Err(query_error(format!("\"{name}\" must not be null")));
        }
        if *class.get_or_insert(own) != own {
            return Err(query_error(format!("\"{name}\" must have the same type as the elements before it")));
        }
    }
    Ok(TokenTest::AnyOf(tokens))
}

fn compared(name: &str, operator: &str, value: ValueRef<'_>) -> Result<TokenTest> {
    if Class::of(value) == Some(Class::Null) {
        return Err(query_error(format!("\"{name}\" must not be null")));
    }
    let token = token_of(name, value)?;
    let (first, end) = token::class_bounds(&token);
    let token = token.into_vec();
    Ok(match operator {
        "$gt" => TokenTest::Within(Bound::Excluded(token), end),
        "$gte" => TokenTest::Within(Bound::Included(token), end),
        "$lt" => TokenTest::Within(first, Bound::Excluded(token)),
        _ => TokenTest::Within(first, Bound::Included(token)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{ArrayBuf, DocumentBuf};

    fn parsed(field: &str, value: ValueRef<'_>) -> Result<Filter> {
        Filter::parse("filter", DocumentBuf::new().with(field, value).as_ref())
    }

    fn operator<'v>(name: &str, value: impl Into<ValueRef<'v>>) -> DocumentBuf {
        DocumentBuf::new().with(name, value.into())
    }

    #[test]
    fn null_is_not_missing_and_arrays_pass_by_an_element() {
        let tags: ArrayBuf = ["x", "y"].into_iter().collect();
        let document = DocumentBuf::new().with("n", ValueRef::Null).with("tags", &tags).with("i", 5_i64);
        let passes = |filter: &DocumentBuf| Filter::parse("filter", filter.as_ref()).unwrap().passes(document.as_ref());
        let field = |name: &str, value: ValueRef<'_>| DocumentBuf::new().with(name, value);
        assert!(passes(&field("n", ValueRef::Null)) && !passes(&field("missing", ValueRef::Null)));
        assert!(passes(&field("tags", ValueRef::String("y"))) && !passes(&field("tags", ValueRef::String("z"))));
        assert!(passes(&DocumentBuf::new().with("i", &operator("$gte", 5.0))));
        assert!(!passes(&DocumentBuf::new().with("i", &operator("$lt", "text"))));
        assert!(passes(&DocumentBuf::new().with("missing", &operator("$ne", 1))));
        assert!(passes(&DocumentBuf::new().with("n", &operator("$exists", true))));
        assert!(passes(&DocumentBuf::new()));
    }

    #[test]
    fn unsupported_filters_have_the_code_of_the_search_node() {
        let empty = ArrayBuf::new();
        let mut mixed = ArrayBuf::new();
        mixed.push(1).push("x");
        let mut null = ArrayBuf::new();
        null.push(ValueRef::Null);
        let inner = DocumentBuf::new().with("a", 1);
        for (name, value) in [
            ("$and", ValueRef::Array(empty.as_ref())),
            ("$or", ValueRef::Document(inner.as_ref())),
            ("$not", ValueRef::Document(inner.as_ref())),
            ("$expr", ValueRef::Document(inner.as_ref())),
            ("year", ValueRef::Document(inner.as_ref())),
            ("year", ValueRef::Array(mixed.as_ref())),
            ("year", ValueRef::MinKey),
            ("year", ValueRef::Document(operator("$in", &empty).as_ref())),
            ("year", ValueRef::Document(operator("$in", &mixed).as_ref())),
            ("year", ValueRef::Document(operator("$in", &null).as_ref())),
            ("year", ValueRef::Document(operator("$exists", 1).as_ref())),
            ("year", ValueRef::Document(operator("$regex", "x").as_ref())),
            ("year", ValueRef::Document(operator("$gt", ValueRef::MaxKey).as_ref())),
            ("year", ValueRef::Document(operator("$not", 1).as_ref())),
        ] {
            assert_eq!(parsed(name, value).map_err(|failure| failure.code().0), Err(8), "{name}: {value:?}");
        }
    }

    #[test]
    fn deep_filters_are_refused() {
        let mut filter = DocumentBuf::new().with("a", 1);
        for _ in 0..150 {
            let clauses: ArrayBuf = std::iter::once(&filter).collect();
            filter = DocumentBuf::new().with("$and", &clauses);
        }
        assert_eq!(Filter::parse("filter", filter.as_ref()).unwrap_err().code().0, 8);
    }
}
