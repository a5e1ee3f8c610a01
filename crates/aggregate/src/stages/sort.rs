//! `$sort`: sorts all documents, and keeps only as many as a following `$limit` needs.

use super::{Definition, Plannable, Reads, Stage, Stages};
use crate::effect::Effect;
use crate::metadata::Carried;
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, SortPattern};
use bunko_query::append_spilled;
use bunko_scratch::Sorter;
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::SORT, strings: StringUse::Collated, parse };

struct Sort {
    pattern: SortPattern,
    limit: Option<u64>,
}

pub(super) fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(pattern) = value else {
        return Err(Failure::new(ErrorCode(15973), "the $sort key specification must be an object"));
    };
    Ok(vec![sorting(pattern, environment)?])
}

/// A stage that sorts by a pattern.
/// # Errors
/// As [`SortPattern::parse_in`].
pub(crate) fn sorting(pattern: DocumentRef<'_>, environment: &Environment) -> Result<Box<dyn Stage>> {
    let pattern = SortPattern::parse_in(pattern, &environment.scope.parse_scope())?;
    Ok(Box::new(Sort { pattern, limit: None }))
}

impl Stage for Sort {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        let environment = Arc::clone(environment);
        Box::new(Sorted { stage: self, input: Some(input), environment, order: None, total_bytes: 0 })
    }

    fn plannable(&self) -> Plannable<'_> {
        // Metadata is available only to stages after the planner.
        if self.pattern.reads_metadata() { Plannable::Nothing } else { Plannable::Sort(&self.pattern) }
    }

    fn metadata(&self) -> Carried {
        if self.pattern.reads_metadata() { Carried::Inside } else { Carried::Sorted }
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        self.pattern.add_dependencies(dependencies);
        Reads::OthersToo
    }

    fn effect(&self) -> Effect {
        Effect::Orders
    }

    fn read_at_most(&mut self, limit: u64) -> bool {
        self.limit = Some(limit);
        true
    }
}

struct Sorted {
    stage: Arc<Sort>,
    /// The input, until it has been read.
    input: Option<Box<dyn DocumentStream>>,
    environment: Arc<Environment>,
    /// The documents in order, once all are read.
    order: Option<bunko_scratch::Sorted>,
    total_bytes: u64,
}

impl Sorted {
    /// Lends the next document until the next call; reads and sorts the input at the first call.
    fn lend(&mut self) -> Result<Option<DocumentRef<'_>>> {
        let operation = self.environment.operation();
        if let Some(mut input) = self.input.take() {
            let mut sorter = Sorter::new().first(self.stage.limit);
            let mut key = Vec::new();
            input.visit(&mut |document| {
                key.clear();
                operation.work(1 + document.len_bytes() / 64)?;
                self.stage.pattern.append_key(&mut key, document, operation, self.environment.strings())?;
                sorter.add(&key, &[document.as_bytes()], operation)?;
                Ok(Flow::More)
            })?;
            self.total_bytes = sorter.sorted_bytes();
            self.order = Some(sorter.finish(operation)?);
        }
        let Some(order) = &mut self.order else { return Ok(None) };
        Ok(order.next(operation)?.map(|(_, document)| DocumentRef::trusted(document)))
    }
}

impl DocumentStream for Sorted {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        Ok(self.lend()?.map(DocumentRef::to_owned))
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        while let Some(document) = self.lend()? {
            if visitor(document)? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }

    fn describe_run(&self, facts: &mut DocumentBuf) {
        facts.append("totalDataSizeSortedBytesEstimate", self.total_bytes as i64);
        append_spilled(facts, self.order.as_ref().map(bunko_scratch::Sorted::spilled).unwrap_or_default());
    }
}
