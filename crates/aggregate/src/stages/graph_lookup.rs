//! `$graphLookup`: adds to each document an array of the documents of another collection that it reaches through links.

use super::{Definition, Reads, Stage, Stages};
use crate::effect::Effect;
use crate::equality_join::EqualityJoin;
use crate::joined_path::local_values;
use crate::{DocumentStream, Environment, SourceName};
use bunko_bson::key_string::Direction;
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, StringOrder, StringUse, Value, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Expression, FieldPath, PathChanges, with_path};
use bunko_operation::Gatherer;
use bunko_query::append_spilled;
use foldhash::HashSet;
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::GRAPH_LOOKUP, strings: StringUse::Collated, parse };

struct GraphLookup {
    source: SourceName,
    start_with: Expression,
    connect_from: FieldPath,
    connect_to: FieldPath,
    as_path: FieldPath,
    /// Maximum number of links to follow beyond the first documents.
    depth_max: u64,
    depth_path: Option<FieldPath>,
    /// A pipeline with one `$match`, or an empty one.
    restriction: ArrayBuf,
    inside: Environment,
}

fn failure(code: i32, message: String) -> Failure {
    Failure::new(ErrorCode(code), message)
}

/// Errors: `FailedToParse` if it is not an object and for `from`; 40100 to 40105 and 40185 for other fields that have a
/// wrong type, are unknown or are missing; errors of paths, of the expression and of the filter.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let kind = value.kind().alias();
        let message = format!("the $graphLookup stage specification must be an object, but found {kind}");
        return Err(Failure::failed_to_parse(message));
    };
    // MongoDB determines the collections of a pipeline before it parses the rest.
    let source = parse_source(specification)?;
    environment.sources.note(&source, &environment.scope.strings)?;
    let (mut start_with, mut connect_from, mut connect_to, mut as_path) = (None, "", "", "");
    let (mut depth_max, mut depth_path, mut restriction) = (u64::MAX, None, ArrayBuf::new());
    for element in specification {
        match element.name {
            "startWith" => start_with = Some(Expression::parse(element.value, &environment.scope.parse_scope())?),
            "maxDepth" => depth_max = parse_depth(element.value)?,
            "restrictSearchWithMatch" => restriction = parse_restriction(element.value, environment)?,
            "from" => {}
            "as" => as_path = string("as", element.value)?,
            "connectFromField" => connect_from = string("connectFromField", element.value)?,
            "connectToField" => connect_to = string("connectToField", element.value)?,
            "depthField" => depth_path = Some(FieldPath::parse(string("depthField", element.value)?)?),
            other => return Err(failure(40104, format!("Unknown argument to $graphLookup: {other}"))),
        }
    }
    let (Some(start_with), false) = (start_with, [connect_from, connect_to, as_path].contains(&"")) else {
        let message = "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.";
        return Err(failure(40105, message.to_owned()));
    };
    let inside = environment.nested()?;
    let stage = GraphLookup {
        source,
        start_with,
        connect_from: FieldPath::parse(connect_from)?,
        connect_to: FieldPath::parse(connect_to)?,
        as_path: FieldPath::parse(as_path)?,
        depth_max,
        depth_path,
        restriction,
        inside,
    };
    Ok(vec![Box::new(stage)])
}

fn parse_source(specification: DocumentRef<'_>) -> Result<SourceName> {
    let Some(from) = specification.get("from") else {
        let text = ValueText(ValueRef::Document(specification));
        let message = format!("missing 'from' option to $graphLookup stage specification: {text}");
        return Err(Failure::failed_to_parse(message));
    };
    from.as_str().map(SourceName::here).ok_or_else(|| {
        let kind = from.kind().alias();
        Failure::failed_to_parse(format!("$graphLookup 'from' field must be a string, but found {kind}"))
    })
}

fn string<'a>(name: &str, value: ValueRef<'a>) -> Result<&'a str> {
    value.as_str().ok_or_else(|| {
        let (text, kind) = (ValueText(value), value.kind().alias());
        failure(40103, format!("expected string as argument for {name}, found: {name}: {text} of type {kind}"))
    })
}

fn parse_depth(value: ValueRef<'_>) -> Result<u64> {
    if !value.is_number() {
        let kind = value.kind().alias();
        return Err(failure(40100, format!("maxDepth requires numeric argument, found value of type {kind}")));
    }
    let text = ValueText(value);
    if number::as_f64(value).is_some_and(|depth| depth <= -1.0) {
        return Err(failure(40101, format!("maxDepth requires a nonnegative argument, found: {text}")));
    }
    let depth = number::as_i64_exact(value).and_then(|depth| u64::try_from(depth).ok());
    depth.ok_or_else(|| failure(40102, format!("maxDepth could not be represented as a long long: {text}")))
}

fn parse_restriction(value: ValueRef<'_>, environment: &Environment) -> Result<ArrayBuf> {
    let ValueRef::Document(filter) = value else {
        let kind = value.kind().alias();
        return Err(failure(40185, format!("restrictSearchWithMatch must be an object, found {kind}")));
    };
    bunko_query::parse_filter(filter, &environment.scope)?;
    let mut pipeline = ArrayBuf::new();
    pipeline.push(&DocumentBuf::new().with("$match", filter));
    Ok(pipeline)
}

impl GraphLookup {
    /// The `$match` stages beside the search for `values`. A search for null would also find documents without the
    /// field, so it adds `$exists`.
    fn restriction_for(&self, values: &[ValueRef<'_>]) -> ArrayBuf {
        if !values.iter().any(|value| matches!(value, ValueRef::Null)) {
            return self.restriction.clone();
        }
        let exists = DocumentBuf::new().with("$exists", true);
        let condition = DocumentBuf::new().with(&self.connect_to.dotted(), &exists);
        let filter = DocumentBuf::new().with("$match", &condition);
        std::iter::once(ValueRef::from(&filter)).chain(self.restriction.as_ref().iter()).collect()
    }
}

impl Stage for GraphLookup {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        let join = EqualityJoin::new(self.source.clone(), self.connect_to.clone(), Gatherer::GraphLookup);
        Box::new(Searched { stage: self, input, environment: Arc::clone(environment), join })
    }

    fn effect(&self) -> Effect {
        Effect::Searches(PathChanges::computing(self.as_path.components().first().map(|name| &**name)))
    }

    fn makes_one_of_each(&self) -> bool {
        true
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        self.start_with.add_dependencies(dependencies);
        Reads::OthersToo
    }
}

struct Searched {
    stage: Arc<GraphLookup>,
    input: Box<dyn DocumentStream>,
    environment: Arc<Environment>,
    join: EqualityJoin,
}

/// A search from one document: the results, and the key strings of values looked up already. Distinct `_id`s are never
/// equal in the string order used for lookups.
#[derive(Default)]
struct Search {
    found: ArrayBuf,
    visited: HashSet<Vec<u8>>,
    asked: HashSet<Vec<u8>>,
    memory_bytes: usize,
    strings: StringOrder,
}

fn key(value: ValueRef<'_>, strings: &StringOrder) -> Vec<u8> {
    let mut key = Vec::new();
    strings.append_key(&mut key, value, Direction::Ascending);
    key
}

impl Search {
    /// Notes that a value is looked up; returns whether it is for the first time.
    fn asks(&mut self, value: ValueRef<'_>) -> bool {
        let key = key(value, &self.strings);
        self.memory_bytes += key.len() + size_of::<Vec<u8>>();
        self.asked.insert(key)
    }

    fn visits(&mut self, id: ValueRef<'_>) -> bool {
        let key = key(id, StringOrder::BYTES);
        self.memory_bytes += key.len() + size_of::<Vec<u8>>();
        self.visited.insert(key)
    }
}

impl Searched {
    fn search(&mut self, document: DocumentRef<'_>) -> Result<ArrayBuf> {
        let stage = Arc::clone(&self.stage);
        let mut search = Search { strings: self.environment.strings().clone(), ..Search::default() };
        let context = self.environment.context(document);
        let start = stage.start_with.evaluate(&context)?.into_value();
        let mut frontier: Vec<Value> = match &start {
            None => Vec::new(),
            Some(Value::Array(array)) => array.as_ref().iter().map(ValueRef::to_value).collect(),
            Some(value) => vec![value.clone()],
        };
        frontier.retain(|value| search.asks(value.as_ref()));
        let mut depth = 0;
        while !frontier.is_empty() {
            let values: Vec<_> = frontier.iter().map(Value::as_ref).collect();
            let mut next = Vec::new();
            let restriction = stage.restriction_for(&values);
            // Unlike `$lookup`, a graph search treats regexes as patterns.
            let mut reached = if values.iter().any(|value| matches!(value, ValueRef::Regex { .. })) {
                self.join.open_with_patterns(&values, restriction.as_ref(), &stage.inside)?
            } else {
                self.join.open(&values, restriction.as_ref(), &stage.inside)?
            };
            while let Some(one) = reached.next()? {
                self.environment.operation().work(1 + one.len_bytes() / 64)?;
                let Some(id) = one.as_ref().get("_id") else {
                    let message =
                        "Documents in the namespace of 'from' must contain an _id for de-duplication in $graphLookup";
                    return Err(failure(40271, message.to_owned()));
                };
                if !search.visits(id) {
                    continue;
                }
                let shown = match &stage.depth_path {
                    None => one,
                    Some(path) => {
                        FieldPath::check_place(path.components().len())?;
                        with_path(one.as_ref(), path.components(), Some(ValueRef::Int64(depth as i64)))
                    }
                };
                // The depth field counts as a field: links may start from it.
                for value in local_values(shown.as_ref(), stage.connect_from.components()) {
                    if search.asks(value) {
                        next.push(value.to_value());
                    }
                }
                search.memory_bytes += shown.len_bytes();
                search.found.push(&shown);
                if search.memory_bytes > self.environment.operation().stage_bytes_max(Gatherer::GraphLookup) {
                    let message = "$graphLookup reached maximum memory consumption";
                    return Err(failure(40099, message.to_owned()));
                }
            }
            frontier = if depth == stage.depth_max { Vec::new() } else { next };
            depth += 1;
        }
        Ok(search.found)
    }
}

impl DocumentStream for Searched {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let Some(document) = self.input.next()? else { return Ok(None) };
        let found = self.search(document.as_ref())?;
        let path = self.stage.as_path.components();
        FieldPath::check_place(path.len())?;
        Ok(Some(with_path(document.as_ref(), path, Some(ValueRef::from(&found)))))
    }

    fn describe_run(&self, facts: &mut DocumentBuf) {
        append_spilled(facts, self.join.spilled());
    }
}
