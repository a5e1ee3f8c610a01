//! `allOf`, `anyOf`, `oneOf` and `not`: schemas for one value.

use super::keywords::Keywords;
use super::{Rule, Rules, Schema, arguments};
use crate::evaluation::Evaluation;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_errors::Result;

/// The number of a list's schemas that a value must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    All,
    Any,
    One,
}

#[derive(Debug)]
struct Subschemas {
    name: &'static str,
    quantity: Quantity,
    schemas: Vec<Schema>,
}

#[derive(Debug)]
struct Not(Schema);

pub(super) fn parse(keywords: &Keywords<'_>, rules: &mut Rules) -> Result<()> {
    for (name, quantity) in [("allOf", Quantity::All), ("anyOf", Quantity::Any), ("oneOf", Quantity::One)] {
        if let Some(list) = arguments::array(keywords, name)? {
            rules.push(Box::new(Subschemas { name, quantity, schemas: arguments::schemas(keywords, name, list)? }));
        }
    }
    if let Some(schema) = arguments::document(keywords, "not")? {
        rules.push(Box::new(Not(keywords.schema(schema)?)));
    }
    Ok(())
}

impl Rule for Subschemas {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let mut satisfied = self.schemas.iter().filter(|schema| schema.holds(value, evaluation));
        match self.quantity {
            Quantity::All => satisfied.count() == self.schemas.len(),
            Quantity::Any => satisfied.next().is_some(),
            Quantity::One => satisfied.next().is_some() && satisfied.next().is_none(),
        }
    }

    fn details(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
        let (mut satisfied, mut not_satisfied) = (ArrayBuf::new(), ArrayBuf::new());
        for (index, schema) in self.schemas.iter().enumerate() {
            if schema.holds(value, evaluation) {
                satisfied.push(index as i32);
            } else {
                let details = schema.not_satisfied(value, evaluation);
                let mut entry = DocumentBuf::new().with("index", index as i32);
                entry.extend(schema.annotations.as_ref());
                not_satisfied.push(&entry.with("details", &details));
            }
        }
        let details = DocumentBuf::new().with("operatorName", self.name);
        if self.quantity == Quantity::One && satisfied.count() > 1 {
            return details.with("reason", "more than one subschema matched").with("matchingSchemaIndexes", &satisfied);
        }
        details.with("schemasNotSatisfied", &not_satisfied)
    }
}

impl Rule for Not {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        !self.0.holds(value, evaluation)
    }

    fn details(&self, _: ValueRef<'_>, _: &mut Evaluation<'_>) -> DocumentBuf {
        DocumentBuf::new().with("operatorName", "not").with("reason", "child expression matched")
    }
}
