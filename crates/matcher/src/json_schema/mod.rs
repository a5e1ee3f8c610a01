//! `$jsonSchema`: JSON Schema draft 4 as in MongoDB, with `bsonType`. A schema is a list of rules, one per keyword, in
//! the order in which error details show them; each file has one family of keywords.
//!
//! **Invariant:** each rule that applies to a value reads it once: no rule searches a document separately for each
//! name. Fields, elements and rules count as work of the operation.
//! Source: MongoDB manual, "$jsonSchema".

mod arguments;
mod arrays;
mod enumeration;
mod keywords;
mod logic;
mod members;
mod names;
mod numbers;
mod properties;
mod strings;
mod types;
mod unordered;

use crate::evaluation::Evaluation;
use crate::failure_details::consider;
use crate::parser::Parser;
use crate::path::Subject;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};
use keywords::Keywords;
use std::fmt;

/// The demand of one keyword on a value. A keyword for another type demands nothing of a value.
trait Rule: fmt::Debug + Send + Sync {
    /// Whether the value satisfies the demand.
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool;

    /// Error details for a value that does not satisfy the demand.
    fn details(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf;
}

type Rules = Vec<Box<dyn Rule>>;

/// A schema, parsed.
#[derive(Debug)]
pub struct Schema {
    source: DocumentBuf,
    /// `title` and `description`, as in error details.
    annotations: DocumentBuf,
    rules: Rules,
}

impl Schema {
    /// Whether documents must have this top-level field to satisfy the schema.
    pub fn requires(&self, name: &str) -> bool {
        let required = self.source.as_ref().get("required").and_then(ValueRef::as_array);
        required.is_some_and(|required| required.iter().any(|required| required.as_str() == Some(name)))
    }

    /// Parses the operand of `$jsonSchema`.
    /// # Errors
    /// `TypeMismatch` for an operand or keyword of the wrong type; `FailedToParse` for a keyword that is unknown,
    /// unsupported, duplicate or senseless; `BadValue` for an unknown type; 51091 for a bad pattern.
    pub(crate) fn parse(operand: ValueRef<'_>, parser: &Parser<'_>) -> Result<Self> {
        match operand {
            ValueRef::Document(schema) => Self::of(schema, parser),
            _ => Err(Failure::type_mismatch("$jsonSchema must be an object")),
        }
    }

    fn of(source: DocumentRef<'_>, parser: &Parser<'_>) -> Result<Self> {
        parser.count_condition()?;
        // Each level keeps a copy of its schema and of its keywords' operands.
        parser.will_take(2 * source.len_bytes())?;
        let keywords = Keywords::read(source, parser)?;
        let annotations = keywords.annotations()?;
        let types = types::parse(&keywords)?;
        let mut rules = Rules::new();
        strings::parse(&keywords, &mut rules)?;
        numbers::parse(&keywords, &mut rules)?;
        arrays::parse(&keywords, &mut rules)?;
        properties::parse(&keywords, &mut rules)?;
        members::parse(&keywords, &mut rules)?;
        logic::parse(&keywords, &mut rules)?;
        enumeration::parse(&keywords, &mut rules)?;
        rules.extend(types);
        Ok(Self { source: source.to_owned(), annotations, rules })
    }

    /// The schema as written.
    pub(crate) fn source(&self) -> DocumentRef<'_> {
        self.source.as_ref()
    }

    /// Whether the whole document satisfies the schema.
    pub(crate) fn matches(&self, subject: impl Subject, evaluation: &mut Evaluation<'_>) -> bool {
        subject.document().is_some_and(|document| self.holds(ValueRef::Document(document), evaluation))
    }

    /// Explains which rules a document does not satisfy: `{title, description, schemaRulesNotSatisfied}`.
    pub(crate) fn explain(&self, document: DocumentRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
        let rules = self.not_satisfied(ValueRef::Document(document), evaluation);
        self.annotations.clone().with("schemaRulesNotSatisfied", &rules)
    }

    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        self.rules.iter().all(|rule| !evaluation.goes_on(1) || rule.holds(value, evaluation))
    }

    /// The details of all rules that the value does not satisfy.
    fn not_satisfied(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> ArrayBuf {
        let mut details = ArrayBuf::new();
        for rule in &self.rules {
            if evaluation.goes_on(1) && !rule.holds(value, evaluation) {
                details.push(&rule.details(value, evaluation));
            }
        }
        details
    }
}

/// Details in the usual form: `{operatorName, specifiedAs, reason, consideredValue}`.
fn failed(name: &str, specified: &DocumentBuf, reason: &str, value: ValueRef<'_>) -> DocumentBuf {
    let mut details =
        DocumentBuf::new().with("operatorName", name).with("specifiedAs", specified).with("reason", reason);
    consider(&mut details, value);
    details
}
