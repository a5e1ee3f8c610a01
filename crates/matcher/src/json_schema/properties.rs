//! `properties`, `patternProperties` and `additionalProperties`: the demands on fields.

use super::arguments::{self, Additional};
use super::keywords::Keywords;
use super::{Rule, Rules, Schema};
use crate::evaluation::Evaluation;
use crate::operands::Regex;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Element, ValueRef};
use bunko_errors::{Failure, Result};
use std::sync::Arc;

/// Schemas by field name, sorted by name.
#[derive(Debug)]
struct Properties {
    by_name: Vec<Property>,
}

#[derive(Debug)]
struct Property {
    name: String,
    /// Position in the schema, for the order of error details.
    place: usize,
    schema: Schema,
}

/// Schemas for all fields whose name matches a pattern.
#[derive(Debug)]
struct PatternProperties(Vec<(Regex, Schema)>);

/// The demand on fields that no name and no pattern covers.
#[derive(Debug)]
struct AdditionalProperties {
    properties: Arc<Properties>,
    patterns: Arc<PatternProperties>,
    demand: Additional,
}

pub(super) fn parse(keywords: &Keywords<'_>, rules: &mut Rules) -> Result<()> {
    let properties = arguments::document(keywords, "properties")?.unwrap_or(DocumentRef::EMPTY);
    let properties = Arc::new(Properties::parse(keywords, properties)?);
    let patterns = arguments::document(keywords, "patternProperties")?.unwrap_or(DocumentRef::EMPTY);
    let patterns = Arc::new(PatternProperties::parse(keywords, patterns)?);
    let additional = arguments::additional(keywords, "additionalProperties")?;
    if !properties.by_name.is_empty() {
        rules.push(Box::new(Arc::clone(&properties)));
    }
    if !patterns.0.is_empty() {
        rules.push(Box::new(Arc::clone(&patterns)));
    }
    if let Some(demand) = additional {
        rules.push(Box::new(AdditionalProperties { properties, patterns, demand }));
    }
    Ok(())
}

impl Properties {
    fn parse(keywords: &Keywords<'_>, properties: DocumentRef<'_>) -> Result<Self> {
        let property = |(place, element): (usize, Element<'_>)| match element.value {
            ValueRef::Document(schema) => {
                Ok(Property { name: element.name.to_owned(), place, schema: keywords.schema(schema)? })
            }
            _ => {
                let message = format!("Nested schema for $jsonSchema property '{}' must be an object", element.name);
                Err(Failure::type_mismatch(message))
            }
        };
        let mut by_name = properties.iter().enumerate().map(property).collect::<Result<Vec<_>>>()?;
        by_name.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { by_name })
    }

    /// The schemas for the field `name`.
    fn of(&self, name: &str) -> &[Property] {
        let from = self.by_name.partition_point(|property| *property.name < *name);
        let several = self.by_name[from..].partition_point(|property| *property.name == *name);
        &self.by_name[from..from + several]
    }
}

impl Rule for Arc<Properties> {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let ValueRef::Document(document) = value else { return true };
        document.iter().all(|element| {
            !evaluation.goes_on(1)
                || self.of(element.name).iter().all(|property| property.schema.holds(element.value, evaluation))
        })
    }

    fn details(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
        let mut failing = Vec::new();
        for element in value.as_document().unwrap_or(DocumentRef::EMPTY) {
            for property in self.of(element.name) {
                if evaluation.goes_on(1) && !property.schema.holds(element.value, evaluation) {
                    failing.push((property, element.value));
                }
            }
        }
        failing.sort_by_key(|(property, _)| property.place);
        let mut not_satisfied = ArrayBuf::new();
        for (property, value) in failing {
            let mut entry = DocumentBuf::new().with("propertyName", property.name.as_str());
            entry.extend(property.schema.annotations.as_ref());
            not_satisfied.push(&entry.with("details", &property.schema.not_satisfied(value, evaluation)));
        }
        DocumentBuf::new().with("operatorName", "properties").with("propertiesNotSatisfied", &not_satisfied)
    }
}

impl PatternProperties {
    fn parse(keywords: &Keywords<'_>, patterns: DocumentRef<'_>) -> Result<Self> {
        let pattern = |element: Element<'_>| {
            let ValueRef::Document(schema) = element.value else {
                return Err(Failure::type_mismatch(format!(
                    "$jsonSchema keyword 'patternProperties' has property '{}' which is not an object",
                    element.name
                )));
            };
            let regex = Regex::new(element.name, "").map_err(|failure| {
                let message = format!(
                    "Invalid regular expression in $jsonSchema keyword 'patternProperties': {}",
                    failure.message()
                );
                Failure::bad_value(message)
            })?;
            Ok((regex, keywords.schema(schema)?))
        };
        patterns.iter().map(pattern).collect::<Result<_>>().map(Self)
    }

    /// Whether the value of a field satisfies the schemas of all patterns that its name matches.
    fn satisfied_by(&self, element: Element<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        self.0.iter().all(|(regex, schema)| {
            !evaluation.regex(regex, Some(ValueRef::String(element.name))) || schema.holds(element.value, evaluation)
        })
    }
}

impl Rule for Arc<PatternProperties> {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let ValueRef::Document(document) = value else { return true };
        document.iter().all(|element| !evaluation.goes_on(1) || self.satisfied_by(element, evaluation))
    }

    fn details(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
        let mut details = ArrayBuf::new();
        for element in value.as_document().unwrap_or(DocumentRef::EMPTY) {
            for (regex, schema) in &self.0 {
                let is_meant = evaluation.regex(regex, Some(ValueRef::String(element.name)));
                if is_meant && evaluation.goes_on(1) && !schema.holds(element.value, evaluation) {
                    let mut entry = DocumentBuf::new().with("propertyName", element.name);
                    entry.extend(schema.annotations.as_ref());
                    let entry = entry.with("regexMatched", regex.pattern());
                    details.push(&entry.with("details", &schema.not_satisfied(element.value, evaluation)));
                }
            }
        }
        DocumentBuf::new().with("operatorName", "patternProperties").with("details", &details)
    }
}

impl AdditionalProperties {
    /// Whether no name and no pattern covers the field.
    fn is_additional(&self, name: &str, evaluation: &mut Evaluation<'_>) -> bool {
        let value = Some(ValueRef::String(name));
        self.properties.of(name).is_empty() && !self.patterns.0.iter().any(|(regex, _)| evaluation.regex(regex, value))
    }
}

impl Rule for AdditionalProperties {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let ValueRef::Document(document) = value else { return true };
        document.iter().all(|element| {
            !evaluation.goes_on(1)
                || !self.is_additional(element.name, evaluation)
                || match &self.demand {
                    Additional::Refused => false,
                    Additional::Schema(schema) => schema.holds(element.value, evaluation),
                }
        })
    }

    fn details(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
        let details = DocumentBuf::new().with("operatorName", "additionalProperties");
        let mut additional = value.as_document().unwrap_or(DocumentRef::EMPTY).iter();
        match &self.demand {
            Additional::Refused => {
                let names = additional.filter(|element| self.is_additional(element.name, evaluation));
                let names: ArrayBuf = names.map(|element| element.name).collect();
                let specified = DocumentBuf::new().with("additionalProperties", false);
                details.with("specifiedAs", &specified).with("additionalProperties", &names)
            }
            Additional::Schema(schema) => {
                let failing = additional.find(|element| {
                    self.is_additional(element.name, evaluation) && !schema.holds(element.value, evaluation)
                });
                let details = details.with("reason", "at least one additional property did not match the subschema");
                let Some(failing) = failing else { return details };
                details
                    .with("failingProperty", failing.name)
                    .with("details", &schema.not_satisfied(failing.value, evaluation))
            }
        }
    }
}
