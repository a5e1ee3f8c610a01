//! `minItems`, `maxItems`, `uniqueItems`, `items` and `additionalItems`: keywords for arrays.

use super::arguments::{self, Additional};
use super::keywords::Keywords;
use super::unordered::canonical;
use super::{Rule, Rules, Schema, failed};
use crate::evaluation::Evaluation;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, Value, ValueRef, order};
use bunko_errors::{Failure, Result};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Bytes of an array that count as one step of work when its elements are compared.
const BYTES_PER_STEP: usize = 16;
/// Steps of work to look up an element among all earlier ones.
const STEPS_PER_ELEMENT: usize = 4;

#[derive(Debug)]
struct Number {
    name: &'static str,
    specified: DocumentBuf,
    least: u64,
    most: u64,
}

/// All elements are distinct. The order of fields in documents does not matter.
#[derive(Debug)]
struct UniqueItems;

/// One schema for all elements from an index.
#[derive(Debug)]
struct EachItem {
    from: usize,
    schema: Schema,
}

/// Schemas for the first elements, one each.
#[derive(Debug)]
struct FirstItems(Vec<Schema>);

/// Allows at most this number of elements.
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
            rules.push(Box::new(EachItem { from: 0, schema: keywords.schema(schema)? }));
        }
        Some(ValueRef::Array(list)) => {
            let schemas = arguments::schemas(keywords, "items", list)?;
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
    // Without a list of first items, no item is additional.
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

/// A canonical value with an order.
struct Ordered(Value);

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        order::compare(self.0.as_ref(), other.0.as_ref())
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered {}

/// The first element that equals an earlier one. Elements go into a tree, since a sort could not be interrupted by the
/// operation.
fn duplicate(list: ArrayRef<'_>, evaluation: &mut Evaluation<'_>) -> Option<Value> {
    let mut before = BTreeSet::new();
    for element in list.iter() {
        let bytes = match element {
            ValueRef::Document(document) => document.len_bytes(),
            ValueRef::Array(list) => list.as_document().len_bytes(),
            ValueRef::String(text) => text.len(),
            _ => 0,
        };
        if !evaluation.goes_on(STEPS_PER_ELEMENT + bytes / BYTES_PER_STEP) {
            return None;
        }
        if let Some(twice) = before.replace(Ordered(canonical(element))) {
            return Some(twice.0);
        }
    }
    None
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

/// The index of the first element that does not satisfy its schema.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filter;
    use bunko_errors::ErrorCode;
    use bunko_operation::{Interruption, MemoryLimits, OperationContext};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Stops the operation at the last of this many checks.
    struct Checks(AtomicU32);

    impl Interruption for Checks {
        fn reason(&self) -> Option<Failure> {
            let is_last = self.0.fetch_sub(1, Ordering::Relaxed) == 1;
            is_last.then(|| Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted"))
        }
    }

    #[test]
    fn a_look_for_duplicates_is_left_when_the_operation_is_to_end() {
        let mut list = ArrayBuf::new();
        for place in 0..100_000 {
            list.push(format!("text {}", place * 7919 % 100_000).as_str());
        }
        let document = DocumentBuf::new().with("a", &list);
        let unique = DocumentBuf::new().with("a", &DocumentBuf::new().with("uniqueItems", true));
        let schema = DocumentBuf::new().with("$jsonSchema", &DocumentBuf::new().with("properties", &unique));
        let filter = Filter::parse(schema.as_ref()).expect("a schema");
        let within = |checks: &Arc<Checks>| {
            let operation = OperationContext::new(Arc::clone(checks) as _, MemoryLimits::none());
            filter.matches_within(document.as_ref(), &operation)
        };
        let unlimited = Arc::new(Checks(AtomicU32::new(u32::MAX)));
        assert!(matches!(within(&unlimited), Ok(true)));
        let checks = u32::MAX - unlimited.0.load(Ordering::Relaxed);
        assert!(checks > 500, "{checks} checks during a look at 100,000 elements");
        for last in [1, checks / 2, checks] {
            assert!(within(&Arc::new(Checks(AtomicU32::new(last)))).is_err(), "at check {last} of {checks}");
        }
    }
}
