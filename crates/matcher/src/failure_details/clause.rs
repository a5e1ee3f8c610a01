//! A validator as its author wrote it: the tree of [`Expression`] is in normal form, but details repeat the written
//! form.

use crate::expression::Expression;
use crate::parser::{Parser, holds_operators, is_operator};
use bunko_bson::{DocumentBuf, DocumentRef, Element, ValueRef};
use bunko_errors::{Failure, Result};

/// One condition of a validator.
#[derive(Debug)]
pub(crate) enum Clause {
    And(Vec<Self>),
    Or(Vec<Self>),
    Nor(Vec<Self>),
    /// `$not` with conditions on one field.
    Not(Box<Self>),
    /// One operator.
    Operator(Operator),
}

/// An operator with its operand.
#[derive(Debug)]
pub(crate) struct Operator {
    pub name: String,
    /// The filter with only this operator.
    pub specified: DocumentBuf,
    /// The parsed filter.
    pub expression: Expression,
}

impl Clause {
    /// Parses a filter.
    /// # Errors
    /// As [`Parser::filter`].
    pub fn parse(parser: &Parser<'_>, filter: DocumentRef<'_>) -> Result<Self> {
        let mut clauses = Vec::new();
        for entry in filter {
            match entry.name {
                "$and" => clauses.push(Self::And(list(parser, entry.value)?)),
                "$or" => clauses.push(Self::Or(list(parser, entry.value)?)),
                "$nor" => clauses.push(Self::Nor(list(parser, entry.value)?)),
                "$comment" => {}
                name if is_operator(name) => clauses.push(operator(parser, name, only(entry))?),
                _ => field(parser, entry, &mut clauses)?,
            }
        }
        Ok(all(clauses))
    }
}

/// The conjunction of clauses; a single clause stands for itself.
fn all(mut clauses: Vec<Clause>) -> Clause {
    if clauses.len() == 1 { clauses.remove(0) } else { Clause::And(clauses) }
}

fn list(parser: &Parser<'_>, filters: ValueRef<'_>) -> Result<Vec<Clause>> {
    let filters = filters.as_array().ok_or_else(|| Failure::bad_value("a list of filters is an array"))?;
    let filters = filters.iter().filter_map(ValueRef::as_document);
    filters.map(|filter| Clause::parse(parser, filter)).collect()
}

fn only(element: Element<'_>) -> DocumentBuf {
    DocumentBuf::new().with(element.name, element.value)
}

fn operator(parser: &Parser<'_>, name: &str, specified: DocumentBuf) -> Result<Clause> {
    let expression = parser.filter(specified.as_ref())?;
    Ok(Clause::Operator(Operator { name: name.to_owned(), specified, expression }))
}

/// Adds a clause for each condition on one field.
fn field(parser: &Parser<'_>, entry: Element<'_>, clauses: &mut Vec<Clause>) -> Result<()> {
    match entry.value {
        ValueRef::Document(condition) if holds_operators(condition) => {
            conditions(parser, entry.name, condition, clauses)
        }
        ValueRef::Regex { .. } => {
            clauses.push(operator(parser, "$regex", only(entry))?);
            Ok(())
        }
        _ => {
            clauses.push(operator(parser, "$eq", only(entry))?);
            Ok(())
        }
    }
}

fn conditions(parser: &Parser<'_>, path: &str, condition: DocumentRef<'_>, clauses: &mut Vec<Clause>) -> Result<()> {
    for element in condition {
        match (element.name, element.value) {
            // The clause of the `$regex` beside them covers the options.
            ("$options", _) if condition.get("$regex").is_some() => {}
            ("$regex", _) => {
                let mut both = only(element);
                if let Some(options) = condition.get("$options") {
                    both.append("$options", options);
                }
                clauses.push(operator(parser, "$regex", DocumentBuf::new().with(path, &both))?);
            }
            ("$not", negated) => {
                let mut inner = Vec::new();
                field(parser, Element { name: path, value: negated }, &mut inner)?;
                clauses.push(Clause::Not(Box::new(all(inner))));
            }
            (name, _) => {
                let specified = DocumentBuf::new().with(path, &only(element));
                clauses.push(operator(parser, name, specified)?);
            }
        }
    }
    Ok(())
}
