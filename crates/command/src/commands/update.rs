//! `update`: changes documents, or inserts one if none matches.

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
use crate::update_stages::own_fault;
use crate::write_statement::{
    INTERNAL_FIELDS, StatementBatch, check_modification, refuse_long_batch, refuse_scripts, run_each,
};
use bunko_aggregate::is_known_stage;
use bunko_authority::is_on_users;
use bunko_authority::privileges::writes;
use bunko_bson::{DocumentRef, Value, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::write::{UpdateStatement, Upsert, Writes};
use bunko_request::counted_as::{Opcounter, OperationClass, UsageKind};
use bunko_request::facts::{
    Changes, CommandFacts, EncryptionUse, ExplainedWrite, Explanation, OwnTime, Profiling, Retry, Secrets, Stability,
    TransactionUse, WriteConcernUse,
};
use bunko_request::field_kinds::{Field, Kind, field};
use bunko_request::statement::{array_filters, required, required_document, statement};
use bunko_session::Halt;
use bunko_update::Targets;
use std::sync::Arc;

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "update",
        fields: &[
            field("updates", Kind::Array),
            field("ordered", Kind::Boolean),
            field("let", Kind::Object),
            field("bypassDocumentValidation", Kind::BooleanLike),
            field("bypassEmptyTsReplacement", Kind::Flag),
            field("stmtId", Kind::Int),
            field("stmtIds", Kind::Own),
            field("collectionUUID", Kind::Uuid),
        ],
        transaction: TransactionUse::Anywhere,
        sequences: &["updates"],
        changes: Changes::Documents,
        write_concern: WriteConcernUse::Taken,
        retry: Retry::Safe,
        stable_api: Stability::WHOLE,
        secrets: Secrets::OfUsers(is_on_users),
        explain: Explanation::Write(ExplainedWrite::Update),
        profiling: Profiling::ByStatement,
        class: OperationClass::Write,
        usage: UsageKind::Update,
        opcounter: Opcounter::ByStatement,
        own_time: OwnTime::Shown,
        encryption: EncryptionUse::Allowed,
        internal_fields: INTERNAL_FIELDS,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(writes::update),
    run,
    ..Command::PLAIN
};

const STATEMENT_FIELDS: &[Field] = &[
    field("q", Kind::Object),
    field("u", Kind::Own),
    field("c", Kind::Object),
    field("multi", Kind::Boolean),
    field("upsert", Kind::Boolean),
    field("upsertSupplied", Kind::Flag),
    field("collation", Kind::Object),
    field("arrayFilters", Kind::Objects),
    field("hint", Kind::Hint),
    field("sort", Kind::Object),
];

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let StatementBatch { options, variables, statements: documents } = StatementBatch::parse(invocation, "updates")?;
    options.apply_bypass(invocation);
    invocation.will_read_statements(documents.len())?;
    check_batch_size(documents.len())?;
    refuse_scripts(invocation, &documents)?;
    let mut statements = Vec::with_capacity(documents.len());
    for document in &documents {
        statements.push(parse_statement(*document)?);
    }
    statements.iter().try_for_each(|statement| check_stage_names(statement.update))?;
    let mut retries = Retries::of(invocation, statements.len())?;
    retries.refuse_many(statements.iter().map(|statement| statement.targets == Targets::Many), "multi=true")?;
    let may_insert = statements.iter().any(|statement| statement.upsert == Upsert::Yes);
    collection_uuid::check(&invocation.service.catalog, &namespace, options.uuid)?;
    let creation = if may_insert { Creation::Implied } else { Creation::None };
    check_writable(&invocation.service.catalog, &namespace, creation)?;
    let target = WriteTarget::of(&invocation.service.catalog, invocation, &namespace)?;
    refuse_long_batch(
        invocation,
        &namespace,
        statements.iter().map(|statement| (statement.filter, statement.sort, statement.targets)),
    )?;
    let service = invocation.service;
    let scope = variables.define_in(invocation.scope())?;
    let mut writes = Writes::new(&service.catalog, &namespace, &service.world, Arc::clone(&scope))
        .with_empty_timestamps(options.empty_timestamps);
    let (mut matched, mut modified) = (0, 0);
    let mut upserted: Vec<(usize, Value)> = Vec::new();
    let (mut clock, mut attempted) = (StatementClock::begin(invocation)?, 0);
    let outcome = run_each(&statements, options.order, |position, statement| {
        attempted += 1;
        let outcome = match retries.begin_update(position)? {
            Some(done_before) => done_before,
            None => {
                let outcome = match &target {
                    WriteTarget::TimeSeries(series) => {
                        invocation.write_series(|writes| writes.update(series, &scope, statement))
                    }
                    WriteTarget::Collection | WriteTarget::View => {
                        writes.update(statement).map_err(|failure| own_fault(failure, statement.update, &scope))
                    }
                };
                let search = writes.take_last_search();
                clock.end(invocation, &Statement::update(&namespace, documents[position], statement, &outcome, search));
                outcome?
            }
        };
        matched += outcome.matched;
        modified += outcome.modified;
        upserted.extend(outcome.upserted.map(|id| (position, id)));
        Ok(())
    });
    invocation.note_written(writes.written().max(retries.written()));
    // A command that is too long for this thread is counted when it runs on another one.
    if !outcome.as_ref().is_err_and(Failure::is_too_long) {
        service.counters.note_updates(attempted, modified);
    }
    let failures = outcome?;
    retries.end()?;
    reply.append("n", (matched + upserted.len() as u64) as i32).append("nModified", modified as i32);
    write_upserted(reply, &upserted);
    retries.write(reply);
    write_errors(reply, &failures);
    Ok(())
}

/// Refuses the whole command if a pipeline names an unknown stage, as MongoDB does. Other errors of a statement fail
/// only that statement.
/// # Errors
/// 40324.
fn check_stage_names(update: ValueRef<'_>) -> Result<()> {
    let ValueRef::Array(stages) = update else { return Ok(()) };
    let mut names = stages.iter().filter_map(|stage| Some(stage.as_document()?.first()?.name));
    match names.find(|name| !is_known_stage(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::new(ErrorCode(40324), format!("Unrecognized pipeline stage name: '{name}'"))),
    }
}

/// Parses one entry of `updates`.
pub(super) fn parse_statement(document: DocumentRef<'_>) -> Result<UpdateStatement<'_>> {
    let fields = statement("update.updates", document, STATEMENT_FIELDS)?;
    let filter = required_document(&fields, "q")?;
    let update = check_modification(required(&fields, "u")?)?;
    let constants = fields.document("c")?;
    let targets = if fields.strict_boolean("multi", false)? { Targets::Many } else { Targets::One };
    let sort = single_sort(fields.document("sort")?, targets)?;
    let supplied = if fields.strict_boolean("upsertSupplied", false)? { Some(supplied(constants)?) } else { None };
    Ok(UpdateStatement {
        strings: Collation::parse(&fields)?.order()?,
        filter,
        update,
        constants,
        supplied,
        array_filters: array_filters(&fields)?.unwrap_or_default(),
        targets,
        upsert: if fields.strict_boolean("upsert", false)? { Upsert::Yes } else { Upsert::No },
        hint: HintOption::parse(&fields).read()?,
        sort,
    })
}

/// The order in which the first document is chosen.
/// # Errors
/// `FailedToParse` for an update of many documents.
pub(super) fn single_sort(sort: Option<DocumentRef<'_>>, targets: Targets) -> Result<Option<DocumentRef<'_>>> {
    let sort = sort.filter(|sort| !sort.is_empty());
    if sort.is_some() && targets == Targets::Many {
        return Err(Failure::failed_to_parse("Cannot specify sort with multi=true"));
    }
    Ok(sort)
}

/// The document that an update with `upsertSupplied` inserts if none matches.
pub(super) fn supplied(constants: Option<DocumentRef<'_>>) -> Result<DocumentRef<'_>> {
    constants.and_then(|constants| constants.get("new")).and_then(ValueRef::as_document).ok_or_else(|| {
        let message = "the parameter 'upsertSupplied' is set to 'true', but no document was supplied";
        Failure::failed_to_parse(message)
    })
}

fn write_upserted(reply: &mut Writer<'_>, upserted: &[(usize, Value)]) {
    if upserted.is_empty() {
        return;
    }
    reply.begin_array("upserted");
    for (index, (position, id)) in upserted.iter().enumerate() {
        reply.begin_document(&index.to_string()).append("index", *position as i32).append("_id", id).end();
    }
    reply.end();
}
