//! The command inside `explain`, parsed as the command itself parses it.

use super::cannot_explain;
use crate::commands::aggregate::Aggregate;
use crate::commands::bulk_write::{Action, OnlyOperation};
use crate::commands::count::Count;
use crate::commands::delete;
use crate::commands::distinct::Distinct;
use crate::commands::find;
use crate::commands::find::Find;
use crate::commands::find_and_modify::FindAndModifyCommand;
use crate::commands::map_reduce::MapReduce;
use crate::commands::update;
use crate::invocation::Invocation;
use crate::let_variables::Let;
use crate::retries;
use crate::write_statement::StatementBatch;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_pipelines::each_stage;
use bunko_query::write::{DeleteStatement, FindAndModify, UpdateStatement};
use bunko_request::Request;
use bunko_request::facts::{CommandFacts, ExplainedWrite, Explanation};
use bunko_request::fields::Fields;
use bunko_session::options::GenericOptions;

/// The fields of the command to be explained.
pub(super) enum Inner<'a> {
    Find(Find<'a>),
    Distinct(Distinct<'a>),
    Count(Count<'a>),
    Pipeline(Aggregate<'a>),
    MapReduce(MapReduce<'a>),
    Write(Write<'a>, Let<'a>),
}

/// The only statement of a write.
pub(super) enum Write<'a> {
    Insert,
    Update(UpdateStatement<'a>),
    Delete(DeleteStatement<'a>),
    FindAndModify(FindAndModify<'a>),
}

/// The command to be explained, with its fields.
pub(super) fn parse_command<'a>(invocation: &Invocation<'a>) -> Result<(&'static CommandFacts, Fields<'a>)> {
    let argument = invocation.argument();
    if argument.is_nullish() {
        return Err(invocation.missing("explain"));
    }
    let body = argument.as_document().ok_or_else(|| invocation.mismatch("explain", argument, "type 'object'"))?;
    let name = body.first().map_or("", |first| first.name);
    let Some(command) = find(name).map(|command| &command.facts) else {
        let message = format!("Explain failed due to unknown command: {name}");
        return Err(Failure::new(ErrorCode::COMMAND_NOT_FOUND, message));
    };
    if matches!(command.explain, Explanation::Refused | Explanation::Itself) {
        return Err(cannot_explain(command.name));
    }
    let database = invocation.request.database;
    if let Some(other) = body.get("$db").filter(|other| other.as_str() != Some(database)) {
        let other = other.as_str().unwrap_or_default();
        let message = format!("Mismatched $db in explain command. Expected {database} but got {other}");
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    // Unknown fields of the inner command are refused, as they are when the command runs.
    let deployment = invocation.service.deployment();
    let options = GenericOptions::parse(deployment, command, &Request::new(database, body, None))?;
    Ok((command, Fields::of_walked(command.name, body, options.met)))
}

/// The request inside `explain`, and its namespace.
pub(super) fn parse_inner<'a>(
    invocation: &Invocation<'a>,
    command: &CommandFacts,
    fields: &Fields<'a>,
) -> Result<(Inner<'a>, Namespace)> {
    let database = invocation.request.database;
    let argument = fields.body.first().map(|first| first.value);
    if command.explain == Explanation::Pipeline {
        let request = Aggregate::parse(fields)?;
        each_stage::check_names(request.stages.unwrap_or(ArrayRef::EMPTY))?;
        let namespace = match argument {
            Some(ValueRef::String(collection)) => Namespace::new(database, collection)?,
            _ => request.without_collection(invocation)?,
        };
        request.check_needs_no_collection(invocation)?;
        return Ok((Inner::Pipeline(request), namespace));
    }
    if command.explain == Explanation::Write(ExplainedWrite::Bulk) {
        let OnlyOperation { target, action, variables } = OnlyOperation::parse(fields)?;
        target.check_uuid(&invocation.service.catalog)?;
        let write = match action {
            Action::Insert(_) => Write::Insert,
            Action::Update(statement) => Write::Update(statement?),
            Action::Delete(statement) => Write::Delete(statement?),
        };
        return Ok((Inner::Write(write, variables), target.namespace));
    }
    let Some(ValueRef::String(collection)) = argument else {
        let kind = argument.map_or("missing", |value| value.kind().alias());
        let message = format!("collection name has invalid type {kind}");
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    };
    let inner = match command.explain {
        Explanation::Find => Inner::Find(Find::parse(fields)?),
        Explanation::Distinct => Inner::Distinct(Distinct::parse(fields)?),
        Explanation::Count => Inner::Count(Count::parse(fields)?),
        Explanation::MapReduce => Inner::MapReduce(MapReduce::parse(fields)?),
        Explanation::Write(ExplainedWrite::Update) => {
            let StatementBatch { statements, variables, .. } = StatementBatch::parse(fields, "updates")?;
            retries::parse(fields, statements.len())?;
            Inner::Write(Write::Update(update::parse_statement(only(&statements)?)?), variables)
        }
        Explanation::Write(ExplainedWrite::Delete) => {
            let StatementBatch { statements, variables, .. } = StatementBatch::parse(fields, "deletes")?;
            retries::parse(fields, statements.len())?;
            Inner::Write(Write::Delete(delete::parse_statement(only(&statements)?)?), variables)
        }
        Explanation::Write(ExplainedWrite::FindAndModify) => {
            let FindAndModifyCommand { statement, variables, .. } = FindAndModifyCommand::parse(fields)?;
            Inner::Write(Write::FindAndModify(statement), variables)
        }
        Explanation::Pipeline
        | Explanation::Write(ExplainedWrite::Bulk)
        | Explanation::Refused
        | Explanation::Itself => return Err(cannot_explain(command.name)),
    };
    Ok((inner, Namespace::new(database, collection)?))
}

/// The only statement of a batch.
/// # Errors
/// `InvalidLength` if there are more or none.
fn only<'a>(statements: &[DocumentRef<'a>]) -> Result<DocumentRef<'a>> {
    match statements {
        [only] => Ok(*only),
        _ => Err(Failure::new(ErrorCode::INVALID_LENGTH, "explained write batches must be of size 1")),
    }
}
