//! `$densify`: adds documents so that a field has no gaps in its values. Source: MongoDB manual, "$densify".
//!
//! A `$sort` by the field comes first, so one walk over the documents suffices, and only the position of each partition
//! is remembered.

mod range;

use super::stage_memory::StageMemory;
use super::{Definition, Reads, Stage, Stages, sort};
use crate::effect::Effect;
use crate::metadata::Carried;
use crate::stage_fields::StageFields;
use crate::{DocumentStream, Environment};
use bunko_bson::key_string::Direction;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, StringUse, Value, ValueRef, order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, FieldPath, PathChanges, with_path};
use bunko_operation::Gatherer;
use foldhash::HashMap;
use range::{Bounds, Range};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::DENSIFY, strings: StringUse::Collated, parse };

/// Maximum number of documents that one stage makes.
/// Source: MongoDB 8.2, parameter `internalQueryMaxAllowedDensifyDocs`.
const MADE_MAX: u64 = 500_000;

struct Densify {
    field: FieldPath,
    partition_by: Vec<FieldPath>,
    range: Range,
}

/// Errors: `FailedToParse` if it is not a document; `TypeMismatch` and IDL errors for fields; 8993000 and 9554500 for a
/// partition field that begins with the name of the field or the other way round (compared as strings, not by
/// components); 5733408 for partitions without fields; errors of the range and of paths.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let message = format!("The $densify stage specification must be an object, found {}", value.kind().alias());
        return Err(Failure::failed_to_parse(message));
    };
    let fields = StageFields::new("$densify", specification, &["field", "partitionByFields", "range"])?;
    let name = fields.required("field", fields.string("field")?)?;
    let range = Range::parse(fields.required("range", fields.document("range")?)?)?;
    let mut partition_by = Vec::new();
    for (position, path) in fields.array("partitionByFields")?.unwrap_or(ArrayRef::EMPTY).iter().enumerate() {
        let Some(path) = path.as_str() else {
            return Err(fields.mismatch(&format!("partitionByFields.{position}"), path, "string"));
        };
        if path.starts_with(name) {
            let message = format!("partitionByFields '{path}' cannot include field '{name}' that is being densified.");
            return Err(Failure::new(ErrorCode(8_993_000), message));
        }
        if name.starts_with(path) {
            let message = format!("field '{name}' that is being densified cannot include partitionByFields '{path}'.");
            return Err(Failure::new(ErrorCode(9_554_500), message));
        }
        partition_by.push(FieldPath::parse(path)?);
    }
    let field = FieldPath::parse(name)?;
    if matches!(range.bounds, Bounds::Partition) && partition_by.is_empty() {
        let message = "One cannot specify the bounds as 'partition' without specifying a non-empty array of \
                       partitionByFields. You may have meant to specify 'full' bounds.";
        return Err(Failure::new(ErrorCode(5_733_408), message));
    }
    let mut order = DocumentBuf::new();
    if matches!(range.bounds, Bounds::Partition) {
        for path in &partition_by {
            order.append(&path.dotted(), 1_i32);
        }
    }
    order.append(&field.dotted(), 1_i32);
    let mut stages = sort::parse(ValueRef::from(&order), environment)?;
    stages.push(Box::new(Densify { field, partition_by, range }));
    Ok(stages)
}

impl Stage for Densify {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        Box::new(Densified {
            memory: StageMemory::new(DEFINITION.facts.name, Gatherer::Densify, environment),
            environment: Arc::clone(environment),
            stage: self,
            input,
            least: None,
            greatest: None,
            partitions: Vec::new(),
            positions: HashMap::default(),
            gap: None,
            finished: None,
            made: 0,
        })
    }

    fn effect(&self) -> Effect {
        if !matches!(self.range.bounds, Bounds::Partition) {
            return Effect::Opaque;
        }
        // The stage follows a path of several components through documents only; a condition follows it through arrays
        // too.
        let single = self.partition_by.iter().filter(|path| path.components().len() == 1);
        let by = single.map(FieldPath::dotted).collect();
        let changed = self.field.components().first().map(|name| &**name);
        Effect::Densifies { by, changes: PathChanges::computing(changed) }
    }

    fn metadata(&self) -> Carried {
        Carried::Inside
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add_all();
        Reads::OthersToo
    }
}

/// The position of one partition.
struct Partition {
    /// The fields that its documents share.
    shared: DocumentBuf,
    /// The next value that a document of the partition must have.
    next: Value,
}

/// A gap being filled.
struct Gap {
    /// Number of the partition.
    partition: usize,
    until: Value,
    end: End,
    /// The document after the gap; `None` after the last document.
    document: Option<DocumentBuf>,
}

/// Whether a document is made for the last value too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Included,
    Excluded,
}

struct Densified {
    stage: Arc<Densify>,
    environment: Arc<Environment>,
    input: Box<dyn DocumentStream>,
    memory: StageMemory,
    /// The lowest and the highest value of the documents.
    least: Option<Value>,
    greatest: Option<Value>,
    partitions: Vec<Partition>,
    /// Partition numbers by the key strings of their fields.
    positions: HashMap<Vec<u8>, usize>,
    gap: Option<Gap>,
    /// Number of partitions that are complete, once the input has ended.
    finished: Option<usize>,
    /// Number of documents made.
    made: u64,
}

impl Densify {
    /// The partition fields of a document.
    fn shared(&self, document: DocumentRef<'_>) -> DocumentBuf {
        let found = self.partition_by.iter().filter_map(|path| Some((path, found(document, path)?)));
        found.fold(DocumentBuf::new(), |shared, (path, value)| {
            with_path(shared.as_ref(), path.components(), Some(value))
        })
    }
}

/// Finds the value at a path; `None` if the path leads through an array.
fn found<'d>(document: DocumentRef<'d>, path: &FieldPath) -> Option<ValueRef<'d>> {
    let (last, above) = path.components().split_last()?;
    above.iter().try_fold(document, |inner, name| inner.get(name)?.as_document())?.get(last)
}

impl Densified {
    /// Reads the next input document, and determines the gap before it.
    fn read(&mut self) -> Result<Option<Step>> {
        let Some(document) = self.input.next()? else { return Ok(None) };
        self.environment.operation().work(1)?;
        let stage = Arc::clone(&self.stage);
        let Some(value) = found(document.as_ref(), &stage.field).filter(|value| !value.is_nullish()) else {
            return Ok(Some(Step::Document(document)));
        };
        stage.range.check(value)?;
        let value = value.to_value();
        let least = self.least.get_or_insert_with(|| value.clone()).clone();
        self.greatest = Some(value.clone());
        let (first, until) = match &stage.range.bounds {
            Bounds::Full => (least, value),
            Bounds::Partition => (value.clone(), value),
            Bounds::Between(low, high) => {
                let until = if is_before(&value, high) { value } else { high.clone() };
                (low.clone(), until)
            }
        };
        let partition = self.partition(document.as_ref(), first)?;
        Ok(Some(Step::Gap(Gap { partition, until, end: End::Excluded, document: Some(document) })))
    }

    /// The number of a document's partition. A new partition starts at `first`.
    fn partition(&mut self, document: DocumentRef<'_>, first: Value) -> Result<usize> {
        let mut key = Vec::new();
        for path in &self.stage.partition_by {
            let comparable = found(document, path).unwrap_or(ValueRef::Undefined);
            self.environment.strings().append_key(&mut key, comparable, Direction::Ascending);
        }
        if let Some(position) = self.positions.get(&key) {
            return Ok(*position);
        }
        let shared = self.stage.shared(document);
        self.memory.keep(2 * key.len() + shared.len_bytes() + size_of::<Partition>() + size_of::<Vec<u8>>())?;
        self.partitions.push(Partition { shared, next: first });
        self.positions.insert(key, self.partitions.len() - 1);
        Ok(self.partitions.len() - 1)
    }

    /// The gap at the end of the next partition.
    fn last_gap(&mut self) -> Result<Option<Gap>> {
        let stage = Arc::clone(&self.stage);
        let (until, end) = match (&stage.range.bounds, &self.greatest) {
            (Bounds::Full, Some(greatest)) => (greatest.clone(), End::Included),
            (Bounds::Between(low, high), _) => {
                if self.partitions.is_empty() {
                    // Without documents there is one partition, whose fields are missing.
                    self.partition(DocumentRef::EMPTY, low.clone())?;
                }
                (high.clone(), End::Excluded)
            }
            _ => return Ok(None),
        };
        let partition = *self.finished.get_or_insert(0);
        if partition == self.partitions.len() {
            return Ok(None);
        }
        self.finished = Some(partition + 1);
        Ok(Some(Gap { partition, until, end, document: None }))
    }

    /// Makes the next document of a gap.
    fn fill(&mut self, mut gap: Gap) -> Result<Filled> {
        let operation = self.environment.operation();
        let partition = &mut self.partitions[gap.partition];
        let place = order::compare(partition.next.as_ref(), gap.until.as_ref());
        if place == Ordering::Less || (place == Ordering::Equal && gap.end == End::Included) {
            operation.work(1)?;
            self.made += 1;
            if self.made > MADE_MAX {
                return Err(too_many(self.made));
            }
            let components = self.stage.field.components();
            // Equal values of partition fields may differ in type, so those of the document after the gap are used.
            let shared = gap.document.as_ref().map(|document| self.stage.shared(document.as_ref()));
            let shared = shared.as_ref().unwrap_or(&partition.shared);
            let made = with_path(shared.as_ref(), components, Some(partition.next.as_ref()));
            partition.next = self.stage.range.next(&partition.next, operation)?;
            self.gap = Some(gap);
            return Ok(Filled::Made(made));
        }
        if place == Ordering::Equal {
            // The document exists already. Later values take its type.
            partition.next = self.stage.range.next(&gap.until, operation)?;
        }
        Ok(Filled::Over(gap.document.take()))
    }
}

fn is_before(value: &Value, other: &Value) -> bool {
    order::compare(value.as_ref(), other.as_ref()) == Ordering::Less
}

fn too_many(made: u64) -> Failure {
    let message = format!(
        "Generated {made} documents in $densify, which is over the limit of {MADE_MAX}. Increase the \
         'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents"
    );
    Failure::new(ErrorCode(5_897_900), message)
}

/// The result of one step of filling a gap.
enum Filled {
    Made(DocumentBuf),
    /// The gap is filled; the document after it.
    Over(Option<DocumentBuf>),
}

/// The next step of the walk.
enum Step {
    Document(DocumentBuf),
    Gap(Gap),
}

impl DocumentStream for Densified {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        loop {
            if let Some(gap) = self.gap.take() {
                match self.fill(gap)? {
                    Filled::Made(document) | Filled::Over(Some(document)) => return Ok(Some(document)),
                    Filled::Over(None) => {}
                }
            }
            if self.finished.is_none() {
                match self.read()? {
                    Some(Step::Document(document)) => return Ok(Some(document)),
                    Some(Step::Gap(gap)) => {
                        self.gap = Some(gap);
                        continue;
                    }
                    None => self.finished = Some(0),
                }
            }
            match self.last_gap()? {
                Some(gap) => self.gap = Some(gap),
                None => return Ok(None),
            }
        }
    }
}
