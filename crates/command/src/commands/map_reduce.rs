//! `mapReduce`: documents through scripts, as a pipeline.
//!
//! Source: MongoDB manual, "mapReduce".

use super::aggregate;
use crate::authorization::{Privileges, pipelines};
use crate::collation_option;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::fields::Fields;
use crate::invocation::Invocation;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::QueryScope;
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    name: "mapReduce",
    aliases: &["mapreduce"],
    fields: &[
        "map",
        "reduce",
        "finalize",
        "out",
        "query",
        "sort",
        "limit",
        "scope",
        "jsMode",
        "verbose",
        "bypassDocumentValidation",
        "collation",
    ],
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::By(pipelines::map_reduce),
    run,
};

/// Where the results go.
enum Output<'a> {
    /// Into the reply.
    Inline,
    /// Into a collection.
    Collection { mode: Mode, database: Option<&'a str>, name: &'a str },
}

/// What becomes of what the collection holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Replace,
    Merge,
    Reduce,
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    if invocation.boolean("bypassDocumentValidation", false)? {
        invocation.operation().bypass_validation();
    }
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
        while let Some(document) = source.next().map_err(within)? {
            reply.push(index, document);
            crate::dispatch::check_reply_bytes(reply.len_bytes())?;
            index += 1;
        }
        reply.end();
        return Ok(());
    };
    if let Some(stage) = aggregation.pipeline.write() {
        aggregate::run_write(invocation, aggregation, stage)?;
    }
    match database {
        None => reply.append("result", name),
        Some(database) => reply.begin_document("result").append("db", database).append("collection", name).end(),
    };
    Ok(())
}

fn within(failure: Failure) -> Failure {
    failure.with_prefix("PlanExecutor error during mapReduce :: caused by :: ")
}

/// What the pipeline's expressions see: the order of strings, and the variables of `scope` for the scripts.
/// # Errors
/// What is wrong with the collation or the scope.
pub(super) fn scope(
    invocation: &Invocation<'_>,
    fields: &Fields<'_>,
    namespace: &Namespace,
) -> Result<Arc<QueryScope>> {
    let asked = collation_option::asked(fields)?;
    let strings = collation_option::of_command(&invocation.service.catalog, asked, namespace)?;
    let scope = Arc::new(invocation.scope().with_strings(&strings));
    if let Some(variables) = fields.document("scope")? {
        scope.scripts.define(variables);
    }
    Ok(scope)
}

/// The pipeline that does it.
/// # Errors
/// What is wrong with the fields.
pub(super) fn stages(fields: &Fields<'_>) -> Result<ArrayBuf> {
    fields.boolean("jsMode", false)?;
    fields.boolean("verbose", false)?;
    let (map, reduce) = (required_script(fields, "map")?, required_script(fields, "reduce")?);
    let finalize = fields.field("finalize").map(|value| script(value, "finalize")).transpose()?;
    let mut stages = ArrayBuf::new();
    let mut add = |name: &str, value: ValueRef<'_>| {
        stages.push(&DocumentBuf::new().with(name, value));
    };
    for (option, stage) in [("query", "$match"), ("sort", "$sort")] {
        if let Some(value) = fields.document(option)?.filter(|value| !value.is_empty()) {
            add(stage, ValueRef::Document(value));
        }
    }
    if let Some(limit) = fields.size("limit")?.filter(|limit| *limit > 0) {
        add("$limit", ValueRef::Int64(i64::try_from(limit).unwrap_or(i64::MAX)));
    }
    let emit = DocumentBuf::new().with("this", "$$ROOT").with("eval", map);
    let emits = DocumentBuf::new().with("$_internalJsEmit", &emit);
    add("$project", ValueRef::from(&DocumentBuf::new().with("emits", &emits).with("_id", 0_i32)));
    add("$unwind", ValueRef::from(&DocumentBuf::new().with("path", "$emits")));
    let reduction = DocumentBuf::new().with("data", "$emits").with("eval", reduce);
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

/// `$function` of a script.
fn function(body: &str, arguments: &ArrayBuf) -> DocumentBuf {
    let function = DocumentBuf::new().with("body", body).with("args", arguments).with("lang", "js");
    DocumentBuf::new().with("$function", &function)
}

/// How new results meet the old ones of their keys.
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
    let value = fields.field(name).ok_or_else(|| missing(name))?;
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
    match fields.field("out") {
        None => Err(missing("out")),
        Some(ValueRef::String(name)) => Ok(Output::Collection { mode: Mode::Replace, database: None, name }),
        Some(ValueRef::Document(output)) => read_output(output),
        Some(_) => Err(Failure::bad_value("'out' must be either a string or an object")),
    }
}

fn read_output(output: DocumentRef<'_>) -> Result<Output<'_>> {
    let mut kinds = Vec::new();
    let mut database = None;
    for element in output {
        let text = || {
            let message = format!("'{}' of 'out' must be a string", element.name);
            element.value.as_str().ok_or_else(|| Failure::bad_value(message))
        };
        match element.name {
            "replace" => kinds.push((Mode::Replace, Some(text()?))),
            "merge" => kinds.push((Mode::Merge, Some(text()?))),
            "reduce" => kinds.push((Mode::Reduce, Some(text()?))),
            "inline" => kinds.push((Mode::Replace, None)),
            "db" if database.is_some() => {
                let message = "BSON field 'mapReduce.out.db' is a duplicate field";
                return Err(Failure::new(ErrorCode::IDL_DUPLICATE_FIELD, message));
            }
            "db" => database = Some(text()?),
            // The deprecated options of sharded clusters and of locks that there are none of.
            "sharded" | "nonAtomic" => {
                if !matches!(element.value, ValueRef::Boolean(_)) {
                    let message = format!("'{}' of 'out' must be a boolean", element.name);
                    return Err(Failure::bad_value(message));
                }
            }
            other => return Err(Failure::bad_value(format!("unknown field '{other}' of 'out'"))),
        }
    }
    match (kinds.pop(), kinds.is_empty()) {
        (Some((mode, Some(name))), true) => Ok(Output::Collection { mode, database, name }),
        (Some((_, None)), true) => Ok(Output::Inline),
        _ => Err(Failure::bad_value("'out' must name one of 'replace', 'merge', 'reduce' and 'inline'")),
    }
}
