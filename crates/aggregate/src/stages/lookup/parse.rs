//! Parses the specification of `$lookup`.

use super::super::{Stages, position};
use super::{Correlation, Equality, Lookup};
use crate::stage_fields::StageFields;
use crate::sub_pipeline::SubPipeline;
use crate::{Environment, SourceName};
use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_expression::{Expression, FieldPath};

/// The only collection of another database that `$lookup` may read.
const OPLOG_DATABASE: &str = "local";
const OPLOG_COLLECTION: &str = "oplog.rs";
const FIELDS: &[&str] = &["from", "localField", "foreignField", "let", "pipeline", "as"];

/// Errors: `FailedToParse` for fields that exclude each other; `TypeMismatch`, `IDLFailedToParse` and `IDLUnknownField`
/// for fields; 51047 for stages not allowed in the pipeline; errors of paths, of variables and of the pipeline.
pub(super) fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let kind = value.kind().alias();
        let message = format!("the $lookup stage specification must be an object, but found {kind}");
        return Err(Failure::failed_to_parse(message));
    };
    let fields = StageFields::new("$lookup", specification, FIELDS)?;
    let as_path = fields.required("as", fields.string("as")?)?;
    let stages = fields.pipeline("pipeline")?;
    let source = source(&fields, stages)?;
    let [local, foreign] = [path(&fields, "localField")?, path(&fields, "foreignField")?];
    let definitions = fields.document("let")?;
    if local.is_some() != foreign.is_some() {
        return Err(Failure::failed_to_parse(
            "$lookup requires both or neither of 'localField' and 'foreignField' to be specified",
        ));
    }
    if stages.is_none() && local.is_none() {
        return Err(Failure::failed_to_parse(
            "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified",
        ));
    }
    if stages.is_none() && definitions.is_some() {
        return Err(Failure::failed_to_parse("$lookup with a 'let' argument must also specify 'pipeline'"));
    }
    let as_path = FieldPath::parse(as_path)?;
    let variables = variables(definitions.unwrap_or(DocumentRef::EMPTY), environment)?;
    let mut names = environment.scope.variables.clone();
    variables.iter().try_for_each(|(name, _)| names.define(name, None))?;
    let inside = environment.nested()?.with_variables(names);
    let stages = stages.unwrap_or(ArrayRef::EMPTY);
    position::refuse_outermost(stages, 51047, "$lookup")?;
    position::refuse_vector_search(stages)?;
    let inner = SubPipeline::parse(source, stages, &inside)?;
    let equality = match (local, foreign) {
        (Some(local), Some(foreign)) => {
            Some(Equality { local: FieldPath::parse(local)?, foreign: FieldPath::parse(foreign)? })
        }
        _ => None,
    };
    let correlation = if equality.is_none() && !variables.is_empty() && inner.reads_plainly().is_some() {
        Correlation::of_pipeline(stages, &inside)
    } else {
        None
    };
    Ok(vec![Box::new(Lookup {
        as_path,
        equality,
        variables,
        correlation,
        inner,
        inside,
        unwinding: None,
        matching: None,
        read: None,
    })])
}

/// The other collection; a pipeline with `$documents` needs none.
fn source(fields: &StageFields<'_>, stages: Option<ArrayRef<'_>>) -> Result<Option<SourceName>> {
    match fields.field("from") {
        Some(ValueRef::String(from)) => Ok(Some(SourceName::here(from))),
        Some(ValueRef::Document(from)) => {
            let from = StageFields::new("from", from, &["db", "coll"])?;
            let part = |name| Ok::<_, Failure>(from.string(name)?.unwrap_or_default());
            if (part("db")?, part("coll")?) == (OPLOG_DATABASE, OPLOG_COLLECTION) {
                let source = SourceName { database: Some(OPLOG_DATABASE.into()), collection: OPLOG_COLLECTION.into() };
                return Ok(Some(source));
            }
            let message = format!(
                "$lookup with syntax {{from: {{db:<>, coll:<>}},..}} is not supported for db: {} and coll: {}",
                part("db")?,
                part("coll")?
            );
            Err(Failure::failed_to_parse(message))
        }
        Some(other) => {
            let kind = other.kind().alias();
            Err(Failure::failed_to_parse(format!("$lookup argument 'from' must be a string, is type {kind}")))
        }
        None => {
            let first = stages.and_then(|stages| stages.iter().next()?.as_document());
            if first.is_some_and(|first| first.get(bunko_stages::DOCUMENTS.name).is_some()) {
                return Ok(None);
            }
            Err(Failure::failed_to_parse("must specify 'from' field for a $lookup"))
        }
    }
}

/// The path in a field; an empty one counts as missing.
fn path<'a>(fields: &StageFields<'a>, name: &str) -> Result<Option<&'a str>> {
    Ok(fields.string(name)?.filter(|path| !path.is_empty()))
}

/// Parses `let`. Each expression sees the variables around the stage, but not the others of this `let`.
pub(in super::super) fn variables(
    definitions: DocumentRef<'_>,
    environment: &Environment,
) -> Result<Vec<(String, Expression)>> {
    let scope = environment.scope.parse_scope();
    let mut names = bunko_expression::Variables::new();
    definitions
        .iter()
        .map(|definition| {
            names.define(definition.name, None)?;
            Ok((definition.name.to_owned(), Expression::parse(definition.value, &scope)?))
        })
        .collect()
}
