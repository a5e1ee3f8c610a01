//! `$merge`: merges documents into another collection, each with the document that it matches.

use super::{Definition, Stages, lookup};
use crate::stage_fields::StageFields;
use crate::{Environment, Merge, Pipeline, WhenMatched, WhenNotMatched, WriteStage};
use bunko_bson::{ArrayRef, DocumentRef, StringUse, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::FieldPath;
use bunko_stages::UpdateUse;
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::MERGE, strings: StringUse::AsBytes, parse };

const FIELDS: &[&str] = &["into", "on", "let", "whenMatched", "whenNotMatched"];

fn failure(code: i32, message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode(code), message)
}

/// Errors: `TypeMismatch` and 51178 for an invalid target; 51186, 51187, 51134 and 31465 for `on`; 51191 for
/// `whenMatched`; 51181 for modes that exclude each other; 51199 and 51273 for `let`; 31319 and 31320 for internal
/// targets.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let merge = match value {
        ValueRef::String(collection) => Merge {
            database: None,
            collection: collection.to_owned(),
            on: Vec::new(),
            when_matched: WhenMatched::Merge,
            when_not_matched: WhenNotMatched::Insert,
            variables: Vec::new(),
        },
        ValueRef::Document(specification) => parse_document(specification, environment)?,
        other => {
            let kind = other.kind().alias();
            return Err(Failure::type_mismatch(format!(
                "$merge requires a string or object argument, but found {kind}"
            )));
        }
    };
    if merge.collection.starts_with("system.") {
        return Err(failure(31319, format!("Cannot $merge to special collection: {}", merge.collection)));
    }
    let merge = Arc::new(merge);
    if let Some(database) = &merge.database {
        WriteStage::Merge(Arc::clone(&merge)).check_database(database)?;
    }
    Ok(vec![Box::new(WriteStage::Merge(merge))])
}

fn parse_document(specification: DocumentRef<'_>, environment: &Environment) -> Result<Merge> {
    let fields = StageFields::new("$merge", specification, FIELDS)?;
    let (database, collection) = into(fields.required("into", specification.get("into"))?)?;
    let on = specification.get("on").map_or(Ok(Vec::new()), on)?;
    let when_not_matched = when_not_matched(&fields)?;
    let definitions = fields.document("let")?;
    let (when_matched, stages) = when_matched(specification.get("whenMatched"))?;
    if definitions.is_some() && stages.is_none() {
        return Err(failure(51199, "Cannot use 'let' variables with 'whenMatched: <string>' mode"));
    }
    let is_strict = matches!(when_matched, WhenMatched::KeepExisting | WhenMatched::Fail);
    if is_strict && when_not_matched != WhenNotMatched::Insert {
        return Err(failure(51181, "Combination of $merge modes 'whenMatched' and 'whenNotMatched' is not supported"));
    }
    let definitions = definitions.unwrap_or(DocumentRef::EMPTY);
    if definitions.get("new").is_some_and(|new| !is_root(new)) {
        return Err(failure(51273, "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'"));
    }
    let variables = lookup::variables(definitions, environment)?;
    if let Some(stages) = stages {
        check_stages(stages, &variables, environment)?;
    }
    Ok(Merge { database, collection, on, when_matched, when_not_matched, variables })
}

fn into(value: ValueRef<'_>) -> Result<(Option<String>, String)> {
    let empty = || failure(5_786_800, "$merge 'into' field cannot be an empty string");
    match value {
        ValueRef::String("") => Err(empty()),
        ValueRef::String(collection) => Ok((None, collection.to_owned())),
        ValueRef::Document(target) => {
            let fields = StageFields::new("$merge.into", target, &["db", "coll"])?;
            let database = fields.string("db")?.filter(|database| !database.is_empty()).map(str::to_owned);
            match fields.string("coll")? {
                None => Err(failure(
                    5_786_801,
                    "$merge 'into' field must specify a 'coll' that is not empty, null or undefined",
                )),
                Some("") => Err(empty()),
                Some(collection) => Ok((database, collection.to_owned())),
            }
        }
        other => {
            let kind = other.kind().alias();
            Err(failure(51178, format!("$merge 'into' field must be either a string or an object, but found {kind}")))
        }
    }
}

fn on(value: ValueRef<'_>) -> Result<Vec<FieldPath>> {
    let names = match value {
        ValueRef::String(name) => vec![name],
        ValueRef::Array(names) if names.is_empty() => {
            return Err(failure(51187, "If explicitly specifying $merge 'on', must include at least one field"));
        }
        ValueRef::Array(names) => names
            .iter()
            .map(|name| {
                let kind = name.kind().alias();
                name.as_str().ok_or_else(|| {
                    failure(51134, format!("$merge 'on' array elements must be strings, but found {kind}"))
                })
            })
            .collect::<Result<_>>()?,
        other => {
            let kind = other.kind().alias();
            let message = format!("$merge 'on' field must be either a string or an array of strings, but found {kind}");
            return Err(failure(51186, message));
        }
    };
    let paths = names.iter().map(|name| FieldPath::parse(name)).collect::<Result<Vec<_>>>()?;
    for (position, name) in names.iter().enumerate() {
        if names[..position].contains(name) {
            return Err(failure(31465, format!("Found a duplicate field '{name}' in $merge 'on'")));
        }
    }
    Ok(paths)
}

fn bad_mode(field: &str, mode: &str) -> Failure {
    Failure::bad_value(format!("Enumeration value '{mode}' for field '$merge.{field}' is not a valid value."))
}

fn when_not_matched(fields: &StageFields<'_>) -> Result<WhenNotMatched> {
    match fields.string("whenNotMatched")? {
        None | Some("insert") => Ok(WhenNotMatched::Insert),
        Some("discard") => Ok(WhenNotMatched::Discard),
        Some("fail") => Ok(WhenNotMatched::Fail),
        Some(other) => Err(bad_mode("whenNotMatched", other)),
    }
}

/// Reads `whenMatched`: the mode, and the stages if it is a pipeline.
fn when_matched(value: Option<ValueRef<'_>>) -> Result<(WhenMatched, Option<ArrayRef<'_>>)> {
    let mode = match value {
        None | Some(ValueRef::String("merge")) => WhenMatched::Merge,
        Some(ValueRef::String("replace")) => WhenMatched::Replace,
        Some(ValueRef::String("keepExisting")) => WhenMatched::KeepExisting,
        Some(ValueRef::String("fail")) => WhenMatched::Fail,
        Some(ValueRef::String(other)) => return Err(bad_mode("whenMatched", other)),
        Some(ValueRef::Array(stages)) => return Ok((WhenMatched::Pipeline(stages.to_owned()), Some(stages))),
        Some(other) => {
            let kind = other.kind().alias();
            let message = format!("$merge 'whenMatched' field must be either a string or an array, but found {kind}");
            return Err(failure(51191, message));
        }
    };
    Ok((mode, None))
}

fn check_stages(
    stages: ArrayRef<'_>,
    variables: &[(String, bunko_expression::Expression)],
    environment: &Environment,
) -> Result<()> {
    let mut names = environment.scope.variables.clone();
    names.define("new", Some(Value::Null))?;
    variables.iter().try_for_each(|(name, _)| names.define(name, None))?;
    Pipeline::parse(stages, environment.with_variables(names))?;
    let mut names = stages.iter().filter_map(|stage| Some(stage.as_document()?.first()?.name));
    let is_allowed = |name: &str| bunko_stages::find(name).is_some_and(|stage| stage.update == UpdateUse::Allowed);
    match names.find(|name| !is_allowed(name)) {
        Some(name) => {
            let message = format!("{name} is not allowed to be used within an update");
            Err(Failure::new(ErrorCode::INVALID_OPTIONS, message))
        }
        None => Ok(()),
    }
}

/// Whether a value is exactly `$$ROOT`, the new document.
fn is_root(value: ValueRef<'_>) -> bool {
    value.as_str() == Some("$$ROOT")
}
