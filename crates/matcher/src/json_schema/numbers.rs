//! `multipleOf`, `maximum`, `minimum`, `exclusiveMaximum` and `exclusiveMinimum`: keywords for numbers.

use super::keywords::Keywords;
use super::{Rule, Rules, arguments, failed};
use crate::comparison::Comparison;
use crate::evaluation::Evaluation;
use bunko_bson::{Decimal128, DocumentBuf, StringOrder, Value, ValueRef, number};
use bunko_errors::{Failure, Result};

#[derive(Debug)]
struct Bound {
    name: &'static str,
    specified: DocumentBuf,
    op: Comparison,
    operand: Value,
}

#[derive(Debug)]
struct MultipleOf {
    specified: DocumentBuf,
    divisor: Decimal128,
}

pub(super) fn parse(keywords: &Keywords<'_>, rules: &mut Rules) -> Result<()> {
    if let Some(value) = arguments::number(keywords, "multipleOf")? {
        let specified = DocumentBuf::new().with("multipleOf", value);
        rules.push(Box::new(MultipleOf { specified, divisor: divisor(value)? }));
    }
    let bounds = [
        ("maximum", "exclusiveMaximum", Comparison::Lte, Comparison::Lt),
        ("minimum", "exclusiveMinimum", Comparison::Gte, Comparison::Gt),
    ];
    for (name, exclusive, including, excluding) in bounds {
        let bound = arguments::number(keywords, name)?;
        let excludes = arguments::boolean(keywords, exclusive)?;
        let Some(bound) = bound else {
            if excludes.is_some() {
                return Err(Failure::failed_to_parse(format!(
                    "$jsonSchema keyword '{exclusive}' requires the presence of the keyword '{name}'"
                )));
            }
            continue;
        };
        let mut specified = DocumentBuf::new().with(name, bound);
        if let Some(excludes) = excludes {
            specified.append(exclusive, excludes);
        }
        let op = if excludes == Some(true) { excluding } else { including };
        rules.push(Box::new(Bound { name, specified, op, operand: bound.to_value() }));
    }
    Ok(())
}

fn divisor(value: ValueRef<'_>) -> Result<Decimal128> {
    let divisor = decimal(value);
    if divisor.is_nan() || divisor.is_infinite() {
        return Err(Failure::bad_value("$jsonSchema keyword 'multipleOf' must be a finite number"));
    }
    if divisor.is_negative() || divisor.is_zero() {
        return Err(Failure::failed_to_parse("$jsonSchema keyword 'multipleOf' must have a positive value"));
    }
    Ok(divisor)
}

/// Converts a number to a decimal. A double is rounded to 15 digits, so that 0.3 is a multiple of 0.1.
fn decimal(value: ValueRef<'_>) -> Decimal128 {
    match value {
        ValueRef::Decimal128(decimal) => decimal,
        ValueRef::Double(double) => Decimal128::from_f64(double),
        value => number::as_i64_exact(value).map_or(Decimal128::NAN, Decimal128::from_i64),
    }
}

impl Rule for Bound {
    fn holds(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> bool {
        !value.is_number() || self.op.matches(Some(value), self.operand.as_ref(), StringOrder::BYTES)
    }

    fn details(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> DocumentBuf {
        failed(self.name, &self.specified, "comparison failed", value)
    }
}

impl Rule for MultipleOf {
    fn holds(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> bool {
        !value.is_number() || decimal(value).remainder(self.divisor).is_zero()
    }

    fn details(&self, value: ValueRef<'_>, _: &mut Evaluation<'_>) -> DocumentBuf {
        failed("multipleOf", &self.specified, "considered value is not a multiple of the specified value", value)
    }
}
