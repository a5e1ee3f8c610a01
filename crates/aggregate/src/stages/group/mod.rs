//! `$group`: documents with equal `_id`, accumulated.

use super::{Definition, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::key_string::Direction;
use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Accumulator, AccumulatorExpression, Dependencies, Engine, Expression, check_depth};
use foldhash::HashMap;
use std::sync::Arc;

pub(super) const DEFINITION: Definition = Definition { name: "$group", parse };

struct Group {
    id: Expression,
    fields: Vec<(String, AccumulatorExpression)>,
    engine: Engine,
}

fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        return Err(Failure::new(ErrorCode(15947), "a group's fields must be specified in an object"));
    };
    let scope = environment.scope.parse_scope();
    let mut id = None;
    let mut fields = Vec::new();
    for element in specification {
        if element.name == "_id" {
            if id.is_some() {
                return Err(Failure::new(ErrorCode(15948), "a group's _id may only be specified once"));
            }
            check_id(element.value)?;
            id = Some(Expression::parse(element.value, &scope)?);
        } else {
            fields.push((element.name.to_owned(), AccumulatorExpression::parse(element, &scope)?));
        }
    }
    let id = id.ok_or_else(|| Failure::new(ErrorCode(15955), "a group specification must include an _id"))?;
    Ok(vec![Box::new(Group { id, fields, engine: environment.engine })])
}

/// # Errors
/// 17390 for a document in which a field is included as in a projection.
fn check_id(id: ValueRef<'_>) -> Result<()> {
    let Some(document) = id.as_document() else { return Ok(()) };
    let is_operator = document.first().is_some_and(|first| first.name.starts_with('$'));
    let is_included = |value: ValueRef<'_>| value.is_number() || matches!(value, ValueRef::Boolean(_));
    if !is_operator && document.iter().any(|field| is_included(field.value)) {
        return Err(Failure::new(ErrorCode(17390), "$group does not support inclusion-style expressions"));
    }
    Ok(())
}

impl Stage for Group {
    fn name(&self) -> &'static str {
        DEFINITION.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        let environment = Arc::clone(environment);
        Box::new(Grouped { stage: self, state: State::Waiting(input), environment })
    }

    fn metadata(&self) -> Carried {
        Carried::Lost
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        self.id.add_dependencies(dependencies);
        self.fields.iter().for_each(|(_, accumulator)| accumulator.add_dependencies(dependencies));
        Reads::OnlyThese
    }
}

/// One group: its `_id` as it first came, and what is kept of its documents.
struct Gathered {
    id: Value,
    accumulators: Vec<Box<dyn Accumulator>>,
}

/// The groups so far, in the order of their first documents.
struct Groups<'g> {
    stage: &'g Group,
    environment: &'g Environment,
    /// Positions by the key string of `_id`: 1 and 1.0 are one group.
    positions: HashMap<Box<[u8]>, usize>,
    gathered: Vec<Gathered>,
    memory_bytes: usize,
    /// Reused between documents.
    key: Vec<u8>,
}

impl<'g> Groups<'g> {
    fn new(stage: &'g Group, environment: &'g Environment) -> Self {
        let (positions, gathered, key) = (HashMap::default(), Vec::new(), Vec::new());
        Self { stage, environment, positions, gathered, memory_bytes: 0, key }
    }

    fn add(&mut self, document: DocumentRef<'_>) -> Result<()> {
        let context = self.environment.context(document).in_engine(self.stage.engine);
        let id = self.stage.id.evaluate(&context)?;
        self.key.clear();
        self.environment.strings().append_key(&mut self.key, id.or_null(), Direction::Ascending);
        self.environment.operation().work(1 + self.key.len() / 64)?;
        let position = match self.positions.get(self.key.as_slice()) {
            Some(position) => *position,
            None => self.open_group(id.into_value().unwrap_or(Value::Null))?,
        };
        let group = &mut self.gathered[position];
        for ((_, expression), accumulator) in self.stage.fields.iter().zip(&mut group.accumulators) {
            let before = accumulator.memory_bytes();
            expression.feed(&mut **accumulator, &context)?;
            self.memory_bytes = (self.memory_bytes + accumulator.memory_bytes()).saturating_sub(before);
        }
        if self.memory_bytes > self.environment.stage_memory_bytes_max {
            let message =
                "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.";
            return Err(Failure::new(ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED, message));
        }
        Ok(())
    }

    fn open_group(&mut self, id: Value) -> Result<usize> {
        let root = id.as_ref().as_document().unwrap_or(DocumentRef::EMPTY);
        let context = self.environment.context(root).in_engine(self.stage.engine);
        let fields = self.stage.fields.iter();
        let accumulators = fields.map(|(_, expression)| expression.make(&context)).collect::<Result<Vec<_>>>()?;
        let kept = accumulators.iter().map(|accumulator| accumulator.memory_bytes()).sum::<usize>();
        // The key stands for the size of `_id` too.
        self.memory_bytes += kept + 2 * self.key.len() + size_of::<Gathered>() + size_of::<(Box<[u8]>, usize)>();
        let position = self.gathered.len();
        self.positions.insert(self.key.as_slice().into(), position);
        self.gathered.push(Gathered { id, accumulators });
        Ok(position)
    }
}

struct Grouped {
    stage: Arc<Group>,
    state: State,
    environment: Arc<Environment>,
}

enum State {
    /// Nothing was read yet.
    Waiting(Box<dyn DocumentStream>),
    /// All was read; these groups are left.
    Done(std::vec::IntoIter<Gathered>),
}

impl Grouped {
    fn gathered(&mut self) -> Result<&mut std::vec::IntoIter<Gathered>> {
        if let State::Waiting(input) = &mut self.state {
            let mut groups = Groups::new(&self.stage, &self.environment);
            input.visit(&mut |document| groups.add(document).map(|()| Flow::More))?;
            self.state = State::Done(groups.gathered.into_iter());
        }
        match &mut self.state {
            State::Done(groups) => Ok(groups),
            State::Waiting(_) => unreachable!("replaced above"),
        }
    }
}

impl Group {
    fn write(&self, group: Gathered, buffer: &mut Vec<u8>, environment: &Environment) -> Result<()> {
        let mut writer = Writer::new(buffer);
        check_depth(group.id.as_ref(), 1)?;
        writer.append("_id", group.id.as_ref());
        for ((name, _), accumulator) in self.fields.iter().zip(group.accumulators) {
            let value = accumulator.finish();
            check_depth(value.as_ref(), 1)?;
            writer.append(name, value.as_ref());
        }
        writer.end();
        environment.operation().work(1 + buffer.len() / 64)
    }
}

impl DocumentStream for Grouped {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let Some(group) = self.gathered()?.next() else { return Ok(None) };
        let mut bytes = Vec::new();
        self.stage.write(group, &mut bytes, &self.environment)?;
        Ok(Some(DocumentBuf::from_trusted(bytes)))
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let mut buffer = Vec::new();
        while let Some(group) = self.gathered()?.next() {
            buffer.clear();
            self.stage.write(group, &mut buffer, &self.environment)?;
            if visitor(DocumentRef::trusted(&buffer))? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }
}
