//! `$setWindowFields`: fields computed over the documents around each document.
//! Source: MongoDB manual, "$setWindowFields".

mod accumulated;
mod bounds;
mod covariance;
mod deviation;
mod fill;
mod moving_average;
mod partition;
mod rank;
mod scaler;
mod shift;
mod slope;

use super::placed::{Placed, PlacedInOrder, place};
use super::{Definition, Reads, Stage, Stages};
use crate::effect::{Effect, partition_paths};
use crate::metadata::Carried;
use crate::{DocumentStream, Environment, Flow};
use bounds::Bounds;
pub(super) use bounds::check_unit;
use bunko_bson::key_string::Direction;
use bunko_bson::{DocumentBuf, DocumentRef, Element, StringUse, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{
    Dependencies, Evaluated, EvaluationContext, Expression, Offered, ParseScope, Projection, SortPattern, Variables,
};
use bunko_operation::Gatherer;
use bunko_query::append_spilled;
use bunko_scratch::{Sorter, Spilled};
use partition::{Gathering, Partition};
use std::sync::Arc;

/// Functions without windows and arguments.
const RANKS: [&str; 3] = ["$denseRank", "$documentNumber", "$rank"];

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::SET_WINDOW_FIELDS, strings: StringUse::Collated, parse };

/// A parsed output field.
trait Function: Send + Sync {
    /// Starts at the first document of a partition.
    fn begin(self: Arc<Self>) -> Box<dyn Running>;
}

/// A computed field during the walk over a partition.
trait Running: Send {
    /// The field's value for the document at `position`; called for each position in turn, from 0.
    fn value(&mut self, partition: &Partition, position: usize, environment: &Environment) -> Result<Value>;
}

/// Checks the bytes that a function holds for its window against the stage's limit.
fn check_held(bytes: usize, environment: &Environment) -> Result<()> {
    let bytes_max = environment.operation().stage_bytes_max(Gatherer::Window);
    if bytes <= bytes_max {
        return Ok(());
    }
    let message = format!(
        "Exceeded memory limit in DocumentSourceSetWindowFields, used {bytes} bytes but max allowed is {bytes_max} bytes"
    );
    Err(Failure::new(ErrorCode(5_414_201), message))
}

/// Input for parsing a function.
struct Call<'c> {
    /// Name with its `$`.
    name: &'c str,
    argument: ValueRef<'c>,
    window: Option<ValueRef<'c>>,
    /// As the client sent it: even an empty document counts as a sort where a window requires one.
    sort_by: Option<DocumentRef<'c>>,
    order: Option<&'c SortPattern>,
    scope: &'c ParseScope,
}

/// Functions for windows only; all others are accumulators.
const FUNCTIONS: &[Entry] = &[
    Entry { name: "$covariancePop", parse: covariance::parse },
    Entry { name: "$covarianceSamp", parse: covariance::parse },
    Entry { name: "$denseRank", parse: rank::parse },
    Entry { name: "$derivative", parse: slope::parse },
    Entry { name: "$documentNumber", parse: rank::parse },
    Entry { name: "$expMovingAvg", parse: moving_average::parse },
    Entry { name: "$integral", parse: slope::parse },
    Entry { name: "$linearFill", parse: fill::parse },
    Entry { name: "$locf", parse: fill::parse },
    Entry { name: "$minMaxScaler", parse: scaler::parse },
    Entry { name: "$rank", parse: rank::parse },
    Entry { name: "$shift", parse: shift::parse },
];

struct Entry {
    name: &'static str,
    parse: fn(&Call<'_>) -> Result<Arc<dyn Function>>,
}

impl Call<'_> {
    /// The arguments with these names, in this order.
    /// # Errors
    /// `FailedToParse` if the argument is not a document, or has another name.
    fn arguments<const N: usize>(&self, names: [&str; N]) -> Result<[Option<ValueRef<'_>>; N]> {
        let ValueRef::Document(document) = self.argument else {
            return Err(self.refusal("expects an object as its argument"));
        };
        let mut found = [None; N];
        for field in document {
            match names.iter().position(|name| *name == field.name) {
                Some(index) => found[index] = Some(field.value),
                None => return Err(self.refusal(&format!("got unexpected argument: {}", field.name))),
            }
        }
        Ok(found)
    }

    fn refusal(&self, what: &str) -> Failure {
        Failure::failed_to_parse(format!("{} {what}", self.name))
    }

    fn expression(&self, value: ValueRef<'_>) -> Result<Expression> {
        Expression::parse(value, self.scope)
    }

    /// The directions of the sort fields.
    fn directions(&self) -> Vec<Direction> {
        self.order.map(|order| order.parts().map(|(_, direction)| direction).collect()).unwrap_or_default()
    }

    /// Refuses `window`.
    fn without_window(&self) -> Result<()> {
        if self.window.is_none() {
            return Ok(());
        }
        Err(self.refusal("does not accept a 'window' field"))
    }

    /// Parses `window`, and checks that the sort allows it. The default is the whole partition.
    fn bounds(&self) -> Result<Bounds> {
        let bounds = self.window.map_or_else(|| Ok(Bounds::all()), |window| Bounds::parse(window, self.scope))?;
        let refusal = |code, message: &str| Err(Failure::new(ErrorCode(code), message));
        match &bounds {
            Bounds::Documents(..) if !bounds.is_all() && self.sort_by.is_none() => {
                refusal(5_339_901, "Document-based bounds require a sortBy")
            }
            // Unbounded ranges need the order too: they read the sort value.
            Bounds::Range(..) => match self.directions().as_slice() {
                [Direction::Ascending] => Ok(bounds),
                [Direction::Descending] => refusal(8_947_401, "Range-based bounds require an ascending sortBy"),
                _ => refusal(5_339_902, "Range-based bounds require sortBy a single field"),
            },
            Bounds::Documents(..) => Ok(bounds),
        }
    }
}

struct SetWindowFields {
    partition_by: Option<Expression>,
    order: Option<SortPattern>,
    functions: Vec<Arc<dyn Function>>,
    /// Sets each output field from its variable.
    addition: Projection,
    metadata: Carried,
}

/// Name of the variable for the function `number`.
fn variable(number: usize) -> String {
    format!("w{number}")
}

pub(super) fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let found = value.kind().alias();
        let message = format!("the $setWindowFields stage specification must be an object, found {found}");
        return Err(Failure::failed_to_parse(message));
    };
    let known = ["partitionBy", "sortBy", "output"];
    if let Some(unknown) = specification.iter().find(|field| !known.contains(&field.name)) {
        return Err(Failure::unknown_field(format_args!("$setWindowFields.{}", unknown.name)));
    }
    let sort_by = optional_document(specification, "sortBy")?;
    let Some(output) = optional_document(specification, "output")? else {
        return Err(Failure::missing_field("$setWindowFields.output"));
    };
    // Expressions over kept documents cannot read metadata.
    let scope = environment.scope.offering(Offered::NONE).parse_scope();
    let partition_by = specification.get("partitionBy").filter(|value| !value.is_nullish());
    let partition_by = partition_by.map(|value| Expression::parse(value, &scope)).transpose()?;
    let order = sort_by.filter(|pattern| !pattern.is_empty()).map(SortPattern::parse).transpose()?;
    let mut functions = Vec::new();
    let mut paths = DocumentBuf::new();
    let mut variables = Variables::new();
    for field in output {
        functions.push(read_field(field, (sort_by, order.as_ref()), &scope)?);
        let name = variable(functions.len());
        paths.append(field.name, format!("$${name}").as_str());
        variables.define(&name, None)?;
    }
    let addition = Projection::parse_addition(paths.as_ref(), &ParseScope::new(&variables))?;
    let metadata = if names_whole(value) { Carried::Lost } else { Carried::Inside };
    Ok(vec![Box::new(SetWindowFields { partition_by, order, functions, addition, metadata })])
}

/// Whether an expression may read a whole document, in which stored metadata would be a field.
fn names_whole(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::String(text) => text.starts_with("$$ROOT") || text.starts_with("$$CURRENT"),
        ValueRef::Document(document) => document.iter().any(|field| names_whole(field.value)),
        ValueRef::Array(array) => array.iter().any(names_whole),
        _ => false,
    }
}

fn optional_document<'d>(specification: DocumentRef<'d>, name: &str) -> Result<Option<DocumentRef<'d>>> {
    match specification.get(name) {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(None),
        Some(ValueRef::Document(document)) => Ok(Some(document)),
        Some(other) => Err(Failure::wrong_type(format_args!("$setWindowFields.{name}"), other, "type 'object'")),
    }
}

/// Parses one field of `output`.
fn read_field(
    field: Element<'_>,
    (sort_by, order): (Option<DocumentRef<'_>>, Option<&SortPattern>),
    scope: &ParseScope,
) -> Result<Arc<dyn Function>> {
    let ValueRef::Document(specification) = field.value else {
        return Err(Failure::failed_to_parse(format!("The field '{}' must be an object", field.name)));
    };
    let ranks = specification.first().is_some_and(|first| RANKS.contains(&first.name));
    if ranks && specification.count() > 1 {
        let message = "Rank style window functions take no other arguments";
        return Err(Failure::new(ErrorCode(5_371_601), message));
    }
    let mut function: Option<Element<'_>> = None;
    let mut window = None;
    for part in specification {
        if part.name.starts_with('$') {
            if function.replace(part).is_some() {
                let message = "Cannot specify two functions in window function spec";
                return Err(Failure::failed_to_parse(message));
            }
        } else if part.name == "window" {
            window = Some(part.value);
        } else {
            let message = format!("Window function found an unknown argument: {}", part.name);
            return Err(Failure::failed_to_parse(message));
        }
    }
    let Some(function) = function else {
        let message = "Expected a $-prefixed window function";
        return Err(Failure::failed_to_parse(message));
    };
    let call = Call { name: function.name, argument: function.value, window, sort_by, order, scope };
    match FUNCTIONS.iter().find(|entry| entry.name == function.name) {
        Some(entry) => (entry.parse)(&call),
        None => accumulated::parse(&call),
    }
}

impl Stage for SetWindowFields {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        Box::new(Windowed {
            stage: self,
            input: Some(input),
            placed: None,
            spilled: Spilled::default(),
            current: None,
            environment: Arc::clone(environment),
        })
    }

    fn effect(&self) -> Effect {
        let by = self.partition_by.as_ref().map(partition_paths).unwrap_or_default();
        Effect::Windows { by, changes: self.addition.path_changes() }
    }

    fn metadata(&self) -> Carried {
        self.metadata
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add_all();
        Reads::OthersToo
    }
}

struct Windowed {
    stage: Arc<SetWindowFields>,
    /// The input, until it has been read.
    input: Option<Box<dyn DocumentStream>>,
    /// The sorted documents, once they have been read; `None` without a sort or partitions.
    placed: Option<PlacedInOrder>,
    /// Data that partitions put on disk.
    spilled: Spilled,
    current: Option<Walk>,
    environment: Arc<Environment>,
}

/// A walk over one partition.
struct Walk {
    partition: Partition,
    position: usize,
    running: Vec<Box<dyn Running>>,
}

impl SetWindowFields {
    /// Sorts all documents, so that those of each partition are adjacent.
    fn gather(&self, input: &mut dyn DocumentStream, environment: &Environment) -> Result<PlacedInOrder> {
        let operation = environment.operation();
        let mut sorter = Sorter::new();
        let mut key = Vec::new();
        input.visit(&mut |document| {
            key.clear();
            self.append_partition(&mut key, &environment.context(document))?;
            // No key string is a prefix of another, so documents compare by partition first.
            let partition_bytes = key.len();
            let mut evaluated = None;
            if let Some(pattern) = &self.order {
                pattern.append_key(&mut key, document, operation, environment.strings())?;
                let first = pattern.parts().next();
                evaluated = first.map(|(path, _)| path.follow(document.into()));
            }
            operation.work(1 + document.len_bytes() / 64)?;
            let value = evaluated.as_ref().and_then(Evaluated::get).unwrap_or(ValueRef::Null);
            place(&mut sorter, (&key, partition_bytes), value, document, operation)?;
            Ok(Flow::More)
        })?;
        PlacedInOrder::new(sorter.finish(operation)?, operation)
    }

    fn append_partition(&self, key: &mut Vec<u8>, context: &EvaluationContext<'_>) -> Result<()> {
        if let Some(partition_by) = &self.partition_by {
            let value = partition_by.evaluate(context)?;
            if let Some(ValueRef::Array(_)) = value.get() {
                let message = "An expression used to partition cannot evaluate to value of type array";
                return Err(Failure::type_mismatch(message));
            }
            context.strings().append_key(key, value.or_null(), Direction::Ascending);
        }
        Ok(())
    }

    /// Gathers all documents in input order: without a sort and partitions, nothing has to be sorted.
    fn gather_all(input: &mut dyn DocumentStream, environment: &Environment) -> Result<(Partition, Spilled)> {
        let operation = environment.operation();
        let mut gathering = Gathering::default();
        input.visit(&mut |document| {
            operation.work(1 + document.len_bytes() / 64)?;
            let (key, document) = (Vec::new(), document.to_owned());
            gathering.add(Placed { key, part_bytes: 0, value: Value::Null, document }, operation)?;
            Ok(Flow::More)
        })?;
        gathering.finish(operation)
    }

    /// Gathers the next partition, in which functions look forward and back.
    fn next_partition(placed: &mut PlacedInOrder, environment: &Environment) -> Result<Option<(Partition, Spilled)>> {
        let operation = environment.operation();
        let Some(first) = placed.next(operation)? else { return Ok(None) };
        let part = first.part().to_vec();
        let mut gathering = Gathering::default();
        gathering.add(first, operation)?;
        while let Some(next) = placed.next_if(|next| next.part() == part, operation)? {
            gathering.add(next, operation)?;
        }
        gathering.finish(operation).map(Some)
    }
}

impl Windowed {
    /// Starts a walk over a partition; `spilled` is its data on disk.
    fn begin(&mut self, (partition, spilled): (Partition, Spilled)) {
        self.spilled += spilled;
        let running = self.stage.functions.iter().map(|function| Arc::clone(function).begin()).collect();
        self.current = Some(Walk { partition, position: 0, running });
    }
}

impl Walk {
    fn next(&mut self, stage: &SetWindowFields, environment: &Environment) -> Result<Option<DocumentBuf>> {
        let position = self.position;
        if position >= self.partition.count() {
            return Ok(None);
        }
        self.position += 1;
        let mut values = Variables::new();
        for (number, running) in self.running.iter_mut().enumerate() {
            environment.operation().work(1)?;
            values.define(&variable(number + 1), Some(running.value(&self.partition, position, environment)?))?;
        }
        let at = self.partition.at(position, environment)?;
        let context = EvaluationContext::new(at.document(), &values, environment.scope.now_ms, environment.operation());
        let mut bytes = Vec::new();
        stage.addition.apply(&context, None, &mut bytes)?;
        Ok(Some(DocumentBuf::from_trusted(bytes)))
    }
}

impl DocumentStream for Windowed {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if let Some(mut input) = self.input.take() {
            if self.stage.partition_by.is_none() && self.stage.order.is_none() {
                let partition = SetWindowFields::gather_all(&mut *input, &self.environment)?;
                self.begin(partition);
            } else {
                self.placed = Some(self.stage.gather(&mut *input, &self.environment)?);
            }
        }
        loop {
            if let Some(walk) = &mut self.current
                && let Some(document) = walk.next(&self.stage, &self.environment)?
            {
                return Ok(Some(document));
            }
            self.current = None;
            let Some(placed) = &mut self.placed else { return Ok(None) };
            let Some(next) = SetWindowFields::next_partition(placed, &self.environment)? else { return Ok(None) };
            self.begin(next);
        }
    }

    fn describe_run(&self, facts: &mut DocumentBuf) {
        let mut spilled = self.spilled;
        spilled += self.placed.as_ref().map(PlacedInOrder::spilled).unwrap_or_default();
        append_spilled(facts, spilled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::handbook::{check, paragraph};

    #[test]
    fn the_handbook_lists_every_function() {
        check(
            "reference/compatibility.md",
            "functions of windows",
            &paragraph(FUNCTIONS.iter().map(|entry| entry.name)),
        );
    }
}
