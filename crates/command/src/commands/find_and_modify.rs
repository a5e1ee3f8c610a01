//! `findAndModify`: changes or removes one document and returns it.

use crate::authorization::Privileges;
use crate::collation_option::Collation;
use crate::command_entry::Command;
use crate::hint_option::HintOption;
use crate::invocation::Invocation;
use crate::let_variables::Let;
use crate::retries::{Retries, other_kind};
use crate::system_namespace::{Creation, check_writable};
use crate::target::WriteTarget;
use crate::update_stages::own_fault;
use crate::write_statement::{INTERNAL_FIELDS, WriteOptions, check_modification, refuse_long_batch};
use bunko_authority::is_on_users;
use bunko_authority::privileges::writes;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_catalog::{Did, Image, Outcome};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_observe::observation::WriteCounts;
use bunko_operation::Examined;
use bunko_query::write::{
    Action, Express, FindAndModify, FindAndModifyOutcome, LastSearch, Modification, Returning, Upsert, Writes,
};
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{
    Changes, CommandFacts, EncryptionUse, ExplainedWrite, Explanation, OwnTime, Retry, Secrets, Stability,
    TransactionUse, WriteConcernUse,
};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_request::statement::array_filters;
use bunko_session::Halt;
use bunko_update::Targets;
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "findAndModify",
        aliases: &["findandmodify"],
        fields: &[
            field("query", Kind::Object),
            field("sort", Kind::Object),
            field("remove", Kind::BooleanLike),
            field("update", Kind::Own),
            field("new", Kind::BooleanLike),
            field("fields", Kind::Object),
            field("upsert", Kind::BooleanLike),
            field("hint", Kind::Hint),
            field("arrayFilters", Kind::Objects),
            field("collation", Kind::Object),
            field("let", Kind::Object),
            field("bypassDocumentValidation", Kind::BooleanLike),
            field("bypassEmptyTsReplacement", Kind::Flag),
            field("stmtId", Kind::Int),
            // `batchSize` and `singleBatch` are ignored: the reply has one document.
            field("batchSize", Kind::Int),
            field("singleBatch", Kind::Boolean),
        ],
        transaction: TransactionUse::Anywhere,
        changes: Changes::Documents,
        write_concern: WriteConcernUse::Taken,
        retry: Retry::Safe,
        stable_api: Stability::WHOLE,
        secrets: Secrets::OfUsers(is_on_users),
        explain: Explanation::Write(ExplainedWrite::FindAndModify),
        class: OperationClass::Write,
        own_time: OwnTime::Shown,
        encryption: EncryptionUse::Allowed,
        internal_fields: INTERNAL_FIELDS,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(writes::find_and_modify),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let FindAndModifyCommand { options, variables, statement } = FindAndModifyCommand::parse(invocation)?;
    options.apply_bypass(invocation);
    let may_insert = matches!(&statement.action, Action::Update(update) if update.upsert == Upsert::Yes);
    let creation = if may_insert { Creation::Implied } else { Creation::None };
    check_writable(&invocation.service.catalog, &namespace, creation)?;
    let target = WriteTarget::of(&invocation.service.catalog, invocation, &namespace)?;
    refuse_long_batch(invocation, &namespace, std::iter::once((statement.filter, statement.sort, Targets::One)))?;
    let service = invocation.service;
    let mut retries = Retries::of(invocation, 1)?;
    if let Some(outcome) = retries.did(0)? {
        invocation.note_written(retries.written());
        write_outcome(reply, &statement.action, &answered(outcome, &statement.action)?);
        retries.write_one(reply);
        return Ok(());
    }
    if let Err(failure) = retries.begin(0) {
        retries.end()?;
        return Err(failure.into());
    }
    let scope = variables.define_in(invocation.scope())?;
    let outcome = if let WriteTarget::TimeSeries(series) = &target {
        invocation.write_series(|writes| writes.find_and_remove(series, &scope, &statement))?
    } else {
        let mut writes = Writes::new(&service.catalog, &namespace, &service.world, Arc::clone(&scope))
            .with_empty_timestamps(options.empty_timestamps);
        let outcome = writes.find_and_modify(&statement);
        invocation.note_written(writes.written());
        note_search(invocation, &statement.action, writes.take_last_search());
        outcome.map_err(|failure| match &statement.action {
            Action::Update(modification) => own_fault(failure, modification.update, &scope),
            Action::Remove => failure,
        })?
    };
    let changed = u64::from(outcome.is_found);
    match statement.action {
        Action::Remove => service.counters.note_deletes(0, changed),
        Action::Update(_) => service.counters.note_updates(0, changed),
    }
    invocation.observation.counts = match statement.action {
        Action::Remove => WriteCounts::deleted(changed),
        Action::Update(_) => WriteCounts {
            matched: Some(changed),
            modified: Some(u64::from(outcome.is_modified)),
            upserted: Some(u64::from(outcome.upserted.is_some())),
            ..WriteCounts::default()
        },
    };
    retries.end()?;
    write_outcome(reply, &statement.action, &outcome);
    Ok(())
}

/// Notes the keys and documents that the search examined, and its plan.
fn note_search(invocation: &mut Invocation<'_>, action: &Action<'_>, search: Option<LastSearch>) {
    let Some(search) = search else { return };
    let totals = search.statistics();
    invocation.note_examined(Examined { keys: totals.keys_examined, documents: totals.docs_examined });
    let stage = if matches!(action, Action::Remove) { "DELETE" } else { "UPDATE" };
    invocation.note_plan(|| Some(search.report(stage, Express::No)));
}

/// The outcome of the first attempt, for a retry.
/// # Errors
/// `InvalidOptions` if the first attempt was another command; 40606, 40608, 40610, 40611 and 40612 if it was a
/// different findAndModify.
fn answered(outcome: Outcome, action: &Action<'_>) -> Result<FindAndModifyOutcome> {
    let Outcome::Returned { value, upserted, did } = outcome else { return Err(other_kind("findAndModify")) };
    check_retry(did.as_ref().filter(|_| upserted.is_none()), upserted.is_some(), action)?;
    let is_found = upserted.is_none();
    Ok(FindAndModifyOutcome { is_found, is_modified: is_found, upserted, value })
}

/// Refuses a retry that differs from the first attempt. `did` is unknown if an earlier version of the server made that
/// attempt.
fn check_retry(did: Option<&Did>, has_inserted: bool, action: &Action<'_>) -> Result<()> {
    let (code, asked, done) = match (did, action) {
        (_, Action::Remove) if has_inserted => (40608, "asks for a removal", "inserted a document"),
        (_, Action::Update(update)) if has_inserted && update.upsert == Upsert::No => {
            (40608, "has no 'upsert: true'", "inserted a document")
        }
        (Some(Did::Removed), Action::Update(_)) => (40606, "asks for an update", "removed a document"),
        (Some(Did::Updated(_)), Action::Remove) => (40610, "asks for a removal", "updated a document"),
        (Some(Did::Updated(Image::Before)), Action::Update(update)) if update.returning == Returning::After => {
            (40611, "wants the document after the update", "kept the document before the update")
        }
        (Some(Did::Updated(Image::After)), Action::Update(update)) if update.returning == Returning::Before => {
            (40612, "wants the document before the update", "kept the document after the update")
        }
        _ => return Ok(()),
    };
    let message = format!("findAndModify retry request {asked}, but the write under its number and statement {done}");
    Err(Failure::new(ErrorCode(code), message))
}

/// A `findAndModify`, also one inside `explain`.
pub(super) struct FindAndModifyCommand<'a> {
    pub(super) options: WriteOptions,
    pub(super) variables: Let<'a>,
    pub(super) statement: FindAndModify<'a>,
}

impl<'a> FindAndModifyCommand<'a> {
    /// # Errors
    /// MongoDB's codes for fields of the wrong type and for fields that exclude each other.
    pub(super) fn parse(fields: &Fields<'a>) -> Result<Self> {
        Ok(Self {
            options: WriteOptions::parse(fields)?,
            variables: Let::parse(fields)?,
            statement: FindAndModify {
                filter: fields.document("query")?.unwrap_or(DocumentRef::EMPTY),
                sort: fields.document("sort")?.filter(|sort| !sort.is_empty()),
                hint: HintOption::parse(fields).read()?,
                projection: fields.document("fields")?,
                strings: Collation::parse(fields)?.order()?,
                action: parse_action(fields)?,
            },
        })
    }
}

fn parse_action<'a>(fields: &Fields<'a>) -> Result<Action<'a>> {
    let update = fields.field("update");
    let upsert = fields.boolean("upsert", false)?;
    let returns_new = fields.boolean("new", false)?;
    let array_filters = array_filters(fields)?;
    if fields.boolean("remove", false)? {
        let contradictions = [
            (update.is_some(), "Cannot specify both an update and remove=true"),
            (upsert, "Cannot specify both upsert=true and remove=true"),
            (returns_new, "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document"),
            (array_filters.is_some(), "Cannot specify arrayFilters and remove=true"),
        ];
        return match contradictions.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, message)) => Err(Failure::failed_to_parse(message)),
            None => Ok(Action::Remove),
        };
    }
    let Some(update) = update else {
        return Err(Failure::failed_to_parse("Either an update or remove=true must be specified"));
    };
    Ok(Action::Update(Modification {
        update: check_modification(update)?,
        array_filters: array_filters.unwrap_or_default(),
        upsert: if upsert { Upsert::Yes } else { Upsert::No },
        returning: if returns_new { Returning::After } else { Returning::Before },
    }))
}

fn write_outcome(reply: &mut Writer<'_>, action: &Action<'_>, outcome: &FindAndModifyOutcome) {
    let touched = outcome.is_found || outcome.upserted.is_some();
    reply.begin_document("lastErrorObject").append("n", i32::from(touched));
    if let Action::Update(_) = action {
        reply.append("updatedExisting", outcome.is_found);
    }
    if let Some(id) = &outcome.upserted {
        reply.append("upserted", id);
    }
    reply.end();
    match &outcome.value {
        Some(document) => reply.append("value", document),
        None => reply.append("value", ValueRef::Null),
    };
}
