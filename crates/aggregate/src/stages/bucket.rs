//! `$bucket`: groups documents by the range that an expression's value is in.

use super::{Definition, Stages, group, sort};
use crate::Environment;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, StringUse, Value, ValueRef, order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Expression;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::BUCKET, strings: StringUse::Collated, parse };

fn refusal(code: i32, message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode(code), message.into())
}

/// Expands to `$group` and `$sort`.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let found = value.kind().alias();
        return Err(refusal(40201, format!("Argument to $bucket stage must be an object, but found type: {found}.")));
    };
    let buckets = Buckets::parse(specification, environment)?;
    let grouping = buckets.grouping();
    let by_id = DocumentBuf::new().with("_id", 1_i32);
    let mut stages = (group::DEFINITION.parse)(ValueRef::from(&grouping), environment)?;
    stages.extend((sort::DEFINITION.parse)(ValueRef::from(&by_id), environment)?);
    Ok(stages)
}

/// The checked specification.
struct Buckets<'a> {
    group_by: ValueRef<'a>,
    boundaries: Vec<Value>,
    default: Option<Value>,
    output: Option<DocumentRef<'a>>,
}

impl<'a> Buckets<'a> {
    fn parse(specification: DocumentRef<'a>, environment: &Environment) -> Result<Self> {
        let (mut group_by, mut boundaries, mut default, mut output) = (None, None, None, None);
        for field in specification {
            match field.name {
                "groupBy" if is_expression(field.value) => group_by = Some(field.value),
                "groupBy" => {
                    let message =
                        "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression object";
                    return Err(refusal(40202, message));
                }
                "boundaries" => boundaries = Some(read_boundaries(field.value, environment)?),
                "default" => {
                    let value = constant(field.value, environment)?
                        .ok_or_else(|| refusal(40195, "The $bucket 'default' field must be a constant expression"))?;
                    default = Some(value);
                }
                "output" => match field.value {
                    ValueRef::Document(fields) => output = Some(fields),
                    _ => return Err(refusal(40196, "The $bucket 'output' field must be an object")),
                },
                other => return Err(refusal(40197, format!("Unrecognized option to $bucket: {other}."))),
            }
        }
        let (Some(group_by), Some(boundaries)) = (group_by, boundaries) else {
            return Err(refusal(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified."));
        };
        if let (Some(default), Some(lowest), Some(highest)) = (&default, boundaries.first(), boundaries.last())
            && environment.strings().compare(default.as_ref(), lowest.as_ref()).is_ge()
            && environment.strings().compare(default.as_ref(), highest.as_ref()).is_lt()
        {
            let message = "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.";
            return Err(refusal(40199, message));
        }
        Ok(Self { group_by, boundaries, default, output })
    }

    /// The equivalent `$group`.
    fn grouping(&self) -> DocumentBuf {
        let branches = self.boundaries.windows(2).map(|pair| {
            let bound = |operator: &str, bound: &Value| {
                let bound = literal(bound);
                let operands: ArrayBuf = [self.group_by, ValueRef::from(&bound)].into_iter().collect();
                DocumentBuf::new().with(operator, &operands)
            };
            let both: ArrayBuf = [bound("$gte", &pair[0]), bound("$lt", &pair[1])].iter().collect();
            let case = DocumentBuf::new().with("$and", &both);
            DocumentBuf::new().with("case", &case).with("then", &literal(&pair[0]))
        });
        let branches: ArrayBuf = branches.collect::<Vec<_>>().iter().collect();
        let mut switch = DocumentBuf::new().with("branches", &branches);
        if let Some(default) = &self.default {
            switch.append("default", &literal(default));
        }
        let mut grouping = DocumentBuf::new().with("_id", &DocumentBuf::new().with("$switch", &switch));
        match self.output {
            Some(fields) => grouping.extend(fields),
            None => grouping.append("count", &DocumentBuf::new().with("$sum", 1_i32)),
        };
        grouping
    }
}

fn literal(value: &Value) -> DocumentBuf {
    DocumentBuf::new().with("$literal", value)
}

/// Whether a value is an expression that may depend on the document.
pub(super) fn is_expression(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::String(path) => path.starts_with('$'),
        ValueRef::Document(document) => document.first().is_some_and(|first| first.name.starts_with('$')),
        _ => false,
    }
}

fn constant(value: ValueRef<'_>, environment: &Environment) -> Result<Option<Value>> {
    let scope = environment.scope.parse_scope();
    Expression::parse(value, &scope)?.constant_value(&scope)
}

fn read_boundaries(value: ValueRef<'_>, environment: &Environment) -> Result<Vec<Value>> {
    let ValueRef::Array(array) = value else {
        let message = "The $bucket 'boundaries' field must be an array, but found type: ";
        return Err(refusal(40200, format!("{message}{}.", value.kind().alias())));
    };
    let mut boundaries = Vec::new();
    for element in array.iter() {
        let boundary = constant(element, environment)?
            .ok_or_else(|| refusal(40191, "The $bucket 'boundaries' field must be an array of constant values"))?;
        boundaries.push(boundary);
    }
    if boundaries.len() < 2 {
        let found = boundaries.len();
        let message =
            format!("The $bucket 'boundaries' field must have at least 2 values, but found {found} value(s).");
        return Err(refusal(40192, message));
    }
    for pair in boundaries.windows(2) {
        let [lower, upper] = [pair[0].as_ref(), pair[1].as_ref()];
        if order::rank(lower.kind()) != order::rank(upper.kind()) {
            let message = "All values in the the 'boundaries' option to $bucket must have the same type.";
            return Err(refusal(40193, message));
        }
        if environment.strings().compare(lower, upper).is_ge() {
            let message = "The 'boundaries' option to $bucket must be sorted in ascending order.";
            return Err(refusal(40194, message));
        }
    }
    Ok(boundaries)
}
