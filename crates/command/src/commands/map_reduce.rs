//! `mapReduce`: runs documents through scripts, as a pipeline.
//!
//! Source: MongoDB manual, "mapReduce".

use super::aggregate::run_write;
use crate::authorization::Privileges;
use crate::collation_option::Collation;
use crate::command_entry::Command;
use crate::cursor_reply::while_running;
use crate::invocation::Invocation;
use crate::reply_room::check_reply_bytes;
use bunko_authority::is_on_users;
use bunko_authority::privileges::pipelines;
use bunko_bson::number::Number;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_pipelines::Aggregation;
use bunko_query::QueryScope;
use bunko_request::facts::{Changes, CommandFacts, Explanation, ReadsFrom, Secrets, UnstoredUse, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_request::statement::required;
use bunko_session::Halt;
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "mapReduce",
        aliases: &["mapreduce"],
        fields: &[
            field("map", Kind::Own),
            field("reduce", Kind::Own),
            field("finalize", Kind::Own),
            field("out", Kind::Own),
            field("query", Kind::Object),
            field("sort", Kind::Object),
            field("limit", Kind::Number),
            field("scope", Kind::Own),
            field("jsMode", Kind::Boolean),
            field("verbose", Kind::Boolean),
            field("bypassDocumentValidation", Kind::Boolean),
            field("collation", Kind::Object),
        ],
        reads: ReadsFrom::Collection,
        changes: Changes::Output(keeps_its_result),
        write_concern: WriteConcernUse::WithOutput,
        secrets: Secrets::OfUsers(is_on_users),
        explain: Explanation::MapReduce,
        unstored: UnstoredUse::Reads,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(pipelines::map_reduce),
    run,
    ..Command::PLAIN
};

/// Where the results go.
#[derive(Clone, Copy)]
enum Output<'a> {
    /// Into the reply.
    Inline,
    /// Into a collection.
    Collection { mode: Mode, database: Option<&'a str>, name: &'a str },
}

/// How the results are combined with the documents that the collection holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Replace,
    Merge,
    Reduce,
}

/// Name of the command in the message of a failure that happens while it runs.
const RUNNING: &str = "MapReduce command on namespace";

/// Whether the result is written into a collection.
fn keeps_its_result(body: DocumentRef<'_>) -> bool {
    match body.get("out") {
        None => false,
        Some(ValueRef::Document(out)) => out.get("inline").is_none(),
        Some(_) => true,
    }
}

/// A `mapReduce`, also one inside `explain`.
pub(super) struct MapReduce<'a> {
    map: &'a str,
    reduce: &'a str,
    finalize: Option<&'a str>,
    output: Output<'a>,
    query: Option<DocumentRef<'a>>,
    sort: Option<DocumentRef<'a>>,
    limit: Option<i64>,
    /// The variables for the scripts.
    variables: Option<DocumentRef<'a>>,
    collation: Collation<'a>,
    bypasses_validation: bool,
}

impl<'a> MapReduce<'a> {
    /// # Errors
    /// MongoDB's codes for fields that are missing, of the wrong type or malformed.
    pub(super) fn parse(fields: &Fields<'a>) -> Result<Self> {
        Ok(Self {
            bypasses_validation: fields.boolean("bypassDocumentValidation", false)?,
            output: parse_output(fields)?,
            collation: Collation::parse(fields)?,
            variables: match fields.field("scope") {
                None => None,
                Some(ValueRef::Document(variables)) => Some(variables),
                Some(_) => return Err(Failure::bad_value("'scope' must be an object")),
            },
            map: parse_script(fields, "map")?,
            reduce: parse_script(fields, "reduce")?,
            finalize: fields.field("finalize").map(|value| script(value, "finalize")).transpose()?,
            query: fields.document("query")?.filter(|query| !query.is_empty()),
            sort: fields.document("sort")?.map(check_sort).transpose()?,
            limit: fields.integer("limit")?.map(check_limit).transpose()?,
        })
    }

    /// The scope of the pipeline's expressions: the collation, and the variables of `scope` for the scripts.
    /// # Errors
    /// Errors of a malformed collation.
    pub(super) fn scope(&self, invocation: &Invocation<'_>, namespace: &Namespace) -> Result<Arc<QueryScope>> {
        let strings = self.collation.order_over(&invocation.service.catalog, namespace)?;
        let scope = Arc::new(invocation.scope().with_strings(&strings));
        scope.scripts.serve_map_reduce();
        if let Some(variables) = self.variables {
            scope.scripts.define(variables);
        }
        Ok(scope)
    }

    /// The pipeline that does the work of the command.
    pub(super) fn stages(&self) -> ArrayBuf {
        let mut stages = ArrayBuf::new();
        let mut add = |name: &str, value: ValueRef<'_>| {
            stages.push(&DocumentBuf::new().with(name, value));
        };
        if let Some(query) = self.query {
            add("$match", ValueRef::Document(query));
        }
        if let Some(sort) = self.sort {
            add("$sort", ValueRef::Document(sort));
        }
        if let Some(limit) = self.limit {
            add("$limit", ValueRef::Int64(limit));
        }
        let (map, reduction_script) = (literal(self.map), literal(self.reduce));
        let emit = DocumentBuf::new().with("this", "$$ROOT").with("eval", &map);
        let emits = DocumentBuf::new().with("$_internalJsEmit", &emit);
        add("$project", ValueRef::from(&DocumentBuf::new().with("emits", &emits).with("_id", 0_i32)));
        add("$unwind", ValueRef::from(&DocumentBuf::new().with("path", "$emits")));
        let reduction = DocumentBuf::new().with("data", "$emits").with("eval", &reduction_script);
        let reduction = DocumentBuf::new().with("$_internalJsReduce", &reduction);
        add("$group", ValueRef::from(&DocumentBuf::new().with("_id", "$emits.k").with("value", &reduction)));
        let finalize = self.finalize.map(|finalize| function(finalize, &["$_id", "$value"].into_iter().collect()));
        if let Some(finalize) = &finalize {
            add("$project", ValueRef::from(&DocumentBuf::new().with("value", finalize)));
        }
        if let Output::Collection { mode, database, name } = self.output {
            let target = DocumentBuf::new().with("db", database.unwrap_or_default()).with("coll", name);
            let target = if database.is_some() { ValueRef::from(&target) } else { ValueRef::String(name) };
            if mode == Mode::Replace {
                add("$out", target);
            } else {
                add("$merge", ValueRef::from(&merge(target, mode, self.reduce, finalize.as_ref())));
            }
        }
        stages
    }
}

fn check_sort(sort: DocumentRef<'_>) -> Result<DocumentRef<'_>> {
    if sort.is_empty() {
        let message = "The mapReduce sort option must have at least one sort key";
        return Err(Failure::new(ErrorCode(15976), message));
    }
    Ok(sort)
}

fn check_limit(limit: i64) -> Result<i64> {
    if limit <= 0 {
        return Err(Failure::new(ErrorCode(15958), "The limit specified to mapReduce must be positive"));
    }
    Ok(limit)
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let request = MapReduce::parse(invocation)?;
    if request.bypasses_validation {
        invocation.operation().bypass_validation();
    }
    // The pipeline repeats the command's query and scripts.
    invocation.operation().will_take(3 * invocation.request.body.len_bytes())?;
    let scope = request.scope(invocation, &namespace)?;
    let stages = request.stages();
    invocation.collection_not_view(&namespace)?;
    let aggregation = Aggregation::prepare(invocation, Some(&namespace), stages.as_ref(), scope)?;
    invocation.refuse_if_long(true)?;
    let Output::Collection { database, name, .. } = request.output else {
        let (mut source, _) = aggregation.open(invocation)?;
        reply.begin_array("results");
        let mut index = 0;
        while let Some(document) = source.next().map_err(|failure| while_running(failure, RUNNING, &namespace))? {
            reply.push(index, document);
            check_reply_bytes(reply.len_bytes())?;
            index += 1;
        }
        reply.end();
        invocation.note_plan(|| source.report());
        return Ok(());
    };
    if let Some(stage) = aggregation.pipeline.write() {
        run_write(invocation, aggregation, stage, (RUNNING, &namespace))?;
    }
    match database {
        None => reply.append("result", name),
        Some(database) => reply.begin_document("result").append("db", database).append("collection", name).end(),
    };
    Ok(())
}

/// A script as a literal, so that a leading `$` does not make it a field path.
fn literal(script: &str) -> DocumentBuf {
    DocumentBuf::new().with("$literal", script)
}

/// A `$function` expression that calls a script.
fn function(body: &str, arguments: &ArrayBuf) -> DocumentBuf {
    let function = DocumentBuf::new().with("body", &literal(body)).with("args", arguments).with("lang", "js");
    DocumentBuf::new().with("$function", &function)
}

/// The `$merge` that combines new results with stored ones of an equal key.
fn merge(target: ValueRef<'_>, mode: Mode, reduce: &str, finalize: Option<&DocumentBuf>) -> DocumentBuf {
    let merge = DocumentBuf::new().with("into", target).with("on", "_id").with("whenNotMatched", "insert");
    if mode == Mode::Merge {
        return merge.with("whenMatched", "replace");
    }
    let values: ArrayBuf = ["$value", "$$new.value"].into_iter().collect();
    let arguments = ArrayBuf::from_iter([ValueRef::String("$_id"), ValueRef::from(&values)]);
    let reduced = DocumentBuf::new().with("value", &function(reduce, &arguments));
    let mut steps = ArrayBuf::new();
    steps.push(&DocumentBuf::new().with("$set", &reduced));
    if let Some(finalize) = finalize {
        steps.push(&DocumentBuf::new().with("$set", &DocumentBuf::new().with("value", finalize)));
    }
    merge.with("whenMatched", &steps)
}

fn parse_script<'a>(fields: &Fields<'a>, name: &str) -> Result<&'a str> {
    // Null does not count as missing: MongoDB's parser takes any type here, and refuses null by its type.
    script(required(fields, name)?, name)
}

fn script<'a>(value: ValueRef<'a>, name: &str) -> Result<&'a str> {
    match value {
        ValueRef::String(text) | ValueRef::JavaScript(text) => Ok(text),
        _ => Err(Failure::bad_value(format!("'{name}' must be of string or code type"))),
    }
}

/// Reads `out`.
fn parse_output<'a>(fields: &Fields<'a>) -> Result<Output<'a>> {
    match required(fields, "out")? {
        ValueRef::String(name) => Ok(Output::Collection { mode: Mode::Replace, database: None, name }),
        ValueRef::Document(output) => read_output(output),
        _ => Err(Failure::bad_value("'out' must be either a string or an object")),
    }
}

fn read_output(output: DocumentRef<'_>) -> Result<Output<'_>> {
    if let Some(inline) = output.get("inline") {
        if output.count() != 1 {
            return Err(invalid_options("'inline' must be specified alone"));
        }
        let is_one = Number::of(inline).is_some_and(|number| number.compare(Number::Integer(1)).is_eq());
        return if is_one { Ok(Output::Inline) } else { Err(Failure::bad_value("'inline' takes only numeric '1'")) };
    }
    let is_sharded = given_and_true(output, "sharded")?;
    let (field, mode) = [("replace", Mode::Replace), ("merge", Mode::Merge), ("reduce", Mode::Reduce)]
        .into_iter()
        .find(|(field, _)| output.get(field).is_some())
        .ok_or_else(|| Failure::bad_value("'out' requires 'replace', 'merge' or 'reduce'"))?;
    let name = output.get(field).and_then(ValueRef::as_str).ok_or_else(|| {
        Failure::bad_value(format!("'{field}' supports only string consisting of output collection name"))
    })?;
    let database = match output.get("db") {
        None => None,
        Some(ValueRef::String("admin" | "config" | "local")) => {
            let message = "cannot target internal database as output";
            return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
        }
        Some(ValueRef::String(database)) => Some(database),
        Some(_) => return Err(Failure::bad_value("db field value must be string")),
    };
    let is_non_atomic = given_and_true(output, "nonAtomic")?;
    let known = [true, is_sharded, database.is_some(), is_non_atomic];
    if output.count() != known.into_iter().filter(|known| *known).count() {
        let message = "'out' supports only output type with collection name, optional 'sharded' and optional 'db'";
        return Err(Failure::bad_value(message));
    }
    if is_sharded {
        let message = "Cannot use mapReduce to create a new sharded collection. Please create and shard the target \
                       collection before proceeding.";
        return Err(invalid_options(message));
    }
    Ok(Output::Collection { mode, database, name })
}

/// Whether a deprecated option is given. It may only be true.
fn given_and_true(output: DocumentRef<'_>, name: &str) -> Result<bool> {
    match output.get(name) {
        None => Ok(false),
        Some(ValueRef::Boolean(true)) => Ok(true),
        Some(ValueRef::Boolean(false)) => Err(Failure::bad_value(format!("{name} field value must be true"))),
        Some(_) => Err(Failure::bad_value(format!("{name} field value must be boolean"))),
    }
}

fn invalid_options(message: &str) -> Failure {
    Failure::new(ErrorCode::INVALID_OPTIONS, message)
}
