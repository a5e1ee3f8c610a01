//! `$jsonSchema`: JSON Schema draft 4 as MongoDB has it, with `bsonType`. A schema is a list of rules, one for each
//! keyword, in the order in which error details show them; one file holds one family of keywords.
//!
//! **Invariant:** a value is looked at once for each rule that applies to it: no rule asks a document for one name after the
//! other. Fields, elements and rules are counted as the operation's work.
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

use crate::evaluate::Evaluation;
use crate::failure_details;
use crate::parse::Parser;
use crate::path::Subject;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};
use keywords::Keywords;
use std::fmt;

/// What one keyword demands of a value. A keyword for another type of value than the one at hand demands nothing.
trait Rule: fmt::Debug + Send + Sync {
    /// Whether the value is as demanded.
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool;

    /// What error details say of a value that is not as demanded.
    fn details(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf;
}

type Rules = Vec<Box<dyn Rule>>;

/// A schema, parsed.
#[derive(Debug)]
pub struct Schema {
    source: DocumentBuf,
    /// `title` and `description`, as they stand in error details.
    annotations: DocumentBuf,
    rules: Rules,
}

impl Schema {
    /// Whether documents that satisfy it have a field of that name at the top.
    pub fn requires(&self, name: &str) -> bool {
        let required = self.source.as_ref().get("required").and_then(ValueRef::as_array);
        required.is_some_and(|required| required.iter().any(|required| required.as_str() == Some(name)))
    }

    /// Parses the operand of `$jsonSchema`.
    /// # Errors
    /// `TypeMismatch` for an operand or keyword of the wrong type; `FailedToParse` for a keyword that is unknown, not
    /// supported, given twice, or that makes no sense; `BadValue` for an unknown type; 51091 for a bad pattern.
    pub(crate) fn parse(operand: ValueRef<'_>, parser: &Parser<'_>) -> Result<Self> {
        match operand {
            ValueRef::Document(schema) => Self::of(schema, parser),
            _ => Err(Failure::type_mismatch("$jsonSchema must be an object")),
        }
    }

    fn of(source: DocumentRef<'_>, parser: &Parser<'_>) -> Result<Self> {
        parser.count_condition()?;
        // Each level keeps its schema as it is written, and the operands of its keywords.
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

    /// The schema as it was written.
    pub(crate) fn source(&self) -> DocumentRef<'_> {
        self.source.as_ref()
    }

    /// Whether the whole document satisfies the schema.
    pub(crate) fn matches(&self, subject: impl Subject, evaluation: &mut Evaluation<'_>) -> bool {
        subject.document().is_some_and(|document| self.holds(ValueRef::Document(document), evaluation))
    }

    /// What a document does not satisfy: `{title, description, schemaRulesNotSatisfied}`.
    pub(crate) fn explain(&self, document: DocumentRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
        let rules = self.not_satisfied(ValueRef::Document(document), evaluation);
        self.annotations.clone().with("schemaRulesNotSatisfied", &rules)
    }

    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        self.rules.iter().all(|rule| !evaluation.goes_on(1) || rule.holds(value, evaluation))
    }

    /// The details of all rules that a value does not satisfy.
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

/// Details of the usual shape: `{operatorName, specifiedAs, reason, consideredValue}`.
fn failed(name: &str, specified: &DocumentBuf, reason: &str, value: ValueRef<'_>) -> DocumentBuf {
    let mut details =
        DocumentBuf::new().with("operatorName", name).with("specifiedAs", specified).with("reason", reason);
    failure_details::consider(&mut details, value);
    details
}
