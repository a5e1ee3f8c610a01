//! `$group`: accumulates documents with equal `_id`.

mod integers;
mod table;

use super::{Definition, Reads, Stage, Stages};
use crate::effect::Effect;
use crate::metadata::Carried;
use crate::stream::StandIns;
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, StringUse, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{
    AccumulatorExpression, Dependencies, Engine, EvaluationContext, Expression, FieldPath, FirstInOrder, PathSlots,
    SortPattern, StandIn, check_depth,
};
use bunko_query::{Distinct, DistinctOf, append_spilled};
use bunko_scratch::Spilled;
use std::sync::Arc;
use table::{Complete, Gathered, Groups, Pending};

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::GROUP, strings: StringUse::Collated, parse };

struct Group {
    /// The `_id` expression.
    id: Expression,
    /// The field name inside `_id`, if `_id` is a document with one field.
    id_name: Option<String>,
    fields: Vec<(String, AccumulatorExpression)>,
    /// Number of fields that keep a total.
    totals: usize,
    engine: Engine,
    form: Form,
    /// Paths that `_id` and the fields read.
    slots: PathSlots,
}

/// The form of returned values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As they were gathered.
    AsTheyAre,
    /// As MongoDB's slot-based engine hands them to the classic engine: MinKey and MaxKey as documents with an empty
    /// field name, code as a string.
    HandedOver,
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
    // As on MongoDB, a missing value counts as null, as it does if the expression is the whole `_id`. An `_id` with
    // several fields omits missing ones.
    let (id_name, mut id) = id.without_only_name();
    let inputs = fields.iter_mut().map(|(_, accumulator): &mut (_, AccumulatorExpression)| accumulator.input_mut());
    let slots = PathSlots::of(std::iter::once(&mut id).chain(inputs));
    let totals = fields.iter().filter(|(_, accumulator)| accumulator.keeps_total()).count();
    let (engine, form) = (environment.engine, Form::AsTheyAre);
    Ok(vec![Box::new(Group { id, id_name, fields, totals, engine, form, slots })])
}

/// # Errors
/// 17390 for a document with a field that is included as in a projection.
fn check_id(id: ValueRef<'_>) -> Result<()> {
    let Some(document) = id.as_document() else { return Ok(()) };
    let is_operator = document.first().is_some_and(|first| first.name.starts_with('$'));
    let is_included = |value: ValueRef<'_>| value.is_number() || matches!(value, ValueRef::Boolean(_));
    if !is_operator && document.iter().any(|field| is_included(field.value)) {
        return Err(Failure::new(ErrorCode(17390), "$group does not support inclusion-style expressions"));
    }
    Ok(())
}

impl Group {
    /// The path whose least or greatest value is enough, if all accumulators are `$min`, or all `$max`, of that path.
    fn extreme(&self) -> Option<Distinct> {
        let (_, first) = self.fields.first()?;
        let of = match first.name() {
            "$min" => DistinctOf::Least,
            "$max" => DistinctOf::Greatest,
            _ => return None,
        };
        let path = first.fed_field()?;
        let is_alike =
            |other: &AccumulatorExpression| other.name() == first.name() && other.fed_field().as_ref() == Some(&path);
        let order = None;
        let path = self.fields.iter().all(|(_, other)| is_alike(other)).then_some(path)?;
        Some(Distinct { path: path.as_str().into(), of, order, count: 1 })
    }

    /// The order in which the first documents of each group are enough, if all accumulators ask for the same end of the same
    /// order.
    fn order_in_groups(&self) -> Option<(DistinctOf, SortPattern)> {
        let asked = |(_, accumulator): &(String, AccumulatorExpression)| accumulator.needs_first_in_order();
        let (first, others) = self.fields.split_first()?;
        let needed = asked(first)?;
        let is_same = |other: FirstInOrder| {
            other.needs_value == needed.needs_value && other.order.parts().eq(needed.order.parts())
        };
        let of = if needed.needs_value { DistinctOf::FirstWithValue } else { DistinctOf::FirstOfGroups };
        others.iter().all(|other| asked(other).is_some_and(is_same)).then_some((of, needed.order))
    }
}

/// Maximum number of documents of each group that an index scan reads; if accumulators keep more, all are read.
const KEPT_MAX: usize = 16;

impl Group {
    /// The number of documents of each group that the accumulators keep; `None` if it depends on the group or is large.
    fn kept(&self) -> Option<usize> {
        let mut kept = self.fields.iter().map(|(_, accumulator)| accumulator.kept());
        kept.try_fold(1, |most, kept| Some(most.max(kept?))).filter(|most| *most <= KEPT_MAX)
    }

    /// Whether no error is hidden that MongoDB reports if some documents of a group are not read. An expression may fail on
    /// these. MongoDB leaves them out too if all accumulators are one and the same of four.
    /// Source: MongoDB manual, "$group", "Optimizations".
    fn may_skip_documents(&self) -> bool {
        let mut names = self.fields.iter().map(|(_, accumulator)| accumulator.name());
        let first = names.next().unwrap_or_default();
        let is_skipped_by_mongodb =
            matches!(first, "$first" | "$last" | "$top" | "$bottom") && names.all(|name| name == first);
        is_skipped_by_mongodb || self.fields.iter().all(|(_, accumulator)| accumulator.input_cannot_fail())
    }
}

impl Stage for Group {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        let environment = Arc::clone(environment);
        Box::new(Grouped {
            stage: self,
            input: Some(input),
            environment,
            ready: Complete::default(),
            pending: Vec::new(),
            spilled: Spilled::default(),
            output_bytes: 0,
        })
    }

    fn metadata(&self) -> Carried {
        Carried::Lost
    }

    fn effect(&self) -> Effect {
        let keys = match (&self.id_name, self.id.as_field(), self.id.as_document()) {
            (None, Some(path), _) => vec![("_id".to_owned(), path)],
            (Some(name), Some(path), _) => vec![(format!("_id.{name}"), path)],
            (None, None, Some(fields)) => {
                fields.into_iter().filter_map(|(name, path)| Some((format!("_id.{name}"), path?))).collect()
            }
            _ => Vec::new(),
        };
        Effect::Groups { keys }
    }

    fn counts_alone(&self) -> bool {
        self.id.is_constant() && self.fields.iter().all(|(_, accumulator)| accumulator.counts_documents())
    }

    fn distinct(&self) -> Option<Distinct> {
        if self.id.is_constant() {
            return self.extreme();
        }
        let path = self.id.as_field()?.into_boxed_str();
        let take = |names: [&str; 2]| self.fields.iter().all(|(_, accumulator)| names.contains(&accumulator.name()));
        let count = self.kept().filter(|_| self.may_skip_documents())?;
        let (of, order) = match self.fields.as_slice() {
            [] => (DistinctOf::Groups, None),
            _ if take(["$first", "$firstN"]) => (DistinctOf::FirstOfGroups, None),
            // The scan goes against the order, so several documents would come in reverse.
            _ if take(["$last", "$lastN"]) && count == 1 => (DistinctOf::LastOfGroups, None),
            _ => self.order_in_groups().map(|(of, order)| (of, Some(order)))?,
        };
        Some(Distinct { path, of, order, count })
    }

    fn hand_over(&mut self) {
        self.form = Form::HandedOver;
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        self.id.add_dependencies(dependencies);
        self.fields.iter().for_each(|(_, accumulator)| accumulator.add_dependencies(dependencies));
        Reads::OnlyThese
    }
}

struct Grouped {
    stage: Arc<Group>,
    /// The input, until it has been read.
    input: Option<Box<dyn DocumentStream>>,
    environment: Arc<Environment>,
    /// Complete groups.
    ready: Complete,
    /// Documents on disk, grouped one partition after the other.
    pending: Vec<Pending>,
    spilled: Spilled,
    output_bytes: u64,
}

impl Grouped {
    fn next_group(&mut self) -> Result<Option<Gathered>> {
        loop {
            if let Some(group) = self.ready.next() {
                return Ok(Some(group));
            }
            let (stage, environment) = (Arc::clone(&self.stage), Arc::clone(&self.environment));
            let groups = if let Some(mut input) = self.input.take() {
                stage.gather(&mut *input, &environment)?
            } else {
                let Some(pending) = self.pending.pop() else { return Ok(None) };
                Groups::resume(pending, &stage, &environment)?
            };
            let (ready, pending, spilled) = groups.finish()?;
            self.ready = ready;
            self.pending.extend(pending);
            self.spilled += spilled;
        }
    }

    /// Writes the next group's document into the buffer; returns false if there is none left.
    fn write_next(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        let Some(group) = self.next_group()? else { return Ok(false) };
        buffer.clear();
        self.stage.write(group, buffer, &self.environment)?;
        self.output_bytes += buffer.len() as u64;
        Ok(true)
    }
}

impl Form {
    fn append(self, writer: &mut Writer<'_>, name: &str, value: ValueRef<'_>) {
        match value {
            ValueRef::MinKey | ValueRef::MaxKey if self == Self::HandedOver => {
                writer.begin_document(name).append("", value).end();
            }
            ValueRef::JavaScript(code) if self == Self::HandedOver => {
                writer.append(name, code);
            }
            value => {
                writer.append(name, value);
            }
        }
    }

    /// Appends the values that an accumulator gathered.
    fn append_array(self, writer: &mut Writer<'_>, name: &str, values: ArrayRef<'_>) {
        if self == Self::AsTheyAre {
            writer.append(name, ValueRef::Array(values));
            return;
        }
        writer.begin_array(name);
        for (position, value) in values.iter().enumerate() {
            self.append(writer, &position.to_string(), value);
        }
        writer.end();
    }
}

impl Group {
    /// Reads the whole input and groups its documents.
    fn gather(self: &Arc<Self>, input: &mut dyn DocumentStream, environment: &Arc<Environment>) -> Result<Groups> {
        let mut groups = Groups::new(Arc::clone(self), Arc::clone(environment));
        if self.counts_alone()
            && let Some(count) = input.take_count()
        {
            groups.add_alike(self, environment, count)?;
            return Ok(groups);
        }
        let Some(path) = input.stand_in_path().filter(|path| self.takes_stand_in(path)) else {
            input.visit(&mut |document| {
                let found = self.slots.read(document);
                groups.add(self, environment, &self.context(document, environment)?.with_found(&found))?;
                Ok(Flow::More)
            })?;
            return Ok(groups);
        };
        let (leading, beside) = (self.slots.leading_to(&path), self.slots.beside(&path));
        input.visit_with_stand_ins(&mut |document, stand_ins| {
            let context = self.context(document, environment)?;
            let Some(StandIns { path, values }) = stand_ins else {
                let found = self.slots.read(document);
                groups.add(self, environment, &context.with_found(&found))?;
                return Ok(Flow::More);
            };
            let mut found = beside.read(document);
            for value in values.encoded() {
                let stand_in = StandIn::new(path, value);
                self.slots.put(&mut found, &stand_in, &leading);
                groups.add(self, environment, &context.with_stand_in(&stand_in).with_found(&found))?;
            }
            Ok(Flow::More)
        })?;
        Ok(groups)
    }

    /// The context of expressions over a document; counts the work of searching it for their paths.
    #[inline]
    fn context<'a>(&self, document: DocumentRef<'a>, environment: &'a Environment) -> Result<EvaluationContext<'a>> {
        environment.operation().work(1 + document.len_bytes() / 256)?;
        Ok(environment.context(document).in_engine(self.engine))
    }

    /// Whether the stage reads no value that contains the one at `path`, so that a stand-in can replace it.
    fn takes_stand_in(&self, path: &FieldPath) -> bool {
        let mut dependencies = Dependencies::default();
        self.add_dependencies(&mut dependencies);
        self.fields.iter().all(|(_, accumulator)| accumulator.reads_paths_only())
            && StandIn::is_apart_from(path, &dependencies)
    }

    fn write(&self, group: Gathered, buffer: &mut Vec<u8>, environment: &Environment) -> Result<()> {
        let mut writer = Writer::new(buffer);
        let id = group.id.as_ref();
        check_depth(id, 1 + usize::from(self.id_name.is_some()))?;
        match &self.id_name {
            None => self.form.append(&mut writer, "_id", id),
            Some(name) => {
                writer.begin_document("_id").append(name, id).end();
            }
        }
        let (mut totals, mut accumulators) = (group.totals.iter(), group.accumulators.into_iter());
        for (name, expression) in &self.fields {
            let value = if expression.keeps_total() {
                expression.value_of(*totals.next().expect("one each"))
            } else {
                accumulators.next().expect("one each").outcome()?
            };
            check_depth(value.as_ref(), 1)?;
            match value.as_ref() {
                ValueRef::Array(values) if matches!(expression.name(), "$addToSet" | "$push") => {
                    self.form.append_array(&mut writer, name, values);
                }
                value => self.form.append(&mut writer, name, value),
            }
        }
        writer.end();
        environment.operation().work(1 + buffer.len() / 64)
    }
}

impl DocumentStream for Grouped {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let mut bytes = Vec::new();
        Ok(self.write_next(&mut bytes)?.then(|| DocumentBuf::from_trusted(bytes)))
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let mut buffer = Vec::new();
        while self.write_next(&mut buffer)? {
            if visitor(DocumentRef::trusted(&buffer))? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }

    fn describe_run(&self, facts: &mut DocumentBuf) {
        facts.append("totalOutputDataSizeBytes", self.output_bytes as i64);
        append_spilled(facts, self.spilled);
    }
}
