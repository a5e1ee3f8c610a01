//! `required`, `minProperties`, `maxProperties` and `dependencies`: the presence and number of fields.

use super::keywords::Keywords;
use super::names::Names;
use super::{Rule, Rules, Schema, arguments, failed};
use crate::evaluation::Evaluation;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};

#[derive(Debug)]
struct Required {
    specified: DocumentBuf,
    names: Names,
    /// The names in the order given.
    given: Vec<String>,
}

#[derive(Debug)]
struct Number {
    name: &'static str,
    specified: DocumentBuf,
    least: u64,
    most: u64,
}

#[derive(Debug)]
struct Dependencies {
    /// All names that dependencies require.
    names: Names,
    given: Vec<Dependency>,
}

/// The demand on a document that has a field.
#[derive(Debug)]
struct Dependency {
    field: String,
    demand: Demand,
}

#[derive(Debug)]
enum Demand {
    /// The document must have these fields too.
    Fields(Vec<String>),
    Schema(Schema),
}

pub(super) fn parse(keywords: &Keywords<'_>, rules: &mut Rules) -> Result<()> {
    if let Some(list) = arguments::array(keywords, "required")? {
        let given = arguments::distinct_strings("required", list)?;
        let names = Names::new(given.iter().copied());
        let specified = DocumentBuf::new().with("required", list);
        rules.push(Box::new(Required { specified, names, given: given.into_iter().map(str::to_owned).collect() }));
    }
    let specified = |name| keywords.get(name).map(|value| DocumentBuf::new().with(name, value)).unwrap_or_default();
    if let Some(least) = arguments::size(keywords, "minProperties")? {
        let specified = specified("minProperties");
        rules.push(Box::new(Number { name: "minProperties", specified, least, most: u64::MAX }));
    }
    if let Some(most) = arguments::size(keywords, "maxProperties")? {
        rules.push(Box::new(Number { name: "maxProperties", specified: specified("maxProperties"), least: 0, most }));
    }
    if let Some(dependencies) = arguments::document(keywords, "dependencies")? {
        rules.push(Box::new(Dependencies::parse(keywords, dependencies)?));
    }
    Ok(())
}

impl Dependencies {
    fn parse(keywords: &Keywords<'_>, dependencies: DocumentRef<'_>) -> Result<Self> {
        let mut given = Vec::new();
        for element in dependencies {
            let demand = match element.value {
                ValueRef::Document(schema) => Demand::Schema(keywords.schema(schema)?),
                ValueRef::Array(list) => {
                    let fields = arguments::distinct_strings("dependencies", list)?;
                    Demand::Fields(fields.into_iter().map(str::to_owned).collect())
                }
                _ => {
                    return Err(Failure::type_mismatch(format!(
                        "$jsonSchema keyword 'dependencies' must have objects or arrays as values, but '{}' is of type {}",
                        element.name,
                        element.value.kind().alias()
                    )));
                }
            };
            given.push(Dependency { field: element.name.to_owned(), demand });
        }
        let asked = given.iter().flat_map(|dependency| {
            let fields = match &dependency.demand {
                Demand::Fields(fields) => &fields[..],
                Demand::Schema(_) => &[],
            };
            std::iter::once(&dependency.field).chain(fields).map(String::as_str)
        });
        Ok(Self { names: Names::new(asked), given })
    }
}

impl Rule for Required {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let ValueRef::Document(document) = value else { return true };
        self.names.find(document, evaluation).all()
    }

    fn details(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
        let missing = value.as_document().map(|document| missing(&self.names, &self.given, document, evaluation));
        DocumentBuf::new()
            .with("operatorName", "required")
            .with("specifiedAs", &self.specified)
            .with("missingProperties", &missing.unwrap_or_default())
    }
}

/// The names among `fields` that the document lacks; `names` contains all of them.
fn missing(names: &Names, fields: &[String], document: DocumentRef<'_>, evaluation: &mut Evaluation<'_>) -> ArrayBuf {
    let found = names.find(document, evaluation);
    let is_missing = |field: &&String| names.place(field).is_some_and(|place| !found.has(place));
    fields.iter().filter(is_missing).map(String::as_str).collect()
}

impl Rule for Number {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let ValueRef::Document(document) = value else { return true };
        let count = document.count();
        !evaluation.goes_on(count) || (self.least..=self.most).contains(&(count as u64))
    }

    fn details(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> DocumentBuf {
        let count = value.as_document().map_or(0, DocumentRef::count);
        failed(self.name, &self.specified, "specified number of properties was not satisfied", value)
            .with("numberOfProperties", count as i32)
    }
}

impl Rule for Dependencies {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let ValueRef::Document(document) = value else { return true };
        let found = self.names.find(document, evaluation);
        let has = |field: &str| self.names.place(field).is_some_and(|place| found.has(place));
        self.given.iter().filter(|dependency| has(&dependency.field)).all(|dependency| match &dependency.demand {
            Demand::Fields(fields) => evaluation.goes_on(fields.len()) && fields.iter().all(|field| has(field)),
            Demand::Schema(schema) => schema.holds(value, evaluation),
        })
    }

    fn details(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
        let mut failing = ArrayBuf::new();
        if let ValueRef::Document(document) = value {
            let found = self.names.find(document, evaluation);
            let has = |field: &str| self.names.place(field).is_some_and(|place| found.has(place));
            for dependency in self.given.iter().filter(|dependency| has(&dependency.field)) {
                let entry = DocumentBuf::new().with("conditionalProperty", dependency.field.as_str());
                match &dependency.demand {
                    Demand::Fields(fields) => {
                        let missing: Vec<_> = fields.iter().map(String::as_str).filter(|field| !has(field)).collect();
                        if !missing.is_empty() {
                            failing.push(&entry.with("missingProperties", &missing.into_iter().collect::<ArrayBuf>()));
                        }
                    }
                    Demand::Schema(schema) if !schema.holds(value, evaluation) => {
                        failing.push(&entry.with("details", &schema.not_satisfied(value, evaluation)));
                    }
                    Demand::Schema(_) => {}
                }
            }
        }
        DocumentBuf::new().with("operatorName", "dependencies").with("failingDependencies", &failing)
    }
}
