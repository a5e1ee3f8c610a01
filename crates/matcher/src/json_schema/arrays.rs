//! `minItems`, `maxItems`, `uniqueItems`, `items` and `additionalItems`: of arrays.

use super::arguments::{self, Additional};
use super::keywords::Keywords;
use super::unordered::canonical;
use super::{Rule, Rules, Schema, failed};
use crate::evaluate::Evaluation;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, Value, ValueRef, order};
use bunko_errors::{Failure, Result};

/// Bytes of an array that count as one step of work where its elements are sorted.
const BYTES_PER_STEP: usize = 16;

#[derive(Debug)]
struct Number {
    name: &'static str,
    specified: DocumentBuf,
    least: u64,
    most: u64,
}

/// No element is there twice. The order of fields in elements that are documents does not count.
#[derive(Debug)]
struct UniqueItems;

/// One schema for all elements from an index on.
#[derive(Debug)]
struct EachItem {
    from: usize,
    schema: Schema,
}

/// A schema for each element at the beginning.
#[derive(Debug)]
struct FirstItems(Vec<Schema>);

/// There must be no more elements than that.
#[derive(Debug)]
struct NoMoreItems(usize);

pub(super) fn parse(keywords: &Keywords<'_>, rules: &mut Rules) -> Result<()> {
    let specified = |name| keywords.get(name).map(|value| DocumentBuf::new().with(name, value)).unwrap_or_default();
    if let Some(least) = arguments::size(keywords, "minItems")? {
        rules.push(Box::new(Number { name: "minItems", specified: specified("minItems"), least, most: u64::MAX }));
    }
    if let Some(most) = arguments::size(keywords, "maxItems")? {
        rules.push(Box::new(Number { name: "maxItems", specified: specified("maxItems"), least: 0, most }));
    }
    if arguments::boolean(keywords, "uniqueItems")? == Some(true) {
        rules.push(Box::new(UniqueItems));
    }
    let mut first = None;
    match keywords.get("items") {
        None => {}
        Some(ValueRef::Document(schema)) => {
            rules.push(Box::new(EachItem { from: 0, schema: Schema::of(schema)? }));
        }
        Some(ValueRef::Array(list)) => {
            let schemas = arguments::schemas("items", list)?;
            first = Some(schemas.len());
            rules.push(Box::new(FirstItems(schemas)));
        }
        Some(value) => {
            let kind = value.kind().alias();
            return Err(Failure::type_mismatch(format!(
                "$jsonSchema keyword 'items' must be an array or an object, but found an element of type {kind}"
            )));
        }
    }
    // Without a list of first items nothing is additional.
    match (arguments::additional(keywords, "additionalItems")?, first) {
        (Some(Additional::Refused), Some(first)) => rules.push(Box::new(NoMoreItems(first))),
        (Some(Additional::Schema(schema)), Some(first)) => rules.push(Box::new(EachItem { from: first, schema })),
        _ => {}
    }
    Ok(())
}

impl Rule for Number {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let ValueRef::Array(list) = value else { return true };
        let count = list.count();
        !evaluation.goes_on(count / BYTES_PER_STEP) || (self.least..=self.most).contains(&(count as u64))
    }

    fn details(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> DocumentBuf {
        let count = value.as_array().map_or(0, ArrayRef::count);
        failed(self.name, &self.specified, "array did not match specified length", value)
            .with("numberOfItems", count as i32)
    }
}

/// An element that is in the array twice.
fn duplicate(list: ArrayRef<'_>, evaluation: &mut Evaluation<'_>) -> Option<Value> {
    if !evaluation.goes_on(list.as_document().len_bytes() / BYTES_PER_STEP) {
        return None;
    }
    let mut elements: Vec<Value> = list.iter().map(canonical).collect();
    elements.sort_by(|a, b| {
        let _ = evaluation.goes_on(1);
        order::compare(a.as_ref(), b.as_ref())
    });
    let twice = elements.windows(2).position(|pair| order::equal(pair[0].as_ref(), pair[1].as_ref()));
    twice.map(|index| elements.swap_remove(index))
}

impl Rule for UniqueItems {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        !matches!(value, ValueRef::Array(list) if duplicate(list, evaluation).is_some())
    }

    fn details(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
        let specified = DocumentBuf::new().with("uniqueItems", true);
        let details = failed("uniqueItems", &specified, "found a duplicate item", value);
        match value.as_array().and_then(|list| duplicate(list, evaluation)) {
            Some(duplicate) => details.with("duplicatedValue", &duplicate),
            None => details,
        }
    }
}

/// The index of the first element that its schema does not take.
fn failing<'s>(
    list: ArrayRef<'_>,
    schema: impl Fn(usize) -> Option<&'s Schema>,
    evaluation: &mut Evaluation<'_>,
) -> Option<usize> {
    list.iter().enumerate().position(|(index, element)| {
        evaluation.goes_on(1) && schema(index).is_some_and(|schema| !schema.holds(element, evaluation))
    })
}

fn item_details<'s>(
    (name, reason): (&str, &str),
    value: ValueRef<'_>,
    schema: impl Fn(usize) -> Option<&'s Schema>,
    evaluation: &mut Evaluation<'_>,
) -> DocumentBuf {
    let details = DocumentBuf::new().with("operatorName", name).with("reason", reason);
    let list = value.as_array();
    let index = list.and_then(|list| failing(list, &schema, evaluation));
    let Some(((index, list), schema)) = index.zip(list).and_then(|found| Some(found).zip(schema(found.0))) else {
        return details;
    };
    let element = list.get(index).unwrap_or(ValueRef::Null);
    details.with("itemIndex", index as i32).with("details", &schema.not_satisfied(element, evaluation))
}

impl EachItem {
    fn of(&self, index: usize) -> Option<&Schema> {
        (index >= self.from).then_some(&self.schema)
    }
}

impl Rule for EachItem {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        !matches!(value, ValueRef::Array(list) if failing(list, |index| self.of(index), evaluation).is_some())
    }

    fn details(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
        let what = match self.from {
            0 => ("items", "At least one item did not match the sub-schema"),
            _ => ("additionalItems", "At least one additional item did not match the sub-schema"),
        };
        item_details(what, value, |index| self.of(index), evaluation)
    }
}

impl Rule for FirstItems {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        !matches!(value, ValueRef::Array(list) if failing(list, |index| self.0.get(index), evaluation).is_some())
    }

    fn details(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
        let what = ("items", "At least one item did not match the sub-schema");
        item_details(what, value, |index| self.0.get(index), evaluation)
    }
}

impl Rule for NoMoreItems {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let ValueRef::Array(list) = value else { return true };
        !evaluation.goes_on(self.0) || list.iter().nth(self.0).is_none()
    }

    fn details(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> DocumentBuf {
        let additional: ArrayBuf = value.as_array().into_iter().flat_map(ArrayRef::iter).skip(self.0).collect();
        DocumentBuf::new()
            .with("operatorName", "additionalItems")
            .with("specifiedAs", &DocumentBuf::new().with("additionalItems", false))
            .with("reason", "found additional items")
            .with("additionalItems", &additional)
    }
}
