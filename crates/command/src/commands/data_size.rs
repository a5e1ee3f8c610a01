//! `dataSize`: the number and size of a collection's documents. Both are stored, so documents are read only to measure
//! a part of it or up to a limit.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::target::Target;
use bunko_aggregate::DocumentStream;
use bunko_authority::privileges::collections;
use bunko_bson::{DocumentBuf, DocumentRef, Element, ValueRef, Writer, order};
use bunko_catalog::{Answers, Collection, Index, Namespace};
use bunko_errors::{ErrorCode, Failure};
use bunko_pipelines::{oplog, unstored};
use bunko_query::{FindQuery, Hint, plan};
use bunko_request::facts::{CommandFacts, UnstoredUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use bunko_store::Direction;
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "dataSize",
        aliases: &["datasize"],
        fields: &[
            field("keyPattern", Kind::Object),
            field("min", Kind::Object),
            field("max", Kind::Object),
            field("estimate", Kind::BooleanLike),
            field("maxSize", Kind::Number),
            field("maxObjects", Kind::Number),
        ],
        unstored: UnstoredUse::ReadsOplog,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(collections::data_size),
    run,
    ..Command::PLAIN
};

/// A range of index keys.
struct IndexRange<'a> {
    key_pattern: DocumentRef<'a>,
    min: DocumentRef<'a>,
    max: DocumentRef<'a>,
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = Namespace::parse(invocation.argument_of(Kind::Text)?.as_str().unwrap_or_default())?;
    unstored::check(&invocation.service.catalog, invocation.service.deployment(), &namespace, invocation.command)?;
    invocation.note_namespace(&namespace);
    let is_estimate = parse_estimate(invocation)?;
    let part = parse_part(invocation)?;
    let limits = Limits::parse(invocation)?;
    let measured = match (Target::of(&invocation.service.catalog, invocation, &namespace)?, part) {
        (Target::Absent, _) => Measured::default(),
        (Target::View | Target::TimeSeries(_), _) => {
            invocation.service.catalog.refuse_view(&namespace)?;
            Measured::default()
        }
        (Target::Collection(collection), None) if limits.are_kept_by(collection.data_bytes(), collection.count()) => {
            Measured { bytes: collection.data_bytes(), count: collection.count(), is_cut: false }
        }
        (Target::Collection(collection), part) => {
            invocation.refuse_if_long(true)?;
            measure(invocation, &collection, part.as_ref(), &limits)?
        }
        (Target::Unstored(_), Some(_)) => return Err(no_index().into()),
        (Target::Unstored(_), None) => {
            invocation.refuse_if_long(true)?;
            measure_oplog(invocation, &limits)?
        }
    };
    reply
        .append("estimate", is_estimate)
        .append("size", measured.bytes as i64)
        .append("numObjects", measured.count as i64)
        .append("millis", invocation.running_for().as_millis() as i64);
    if measured.is_cut {
        reply.append("maxReached", true);
    }
    Ok(())
}

/// Limits after which the measuring stops: the first document that exceeds one is the last. 0 means no limit.
struct Limits {
    bytes: i64,
    count: i64,
}

impl Limits {
    fn parse(fields: &Fields<'_>) -> Result<Self, Failure> {
        let limit = |name| fields.integer(name).map(Option::unwrap_or_default);
        Ok(Self { bytes: limit("maxSize")?, count: limit("maxObjects")? })
    }

    fn are_kept_by(&self, bytes: u64, count: u64) -> bool {
        let is_beyond = |limit: i64, value: u64| limit != 0 && i64::try_from(value).is_ok_and(|value| value > limit);
        !is_beyond(self.bytes, bytes) && !is_beyond(self.count, count)
    }
}

#[derive(Default)]
struct Measured {
    bytes: u64,
    count: u64,
    /// Whether a limit stopped the measuring.
    is_cut: bool,
}

impl Measured {
    /// Adds a document of that size, and returns whether to read another one.
    fn goes_on_behind(&mut self, bytes: usize, limits: &Limits) -> bool {
        self.bytes += bytes as u64;
        self.count += 1;
        self.is_cut = !limits.are_kept_by(self.bytes, self.count);
        !self.is_cut
    }
}

fn parse_estimate(fields: &Fields<'_>) -> Result<bool, Failure> {
    fields.boolean("estimate", false)
}

fn parse_part<'a>(fields: &Fields<'a>) -> Result<Option<IndexRange<'a>>, Failure> {
    let key_pattern = fields.document("keyPattern")?;
    let (min, max) = match (fields.document("min")?, fields.document("max")?) {
        (None, None) => return Ok(None),
        (Some(min), Some(max)) => (min, max),
        _ => return Err(Failure::bad_value("only one of min or max specified")),
    };
    let key_pattern = key_pattern.ok_or_else(no_index)?;
    Ok(Some(IndexRange { key_pattern, min, max }))
}

fn no_index() -> Failure {
    Failure::new(ErrorCode::OPERATION_FAILED, "couldn't find valid index containing key pattern")
}

fn measure(
    invocation: &Invocation<'_>,
    collection: &Arc<Collection>,
    part: Option<&IndexRange<'_>>,
    limits: &Limits,
) -> Result<Measured, Failure> {
    let mut query = FindQuery::new(DocumentRef::EMPTY, invocation.scope())?;
    if let Some(part) = part {
        let index = index_of(collection, part.key_pattern)?;
        query.hint = Some(Hint::Name(index.name.clone()));
        query.set_key_bounds(extended(part.min, &index).as_ref(), extended(part.max, &index).as_ref());
    }
    let plan = match plan(collection, Arc::new(query)) {
        Ok(plan) => plan,
        // An empty range contains no documents.
        Err(failure) if failure.code() == ErrorCode(51175) => return Ok(Measured::default()),
        Err(failure) => return Err(failure),
    };
    let mut execution = plan.open()?;
    let mut measured = Measured::default();
    while let Some(document) = execution.next()?
        && measured.goes_on_behind(document.len_bytes(), limits)
    {}
    Ok(measured)
}

/// Measures the entries of the oplog in the form that clients read.
fn measure_oplog(invocation: &Invocation<'_>, limits: &Limits) -> Result<Measured, Failure> {
    let catalog = &invocation.service.catalog;
    let mut entries = oplog::entries(catalog, Direction::Forward, None, invocation.operation())?;
    let mut measured = Measured::default();
    while let Some(entry) = entries.next()?
        && measured.goes_on_behind(entry.len_bytes(), limits)
    {}
    Ok(measured)
}

/// The shortest index whose key pattern begins with the given one.
/// # Errors
/// `OperationFailed` if there is none. Sparse, partial and special indexes do not count.
fn index_of(collection: &Collection, pattern: DocumentRef<'_>) -> Result<Arc<Index>, Failure> {
    let length = pattern.iter().count();
    let begins = |index: &Arc<Index>| {
        let beginning: DocumentBuf = fields(index.key_pattern().iter().take(length));
        index.kind.answers() == Answers::ByField
            && !index.is_sparse
            && index.partial_filter.is_none()
            && index.key_pattern().iter().count() >= length
            && order::compare_documents(beginning.as_ref(), pattern).is_eq()
    };
    let found = collection.ready_indexes().into_iter().filter(begins);
    found.min_by_key(|index| index.key_pattern().iter().count()).ok_or_else(no_index)
}

/// A bound, with the smallest value for each field of the index that the bound lacks.
fn extended(bound: DocumentRef<'_>, index: &Index) -> DocumentBuf {
    let given = bound.iter().count();
    let mut extended = bound.to_owned();
    for field in index.key_pattern().iter().skip(given) {
        extended.append(field.name, ValueRef::MinKey);
    }
    extended
}

fn fields<'a>(elements: impl Iterator<Item = Element<'a>>) -> DocumentBuf {
    let mut document = DocumentBuf::new();
    for element in elements {
        document.append(element.name, element.value);
    }
    document
}
