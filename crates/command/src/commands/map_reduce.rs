//! `mapReduce`: runs documents through scripts, as a pipeline.
//!
//! Source: MongoDB manual, "mapReduce".

use super::aggregate;
use crate::authorization::Privileges;
use crate::collation_option;
use crate::command_entry::Command;
use crate::cursor_reply::while_running;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use bunko_authority::is_on_users;
use bunko_authority::privileges::pipelines;
use bunko_bson::number::Number;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::QueryScope;
use bunko_request::facts::{Changes, CommandFacts, Explanation, ReadsFrom, Secrets, UnstoredUse, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
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

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    if invocation.boolean("bypassDocumentValidation", false)? {
        invocation.operation().bypass_validation();
    }
    // The pipeline repeats the command's query and scripts.
    invocation.operation().will_take(3 * invocation.request.body.len_bytes())?;
    let output = output(invocation)?;
    let scope = scope(invocation, invocation, &namespace)?;
    let stages = stages(invocation)?;
    invocation.collection_not_view(&namespace)?;
    let aggregation = aggregate::prepare(invocation, Some(&namespace), stages.as_ref(), scope)?;
    invocation.refuse_if_long(true)?;
    let Output::Collection { database, name, .. } = output else {
        let (mut source, _) = aggregate::open(invocation, aggregation)?;
        reply.begin_array("results");
        let mut index = 0;
        while let Some(document) = source.next().map_err(|failure| while_running(failure, RUNNING, &namespace))? {
            reply.push(index, document);
            crate::dispatch::check_reply_bytes(reply.len_bytes())?;
            index += 1;
        }
        reply.end();
        invocation.note_plan(|| source.report());
        return Ok(());
    };
    if let Some(stage) = aggregation.pipeline.write() {
        aggregate::run_write(invocation, aggregation, stage, (RUNNING, &namespace))?;
    }
    match database {
        None => reply.append("result", name),
        Some(database) => reply.begin_document("result").append("db", database).append("collection", name).end(),
    };
    Ok(())
}

/// The scope of the pipeline's expressions: the collation, and the variables of `scope` for the scripts.
/// # Errors
/// Errors of a malformed collation or scope.
pub(super) fn scope(
    invocation: &Invocation<'_>,
    fields: &Fields<'_>,
    namespace: &Namespace,
) -> Result<Arc<QueryScope>> {
    let asked = collation_option::asked(fields)?;
    let strings = collation_option::of_command(&invocation.service.catalog, asked, namespace)?;
    let scope = Arc::new(invocation.scope().with_strings(&strings));
    scope.scripts.serve_map_reduce();
    match fields.field("scope") {
        None => {}
        Some(ValueRef::Document(variables)) => scope.scripts.define(variables),
        Some(_) => return Err(Failure::bad_value("'scope' must be an object")),
    }
    Ok(scope)
}

/// The pipeline that does the work of the command.
/// # Errors
/// Errors of malformed fields.
pub(super) fn stages(fields: &Fields<'_>) -> Result<ArrayBuf> {
    fields.boolean("jsMode", false)?;
    fields.boolean("verbose", false)?;
    let (map, reduce) = (required_script(fields, "map")?, required_script(fields, "reduce")?);
    let finalize = fields.field("finalize").map(|value| script(value, "finalize")).transpose()?;
    let mut stages = ArrayBuf::new();
    let mut add = |name: &str, value: ValueRef<'_>| {
        stages.push(&DocumentBuf::new().with(name, value));
    };
    if let Some(query) = fields.document("query")?.filter(|query| !query.is_empty()) {
        add("$match", ValueRef::Document(query));
    }
    if let Some(sort) = fields.document("sort")? {
        if sort.is_empty() {
            let message = "The mapReduce sort option must have at least one sort key";
            return Err(Failure::new(ErrorCode(15976), message));
        }
        add("$sort", ValueRef::Document(sort));
    }
    if let Some(limit) = fields.integer("limit")? {
        if limit <= 0 {
            return Err(Failure::new(ErrorCode(15958), "The limit specified to mapReduce must be positive"));
        }
        add("$limit", ValueRef::Int64(limit));
    }
    let (map, reduction_script) = (literal(map), literal(reduce));
    let emit = DocumentBuf::new().with("this", "$$ROOT").with("eval", &map);
    let emits = DocumentBuf::new().with("$_internalJsEmit", &emit);
    add("$project", ValueRef::from(&DocumentBuf::new().with("emits", &emits).with("_id", 0_i32)));
    add("$unwind", ValueRef::from(&DocumentBuf::new().with("path", "$emits")));
    let reduction = DocumentBuf::new().with("data", "$emits").with("eval", &reduction_script);
    let reduction = DocumentBuf::new().with("$_internalJsReduce", &reduction);
    add("$group", ValueRef::from(&DocumentBuf::new().with("_id", "$emits.k").with("value", &reduction)));
    let finalize = finalize.map(|finalize| function(finalize, &["$_id", "$value"].into_iter().collect()));
    if let Some(finalize) = &finalize {
        add("$project", ValueRef::from(&DocumentBuf::new().with("value", finalize)));
    }
    if let Output::Collection { mode, database, name } = output(fields)? {
        let target = DocumentBuf::new().with("db", database.unwrap_or_default()).with("coll", name);
        let target = if database.is_some() { ValueRef::from(&target) } else { ValueRef::String(name) };
        if mode == Mode::Replace {
            add("$out", target);
        } else {
            add("$merge", ValueRef::from(&merge(target, mode, reduce, finalize.as_ref())));
        }
    }
    Ok(stages)
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

fn required_script<'a>(fields: &Fields<'a>, name: &str) -> Result<&'a str> {
    // Null does not count as missing: MongoDB's parser takes any type here, and refuses null by its type.
    let value = fields.body.get(name).ok_or_else(|| missing(name))?;
    script(value, name)
}

fn missing(name: &str) -> Failure {
    let message = format!("BSON field 'mapReduce.{name}' is missing but a required field");
    Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
}

fn script<'a>(value: ValueRef<'a>, name: &str) -> Result<&'a str> {
    match value {
        ValueRef::String(text) | ValueRef::JavaScript(text) => Ok(text),
        _ => Err(Failure::bad_value(format!("'{name}' must be of string or code type"))),
    }
}

/// Reads `out`.
fn output<'a>(fields: &Fields<'a>) -> Result<Output<'a>> {
    match fields.body.get("out") {
        None => Err(missing("out")),
        Some(ValueRef::String(name)) => Ok(Output::Collection { mode: Mode::Replace, database: None, name }),
        Some(ValueRef::Document(output)) => read_output(output),
        Some(_) => Err(Failure::bad_value("'out' must be either a string or an object")),
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
