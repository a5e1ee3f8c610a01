//! `delete`: removes documents.

use super::insert::{check_batch_size, write_errors};
use crate::authorization::Privileges;
use crate::collation_option::Collation;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::hint_option::HintOption;
use crate::invocation::Invocation;
use crate::retries::Retries;
use crate::statement_note::{Statement, StatementClock};
use crate::system_namespace::{Creation, check_writable};
use crate::target::WriteTarget;
use crate::write_statement::{INTERNAL_FIELDS, StatementBatch, refuse_long_batch, refuse_scripts, run_each};
use bunko_authority::is_on_users;
use bunko_authority::privileges::writes;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef, Writer, number};
use bunko_errors::{Failure, Result};
use bunko_query::write::{DeleteStatement, Writes};
use bunko_request::counted_as::{Opcounter, OperationClass, UsageKind};
use bunko_request::facts::{
    Changes, CommandFacts, EncryptionUse, ExplainedWrite, Explanation, Profiling, Retry, Secrets, Stability,
    TransactionUse, WriteConcernUse,
};
use bunko_request::field_kinds::{Field, Kind, field};
use bunko_request::statement::{required, required_document, statement};
use bunko_session::Halt;
use bunko_update::Targets;
use std::sync::Arc;

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "delete",
        fields: FIELDS,
        transaction: TransactionUse::Anywhere,
        sequences: &["deletes"],
        changes: Changes::Documents,
        write_concern: WriteConcernUse::Taken,
        retry: Retry::Safe,
        stable_api: Stability::WHOLE,
        secrets: Secrets::OfUsers(is_on_users),
        explain: Explanation::Write(ExplainedWrite::Delete),
        profiling: Profiling::ByStatement,
        class: OperationClass::Write,
        usage: UsageKind::Remove,
        opcounter: Opcounter::ByStatement,
        encryption: EncryptionUse::Allowed,
        internal_fields: INTERNAL_FIELDS,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(writes::delete),
    run,
    ..Command::PLAIN
};

const FIELDS: &[Field] = &[
    field("deletes", Kind::Array),
    field("ordered", Kind::Boolean),
    // All writes accept these two options. They have no effect on a delete.
    field("bypassDocumentValidation", Kind::BooleanLike),
    field("bypassEmptyTsReplacement", Kind::Flag),
    field("let", Kind::Object),
    field("stmtId", Kind::Int),
    field("stmtIds", Kind::Own),
    field("collectionUUID", Kind::Uuid),
];

const STATEMENT_FIELDS: &[Field] =
    &[field("q", Kind::Object), field("limit", Kind::Own), field("hint", Kind::Hint), field("collation", Kind::Object)];

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let StatementBatch { options, variables, statements: documents } = StatementBatch::parse(invocation, "deletes")?;
    invocation.will_read_statements(documents.len())?;
    check_batch_size(documents.len())?;
    refuse_scripts(invocation, &documents)?;
    let statements: Vec<_> = documents.iter().map(|document| parse_statement(*document)).collect::<Result<_>>()?;
    let mut retries = Retries::of(invocation, statements.len())?;
    retries.refuse_many(statements.iter().map(|statement| statement.targets == Targets::Many), "limit=0")?;
    collection_uuid::check(&invocation.service.catalog, &namespace, options.uuid)?;
    check_writable(&invocation.service.catalog, &namespace, Creation::None)?;
    let target = WriteTarget::of(&invocation.service.catalog, invocation, &namespace)?;
    refuse_long_batch(
        invocation,
        &namespace,
        statements.iter().map(|statement| (statement.filter, None, statement.targets)),
    )?;
    let service = invocation.service;
    let scope = variables.define_in(invocation.scope())?;
    let mut writes = Writes::new(&service.catalog, &namespace, &service.world, Arc::clone(&scope));
    let mut deleted = 0;
    let (mut clock, mut attempted) = (StatementClock::begin(invocation)?, 0);
    let outcome = run_each(&statements, options.order, |position, statement| {
        attempted += 1;
        if let Some(done_before) = retries.begin_delete(position)? {
            deleted += done_before;
            return Ok(());
        }
        let outcome = match &target {
            WriteTarget::TimeSeries(series) => {
                invocation.write_series(|writes| writes.delete(series, &scope, statement))
            }
            WriteTarget::Collection | WriteTarget::View => writes.delete(statement),
        };
        let search = writes.take_last_search();
        clock.end(invocation, &Statement::delete(&namespace, documents[position], statement, &outcome, search));
        deleted += outcome?;
        Ok(())
    });
    invocation.note_written(writes.written().max(retries.written()));
    // A command that is too long for this thread is counted when it runs on another one.
    if !outcome.as_ref().is_err_and(Failure::is_too_long) {
        service.counters.note_deletes(attempted, deleted);
    }
    let failures = outcome?;
    retries.end()?;
    reply.append("n", deleted as i32);
    retries.write(reply);
    write_errors(reply, &failures);
    Ok(())
}

/// Parses one entry of `deletes`.
pub(super) fn parse_statement(document: DocumentRef<'_>) -> Result<DeleteStatement<'_>> {
    let fields = statement("delete.deletes", document, STATEMENT_FIELDS)?;
    let filter = required_document(&fields, "q")?;
    let targets = targets(required(&fields, "limit")?)?;
    let strings = Collation::parse(&fields)?.order()?;
    Ok(DeleteStatement { filter, targets, strings, hint: HintOption::parse(&fields).read()? })
}

/// Reads `limit`: 0 deletes all matching documents, 1 the first.
fn targets(limit: ValueRef<'_>) -> Result<Targets> {
    match number::as_i64_exact(limit) {
        Some(0) => Ok(Targets::Many),
        Some(1) => Ok(Targets::One),
        _ => Err(Failure::failed_to_parse(format!(
            "The limit field in delete objects must be 0 or 1. Got {}",
            ValueText(limit)
        ))),
    }
}
