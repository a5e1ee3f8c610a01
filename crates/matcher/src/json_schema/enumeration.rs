//! `enum`: the value is in a list.

use super::keywords::Keywords;
use super::unordered::canonical;
use super::{Rule, Rules, failed};
use crate::evaluation::Evaluation;
use bunko_bson::{DocumentBuf, Value, ValueRef, order};
use bunko_errors::{Failure, Result};

/// Bytes of a value that count as one step of work.
const BYTES_PER_STEP: usize = 16;

#[derive(Debug)]
struct Enumeration {
    specified: DocumentBuf,
    /// Canonical values, sorted.
    values: Vec<Value>,
}

pub(super) fn parse(keywords: &Keywords<'_>, rules: &mut Rules) -> Result<()> {
    let list = match keywords.get("enum") {
        None => return Ok(()),
        Some(ValueRef::Array(list)) => list,
        Some(value) => {
            let kind = value.kind().alias();
            let message = format!("$jsonSchema keyword 'enum' must be an array, but found an element of type {kind}");
            return Err(Failure::type_mismatch(message));
        }
    };
    if list.is_empty() {
        return Err(Failure::failed_to_parse("$jsonSchema keyword 'enum' cannot be an empty array"));
    }
    let mut values: Vec<Value> = list.iter().map(canonical).collect();
    values.sort_by(|a, b| order::compare(a.as_ref(), b.as_ref()));
    if values.windows(2).any(|pair| order::equal(pair[0].as_ref(), pair[1].as_ref())) {
        return Err(Failure::failed_to_parse("$jsonSchema keyword 'enum' array cannot contain duplicate values."));
    }
    let specified = DocumentBuf::new().with("enum", list);
    rules.push(Box::new(Enumeration { specified, values }));
    Ok(())
}

impl Enumeration {
    fn has(&self, value: ValueRef<'_>) -> bool {
        self.values.binary_search_by(|known| order::compare(known.as_ref(), value)).is_ok()
    }
}

impl Rule for Enumeration {
    fn holds(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let len_bytes = match value {
            ValueRef::Document(document) => document.len_bytes(),
            ValueRef::Array(list) => list.as_document().len_bytes(),
            value => return self.has(value),
        };
        !evaluation.goes_on(len_bytes / BYTES_PER_STEP) || self.has(canonical(value).as_ref())
    }

    fn details(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> DocumentBuf {
        failed("enum", &self.specified, "value was not found in enum", value)
    }
}
