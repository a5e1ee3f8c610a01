//! `count`: the number of documents that match.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::oplog_view;
use crate::source_stages::Surroundings;
use crate::target::Target;
use crate::unstored::Unstored;
use crate::view_reads;
use bunko_access::Action;
use bunko_authority::is_on_users;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, Writer, number};
use bunko_errors::{Failure, Result};
use bunko_operation::Examined;
use bunko_query::{CountPlan, Execution, FindQuery, Hint, QueryScope};
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{
    CommandFacts, EncryptionUse, Explanation, ReadConcernUse, ReadsFrom, Secrets, Stability, TimeLimit, UnstoredUse,
};
use bunko_request::field_kinds::{Kind, NOT_NEGATIVE, field};
use bunko_request::fields::Fields;
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "count",
        // `fields`, a projection, does not change the count. MongoDB accepts it for old clients.
        fields: &[
            field("query", Kind::Object),
            field("limit", Kind::Own),
            field("skip", NOT_NEGATIVE),
            field("hint", Kind::Hint),
            field("collation", Kind::Object),
            field("fields", Kind::Any),
        ],
        reads: ReadsFrom::Collection,
        read_concern: ReadConcernUse::NoSnapshot,
        stable_api: Stability::WHOLE,
        secrets: Secrets::OfUsers(is_on_users),
        explain: Explanation::Count,
        class: OperationClass::Read,
        time_limit: TimeLimit::OfReads,
        unstored: UnstoredUse::Reads,
        encryption: EncryptionUse::Allowed,
        internal_fields: &["includeQueryStatsMetrics", "sampleId"],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::Find),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace_or_uuid()?;
    invocation.refuse_if_large(&namespace)?;
    let scope = invocation.scope_in(invocation, &namespace)?;
    let query = parse(invocation, &scope)?;
    let collection = match Target::of(invocation, &namespace)? {
        Target::Collection(collection) => collection,
        Target::Unstored(Unstored::Oplog) if query.filter_document.as_ref().is_empty() && query.hint.is_none() => {
            write_count(reply, count_all(invocation, &query)?);
            return Ok(());
        }
        Target::Absent => {
            write_count(reply, 0);
            return Ok(());
        }
        target @ (Target::View | Target::TimeSeries(_) | Target::Unstored(_)) => {
            invocation.has_integer_ok = target.is_view();
            let count = view_reads::count(invocation, &namespace)?;
            write_count(reply, count);
            return Ok(());
        }
    };
    let plan = CountPlan::new(&collection, query)?;
    invocation.refuse_if_long(plan.plan().is_some_and(|plan| plan.is_long(&collection)))?;
    let (count, execution) = plan.run()?;
    note_execution(invocation, execution.as_ref());
    invocation.note_plan(|| Some(plan.report(execution.as_ref(), count)));
    write_count(reply, count);
    Ok(())
}

/// The number of oplog entries, after `skip` and `limit`.
fn count_all(invocation: &Invocation<'_>, query: &FindQuery) -> Result<u64, Halt> {
    invocation.refuse_if_long(true)?;
    let surroundings = Surroundings::of(invocation.service, invocation.operation());
    let count = oplog_view::statistics(&surroundings)?.count;
    Ok(count.saturating_sub(query.skip).min(query.limit.unwrap_or(u64::MAX)))
}

/// Notes the keys and documents that a command without a cursor examined.
pub(super) fn note_execution(invocation: &mut Invocation<'_>, execution: Option<&Execution>) {
    let totals = execution.map(Execution::statistics).unwrap_or_default();
    invocation.note_examined(Examined { keys: totals.keys_examined, documents: totals.docs_examined });
}

fn write_count(reply: &mut Writer<'_>, count: u64) {
    match i32::try_from(count) {
        Ok(count) => reply.append("n", count),
        Err(_) => reply.append("n", count as i64),
    };
}

/// Reads the fields of a count, also for `explain`.
/// # Errors
/// MongoDB's codes for malformed fields.
pub(super) fn parse(fields: &Fields<'_>, scope: &QueryScope) -> Result<FindQuery> {
    let mut query =
        FindQuery::new(fields.document("query")?.unwrap_or(DocumentRef::EMPTY), Arc::new(scope.without_builtins()))?;
    // Null is refused as a hint.
    query.hint = fields.body.get("hint").map_or(Ok(None), Hint::parse)?;
    query.skip = fields.size("skip")?.unwrap_or(0);
    query.limit = limit(fields)?;
    Ok(query)
}

/// Reads `limit` without its sign: old clients sent a negative one to ask for a single batch. 0 is no limit.
fn limit(fields: &Fields<'_>) -> Result<Option<u64>> {
    let Some(value) = fields.body.get("limit") else { return Ok(None) };
    if !value.is_number() {
        return Err(Failure::bad_value(format!("limit value is not a number, found {}", value.kind().alias())));
    }
    let limit = number::as_i64_exact(value).ok_or_else(|| {
        Failure::failed_to_parse(format!("limit cannot be represented as a 64-bit integer: {}", ValueText(value)))
    })?;
    if limit == i64::MIN {
        return Err(Failure::bad_value(format!("limit cannot be the minimum of a 64-bit integer: {limit}")));
    }
    Ok(Some(limit.unsigned_abs()).filter(|limit| *limit > 0))
}
