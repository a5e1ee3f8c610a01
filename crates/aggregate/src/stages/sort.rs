//! `$sort`: orders all documents in memory; only as many as a `$limit` behind it wants are kept.

use super::{Definition, Plannable, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, SortPattern};
use std::collections::BinaryHeap;
use std::sync::Arc;

pub(super) const DEFINITION: Definition = Definition { name: "$sort", parse };

struct Sort {
    pattern: SortPattern,
    limit: Option<u64>,
}

pub(super) fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(pattern) = value else {
        return Err(Failure::new(ErrorCode(15973), "the $sort key specification must be an object"));
    };
    Ok(vec![Box::new(Sort { pattern: SortPattern::parse_in(pattern, &environment.scope.parse_scope())?, limit: None })])
}

impl Stage for Sort {
    fn name(&self) -> &'static str {
        DEFINITION.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        Box::new(Sorted { stage: self, state: State::Waiting(input), environment: Arc::clone(environment) })
    }

    fn plannable(&self) -> Plannable<'_> {
        // What documents hold is known to the stages behind the planner only.
        if self.pattern.reads_metadata() { Plannable::Nothing } else { Plannable::Sort(&self.pattern) }
    }

    fn metadata(&self) -> Carried {
        Carried::Inside
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        self.pattern.add_dependencies(dependencies);
        Reads::OthersToo
    }

    fn read_at_most(&mut self, limit: u64) {
        self.limit = Some(limit);
    }
}

/// A document with its sort key. The position in the input keeps equal ones in their order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Keyed {
    key: Vec<u8>,
    position: u64,
    document: Vec<u8>,
}

impl Keyed {
    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.document.len()
    }
}

/// Documents gathered so far.
struct Gathering<'s> {
    pattern: &'s SortPattern,
    limit: usize,
    environment: &'s Environment,
    memory_bytes: usize,
    next_position: u64,
    /// With a limit: the ones that sort first, the last of them on top.
    first: BinaryHeap<Keyed>,
    /// Without one.
    all: Vec<Keyed>,
}

impl Gathering<'_> {
    fn add(&mut self, document: DocumentRef<'_>) -> Result<()> {
        let mut key = Vec::with_capacity(16);
        self.environment.operation().work(1 + document.len_bytes() / 64)?;
        self.pattern.append_key(&mut key, document, self.environment.operation(), self.environment.strings())?;
        let position = self.next_position;
        self.next_position += 1;
        if self.first.len() == self.limit {
            // The last of those kept comes first in the input too, so an equal key does not displace it.
            if self.first.peek().is_none_or(|last| last.key <= key) {
                return Ok(());
            }
            self.memory_bytes -= self.first.pop().map_or(0, |last| last.memory_bytes());
        }
        let keyed = Keyed { key, position, document: document.as_bytes().to_vec() };
        self.memory_bytes += keyed.memory_bytes();
        let limit = self.environment.stage_memory_bytes_max;
        if self.memory_bytes > limit {
            let message =
                format!("Sort exceeded memory limit of {limit} bytes, but did not opt in to external sorting.");
            return Err(Failure::new(ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED, message));
        }
        if self.limit == usize::MAX {
            self.all.push(keyed);
        } else {
            self.first.push(keyed);
        }
        Ok(())
    }

    fn sorted(self) -> Result<Vec<Keyed>> {
        let kept = if self.limit == usize::MAX { self.all } else { self.first.into_vec() };
        self.environment.operation().sort_by(kept, |a, b| (&a.key, a.position).cmp(&(&b.key, b.position)))
    }
}

struct Sorted {
    stage: Arc<Sort>,
    state: State,
    environment: Arc<Environment>,
}

enum State {
    /// Nothing was read yet.
    Waiting(Box<dyn DocumentStream>),
    /// All was read; these documents are left.
    Done(std::vec::IntoIter<Keyed>),
}

impl DocumentStream for Sorted {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if let State::Waiting(input) = &mut self.state {
            let limit = self.stage.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
            let mut gathering = Gathering {
                pattern: &self.stage.pattern,
                limit,
                environment: &self.environment,
                memory_bytes: 0,
                next_position: 0,
                first: BinaryHeap::new(),
                all: Vec::new(),
            };
            input.visit(&mut |document| gathering.add(document).map(|()| Flow::More))?;
            self.state = State::Done(gathering.sorted()?.into_iter());
        }
        match &mut self.state {
            State::Done(documents) => Ok(documents.next().map(|keyed| DocumentBuf::from_trusted(keyed.document))),
            State::Waiting(_) => unreachable!("replaced above"),
        }
    }
}
