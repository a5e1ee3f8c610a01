//! `$bucketAuto`: groups documents into a number of ranges of about equal size.

use super::bucket::is_expression;
use super::placed::{Placed, PlacedInOrder, place};
use super::preferred_numbers::Granularity;
use super::stage_memory::too_large;
use super::{Definition, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::{DocumentStream, Documents, Environment, Flow};
use bunko_bson::key_string::Direction;
use bunko_bson::{DocumentBuf, DocumentRef, Element, StringUse, Value, ValueRef, number, order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Accumulator, AccumulatorExpression, Dependencies, Expression, Offered};
use bunko_operation::Gatherer;
use bunko_query::append_spilled;
use bunko_scratch::{Sorter, Spilled};
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::BUCKET_AUTO, strings: StringUse::Collated, parse };

struct BucketAuto {
    group_by: Expression,
    buckets: usize,
    fields: Vec<(String, AccumulatorExpression)>,
    granularity: Option<Granularity>,
}

fn refusal(code: i32, message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode(code), message.into())
}

fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let found = value.kind().alias();
        let message = format!("The argument to $bucketAuto must be an object, but found type: {found}.");
        return Err(refusal(40240, message));
    };
    // Documents are kept back without their metadata.
    let scope = environment.scope.offering(Offered::NONE).parse_scope();
    let (mut group_by, mut buckets, mut granularity) = (None, None, None);
    let one = DocumentBuf::new().with("$sum", 1_i32);
    let count = DocumentBuf::new().with("count", &one);
    let mut output = count.as_ref();
    for field in specification {
        match field.name {
            "groupBy" if is_expression(field.value) => group_by = Some(Expression::parse(field.value, &scope)?),
            "groupBy" => {
                let message =
                    "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object";
                return Err(refusal(40239, message));
            }
            "buckets" => buckets = Some(read_buckets(field.value)?),
            "output" => match field.value {
                ValueRef::Document(fields) => output = fields,
                _ => return Err(refusal(40244, "The $bucketAuto 'output' field must be an object")),
            },
            "granularity" => match field.value {
                ValueRef::String(name) => granularity = Some(Granularity::parse(name)?),
                _ => return Err(refusal(40261, "The $bucketAuto 'granularity' field must be a string")),
            },
            other => return Err(refusal(40245, format!("Unrecognized option to $bucketAuto: {other}."))),
        }
    }
    let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
        return Err(refusal(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified."));
    };
    let field = |field: Element<'_>| Ok((field.name.to_owned(), AccumulatorExpression::parse(field, &scope)?));
    let fields = output.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(vec![Box::new(BucketAuto { group_by, buckets, fields, granularity })])
}

fn read_buckets(value: ValueRef<'_>) -> Result<usize> {
    if !value.is_number() {
        let found = value.kind().alias();
        let message = format!("The $bucketAuto 'buckets' field must be a numeric value, but found type: {found}.");
        return Err(refusal(40241, message));
    }
    let count = number::as_i64_exact(value)
        .and_then(|count| i32::try_from(count).ok())
        .ok_or_else(|| refusal(40242, "The $bucketAuto 'buckets' field must be representable as a 32-bit integer"))?;
    usize::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
        refusal(40243, format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {count}."))
    })
}

impl Stage for BucketAuto {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        Box::new(Bucketed {
            stage: self,
            input: Some(input),
            environment: Arc::clone(environment),
            done: Documents::none(),
            spilled: Spilled::default(),
        })
    }

    fn metadata(&self) -> Carried {
        Carried::Lost
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        self.group_by.add_dependencies(dependencies);
        self.fields.iter().for_each(|(_, accumulator)| accumulator.add_dependencies(dependencies));
        Reads::OnlyThese
    }
}

struct Bucketed {
    stage: Arc<BucketAuto>,
    /// The input, until it has been read.
    input: Option<Box<dyn DocumentStream>>,
    environment: Arc<Environment>,
    done: Documents,
    spilled: Spilled,
}

impl DocumentStream for Bucketed {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if let Some(mut input) = self.input.take() {
            let (placed, count) = self.placed(&mut *input)?;
            self.spilled = placed.spilled();
            self.done = Documents::new(self.stage.buckets(placed, count, &self.environment)?);
        }
        self.done.next()
    }

    fn describe_run(&self, facts: &mut DocumentBuf) {
        append_spilled(facts, self.spilled);
    }
}

impl Bucketed {
    /// Sorts the input by the grouping value; returns it with the number of documents.
    fn placed(&self, input: &mut dyn DocumentStream) -> Result<(PlacedInOrder, usize)> {
        let operation = self.environment.operation();
        let refusal = |_| too_large(DEFINITION.facts.name);
        let mut sorter = Sorter::new().gathering(Gatherer::BucketAuto, refusal);
        let (mut key, mut count) = (Vec::new(), 0);
        input.visit(&mut |document| {
            let evaluated = self.stage.group_by.evaluate(&self.environment.context(document))?;
            let value = evaluated.or_null();
            if self.stage.granularity.is_some() {
                Granularity::check(value)?;
            }
            key.clear();
            self.environment.strings().append_key(&mut key, value, Direction::Ascending);
            operation.work(1 + document.len_bytes() / 64)?;
            count += 1;
            place(&mut sorter, (&key, 0), value, document, operation)?;
            Ok(Flow::More)
        })?;
        Ok((PlacedInOrder::new(sorter.finish(operation)?, operation)?, count))
    }
}

impl BucketAuto {
    /// Divides `count` sorted documents into buckets.
    fn buckets(&self, mut placed: PlacedInOrder, count: usize, environment: &Environment) -> Result<Vec<DocumentBuf>> {
        let operation = environment.operation();
        let size = ((count as f64 / self.buckets as f64).round() as usize).max(1);
        let mut made = Vec::new();
        let mut least: Option<Value> = None;
        while let Some(first) = placed.next(operation)? {
            let is_last = made.len() + 1 == self.buckets;
            let lower = least.take().unwrap_or_else(|| match self.granularity {
                Some(granularity) => granularity.below(first.value.as_ref()),
                None => first.value.clone(),
            });
            let mut bucket = Bucket::new(self, environment)?;
            bucket.add(&first)?;
            let mut last = first;
            let mut taken = 1;
            while (is_last || taken < size)
                && let Some(next) = placed.next(operation)?
            {
                bucket.add(&next)?;
                (last, taken) = (next, taken + 1);
            }
            let Placed { key: last_key, value: mut greatest, .. } = last;
            match self.granularity {
                None => {
                    while let Some(next) = placed.next_if(|next| next.key == last_key, operation)? {
                        bucket.add(&next)?;
                    }
                    if let Some(next) = placed.peek() {
                        greatest = next.value.clone();
                    }
                }
                Some(granularity) => {
                    let bound = granularity.above(greatest.as_ref());
                    // Equal zeros stay in one bucket, though the rounded bound is not above them.
                    let is_below = |next: &Placed| {
                        next.key == last_key || order::compare(bound.as_ref(), next.value.as_ref()).is_gt()
                    };
                    while let Some(next) = placed.next_if(is_below, operation)? {
                        bucket.add(&next)?;
                    }
                    greatest = match placed.peek() {
                        // A bucket of zeros ends before the next number.
                        Some(next) if number::as_f64(bound.as_ref()) == Some(0.0) => {
                            granularity.below(next.value.as_ref())
                        }
                        _ => bound,
                    };
                }
            }
            made.push(bucket.finish(&lower, &greatest)?);
            least = Some(greatest);
        }
        Ok(made)
    }
}

/// A bucket while documents are added.
struct Bucket<'b> {
    fields: &'b [(String, AccumulatorExpression)],
    accumulators: Vec<Box<dyn Accumulator>>,
    environment: &'b Environment,
}

impl<'b> Bucket<'b> {
    fn new(stage: &'b BucketAuto, environment: &'b Environment) -> Result<Self> {
        let nobody = environment.context(DocumentRef::EMPTY);
        let accumulators = stage.fields.iter().map(|(_, field)| field.make(&nobody)).collect::<Result<_>>()?;
        Ok(Self { fields: &stage.fields, accumulators, environment })
    }

    fn add(&mut self, placed: &Placed) -> Result<()> {
        let context = self.environment.context(placed.document.as_ref());
        for ((_, field), accumulator) in self.fields.iter().zip(&mut self.accumulators) {
            field.feed(&mut **accumulator, &context)?;
        }
        Ok(())
    }

    fn finish(self, least: &Value, greatest: &Value) -> Result<DocumentBuf> {
        let range = DocumentBuf::new().with("min", least).with("max", greatest);
        let mut bucket = DocumentBuf::new().with("_id", &range);
        for ((name, _), accumulator) in self.fields.iter().zip(self.accumulators) {
            bucket.append(name, &accumulator.outcome()?);
        }
        Ok(bucket)
    }
}
