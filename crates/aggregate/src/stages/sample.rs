//! `$sample`: a number of documents chosen at random.

use super::stage_memory::StageMemory;
use super::{Definition, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::{DocumentStream, Documents, Environment, Flow};
use bunko_bson::{DocumentBuf, StringUse, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Dependencies;
use bunko_operation::Gatherer;
use std::collections::BinaryHeap;
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::SAMPLE, strings: StringUse::AsBytes, parse };

struct Sample {
    size: usize,
}

fn parse(value: ValueRef<'_>, _: &Environment) -> Result<Stages> {
    let refusal = |code, message: String| Failure::new(ErrorCode(code), message);
    let ValueRef::Document(specification) = value else {
        return Err(refusal(28745, "the $sample stage specification must be an object".to_owned()));
    };
    let mut size = None;
    for field in specification {
        if field.name != "size" {
            return Err(refusal(28748, format!("unrecognized option to $sample: {}", field.name)));
        }
        if !field.value.is_number() {
            return Err(refusal(28746, "size argument to $sample must be a number".to_owned()));
        }
        size = Some(field.value);
    }
    let size = size.ok_or_else(|| refusal(28749, "$sample stage must specify a size".to_owned()))?;
    let size = number::clamp_to_i64(size).and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0);
    let size = size.ok_or_else(|| refusal(28747, "size argument to $sample must be a positive integer".to_owned()))?;
    Ok(vec![Box::new(Sample { size })])
}

impl Stage for Sample {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        let environment = Arc::clone(environment);
        Box::new(Sampled { size: self.size, input: Some(input), environment, chosen: Documents::none() })
    }

    fn metadata(&self) -> Carried {
        Carried::Inside
    }

    fn sample_size(&self) -> Option<u64> {
        Some(self.size as u64)
    }

    fn add_dependencies(&self, _: &mut Dependencies) -> Reads {
        Reads::OthersToo
    }
}

struct Sampled {
    size: usize,
    /// The input, until it has been read.
    input: Option<Box<dyn DocumentStream>>,
    environment: Arc<Environment>,
    chosen: Documents,
}

/// A document with a random number, its lot: the documents with the smallest lots are chosen, in the order of their
/// lots.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Drawn {
    lot: u64,
    document: Vec<u8>,
}

impl Sampled {
    fn draw(&self, input: &mut dyn DocumentStream) -> Result<Vec<DocumentBuf>> {
        let operation = self.environment.operation();
        let mut memory = StageMemory::new(DEFINITION.facts.name, Gatherer::Sort, &self.environment);
        let mut kept: BinaryHeap<Drawn> = BinaryHeap::new();
        input.visit(&mut |document| {
            operation.work(1)?;
            // Doubles from 0 to 1 compare as their bits do, so the bits can be the sort key.
            let lot = operation.random().to_bits();
            if kept.len() == self.size {
                if kept.peek().is_some_and(|last| last.lot <= lot) {
                    return Ok(Flow::More);
                }
                memory.release(kept.pop().map_or(0, |drawn| drawn.document.len() + size_of::<Drawn>()));
            }
            operation.work(document.len_bytes() / 64)?;
            memory.keep(document.len_bytes() + size_of::<Drawn>())?;
            kept.push(Drawn { lot, document: document.as_bytes().to_vec() });
            Ok(Flow::More)
        })?;
        let kept = operation.sort_by(kept.into_vec(), Ord::cmp)?;
        Ok(kept.into_iter().map(|drawn| DocumentBuf::from_trusted(drawn.document)).collect())
    }
}

impl DocumentStream for Sampled {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if let Some(mut input) = self.input.take() {
            self.chosen = Documents::new(self.draw(&mut *input)?);
        }
        self.chosen.next()
    }
}
