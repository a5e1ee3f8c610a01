//! `$bucketAuto`: groups documents into so many ranges of about the same size.

use super::bucket::is_expression;
use super::preferred_numbers::Granularity;
use super::stage_memory::StageMemory;
use super::{Definition, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::{DocumentStream, Documents, Environment, Flow};
use bunko_bson::key_string::Direction;
use bunko_bson::{DocumentBuf, DocumentRef, Element, Value, ValueRef, number, order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Accumulator, AccumulatorExpression, Dependencies, Expression, Offered};
use std::sync::Arc;

pub(super) const DEFINITION: Definition = Definition { name: "$bucketAuto", parse };

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
    // Documents are kept back without what is known of them beside their fields.
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
        DEFINITION.name
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
    /// Until it has been read.
    input: Option<Box<dyn DocumentStream>>,
    environment: Arc<Environment>,
    done: Documents,
}

/// A document with the value that decides where it belongs.
struct Placed {
    key: Vec<u8>,
    value: Value,
    document: DocumentBuf,
}

impl DocumentStream for Bucketed {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if let Some(mut input) = self.input.take() {
            let placed = self.placed(&mut *input)?;
            self.done = Documents::new(self.stage.buckets(&placed, &self.environment)?);
        }
        self.done.next()
    }
}

impl Bucketed {
    fn placed(&self, input: &mut dyn DocumentStream) -> Result<Vec<Placed>> {
        let mut memory = StageMemory::new(DEFINITION.name, &self.environment);
        let mut placed = Vec::new();
        input.visit(&mut |document| {
            let evaluated = self.stage.group_by.evaluate(&self.environment.context(document))?;
            let value = evaluated.into_value().unwrap_or(Value::Null);
            if self.stage.granularity.is_some() {
                Granularity::check(value.as_ref())?;
            }
            let mut key = Vec::new();
            self.environment.strings().append_key(&mut key, value.as_ref(), Direction::Ascending);
            self.environment.operation().work(1 + document.len_bytes() / 64)?;
            memory.keep(2 * key.len() + document.len_bytes() + size_of::<Placed>())?;
            placed.push(Placed { key, value, document: document.to_owned() });
            Ok(Flow::More)
        })?;
        self.environment.operation().sort_by(placed, |one, other| one.key.cmp(&other.key))
    }
}

impl BucketAuto {
    /// Cuts the documents, which are in order, into buckets.
    fn buckets(&self, placed: &[Placed], environment: &Environment) -> Result<Vec<DocumentBuf>> {
        let size = ((placed.len() as f64 / self.buckets as f64).round() as usize).max(1);
        let mut made = Vec::new();
        let mut start = 0;
        let mut least: Option<Value> = None;
        while start < placed.len() {
            let is_last = made.len() + 1 == self.buckets;
            let mut end = if is_last { placed.len() } else { (start + size).min(placed.len()) };
            let mut greatest = placed[end - 1].value.clone();
            match self.granularity {
                None => {
                    end += placed[end..].iter().take_while(|next| next.key == placed[end - 1].key).count();
                    if let Some(next) = placed.get(end) {
                        greatest = next.value.clone();
                    }
                }
                Some(granularity) => {
                    let bound = granularity.above(greatest.as_ref());
                    end += placed[end..]
                        .iter()
                        .take_while(|next| order::compare(bound.as_ref(), next.value.as_ref()).is_gt())
                        .count();
                    greatest = match placed.get(end) {
                        // A bucket of zeros ends where the next number begins.
                        Some(next) if number::as_f64(bound.as_ref()) == Some(0.0) => {
                            granularity.below(next.value.as_ref())
                        }
                        _ => bound,
                    };
                }
            }
            let first = placed[start].value.as_ref();
            let lower = least.take().unwrap_or_else(|| match self.granularity {
                Some(granularity) => granularity.below(first),
                None => first.to_value(),
            });
            made.push(self.bucket(&placed[start..end], &lower, &greatest, environment)?);
            least = Some(greatest);
            start = end;
        }
        Ok(made)
    }

    fn bucket(
        &self,
        placed: &[Placed],
        least: &Value,
        greatest: &Value,
        environment: &Environment,
    ) -> Result<DocumentBuf> {
        let nobody = environment.context(DocumentRef::EMPTY);
        let mut accumulators: Vec<Box<dyn Accumulator>> =
            self.fields.iter().map(|(_, field)| field.make(&nobody)).collect::<Result<_>>()?;
        for document in placed {
            let context = environment.context(document.document.as_ref());
            for ((_, field), accumulator) in self.fields.iter().zip(&mut accumulators) {
                field.feed(&mut **accumulator, &context)?;
            }
        }
        let range = DocumentBuf::new().with("min", least).with("max", greatest);
        let mut bucket = DocumentBuf::new().with("_id", &range);
        for ((name, _), accumulator) in self.fields.iter().zip(accumulators) {
            bucket.append(name, &accumulator.finish());
        }
        Ok(bucket)
    }
}
