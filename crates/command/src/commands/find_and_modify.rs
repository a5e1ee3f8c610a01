//! `findAndModify`: changes or removes one document and returns it.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use crate::query_options::{check_collation, query_scope};
use crate::write_statement::refuse_long_batch;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_errors::{Failure, Result};
use bunko_query::Hint;
use bunko_query::write::{Action, FindAndModify, FindAndModifyOutcome, Modification, Returning, Upsert, Writes};
use bunko_update::Targets;

pub(super) const COMMAND: Command = Command {
    name: "findAndModify",
    aliases: &["findandmodify"],
    fields: &[
        "query",
        "sort",
        "remove",
        "update",
        "new",
        "fields",
        "upsert",
        "hint",
        "arrayFilters",
        "collation",
        "let",
        "bypassDocumentValidation",
        "bypassEmptyTsReplacement",
    ],
    databases: Databases::Any,
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let statement = parse(invocation)?;
    let targets = if statement.sort.is_some() { Targets::Many } else { Targets::One };
    refuse_long_batch(invocation, &namespace, std::iter::once((statement.filter, targets)))?;
    let service = invocation.service;
    let scope = query_scope(invocation)?;
    let mut writes = Writes::new(&service.catalog, &namespace, &service.world, scope, invocation.interrupt());
    let outcome = writes.find_and_modify(&statement);
    invocation.note_written(writes.written());
    let outcome = outcome?;
    let is_remove = matches!(statement.action, Action::Remove);
    let counters = &service.counters;
    let changed = u64::from(outcome.is_found);
    if is_remove { counters.note_deletes(0, changed) } else { counters.note_updates(0, changed) }
    write_outcome(reply, &statement.action, &outcome);
    Ok(())
}

fn parse<'a>(invocation: &Invocation<'a>) -> Result<FindAndModify<'a>> {
    check_collation(invocation.document("collation")?)?;
    Ok(FindAndModify {
        filter: invocation.document("query")?.unwrap_or(DocumentRef::EMPTY),
        sort: invocation.document("sort")?.filter(|sort| !sort.is_empty()),
        hint: invocation.field("hint").map_or(Ok(None), Hint::parse)?,
        projection: invocation.document("fields")?,
        action: action(invocation)?,
    })
}

fn action<'a>(invocation: &Invocation<'a>) -> Result<Action<'a>> {
    let update = invocation.field("update");
    let upsert = invocation.boolean("upsert", false)?;
    let returns_new = invocation.boolean("new", false)?;
    let array_filters = invocation.array("arrayFilters")?;
    if invocation.boolean("remove", false)? {
        let contradictions = [
            (update.is_some(), "Cannot specify both an update and remove=true"),
            (upsert, "Cannot specify both upsert=true and remove=true"),
            (
                returns_new,
                "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document",
            ),
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
    if !matches!(update, ValueRef::Document(_) | ValueRef::Array(_)) {
        return Err(Failure::failed_to_parse("Update argument must be either an object or an array"));
    }
    let array_filters = array_filters.map_or(Ok(Vec::new()), |filters| {
        filters.iter().enumerate().map(|(index, filter)| array_filter(index, filter)).collect()
    })?;
    Ok(Action::Update(Modification {
        update,
        array_filters,
        upsert: if upsert { Upsert::Yes } else { Upsert::No },
        returning: if returns_new { Returning::After } else { Returning::Before },
    }))
}

fn array_filter(index: usize, filter: ValueRef<'_>) -> Result<DocumentRef<'_>> {
    filter.as_document().ok_or_else(|| {
        Failure::type_mismatch(format!(
            "BSON field 'findAndModify.arrayFilters.{index}' is the wrong type '{}', expected type 'object'",
            filter.kind().alias()
        ))
    })
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
