//! `distinct`: the distinct values of one field.

use super::count::note_execution;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::target::Target;
use crate::view_reads;
use bunko_access::Action;
use bunko_authority::is_on_users;
use bunko_bson::{ArrayBuf, DocumentRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::{FindQuery, Hint, QueryScope, distinct_of_plan, distinct_query, plan};
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{
    CommandFacts, EncryptionUse, Explanation, ReadConcernUse, ReadsFrom, Secrets, TimeLimit, TransactionUse,
    UnstoredUse,
};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_request::query_shape::ShapePart;
use bunko_request::statement::required_value;
use std::sync::Arc;

/// The fields of its query shape, and how they contribute.
const QUERY_SHAPE: &[(&str, ShapePart)] =
    &[("key", ShapePart::Exact), ("query", ShapePart::Filter), ("collation", ShapePart::Exact)];

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "distinct",
        fields: &[
            field("key", Kind::Text),
            field("query", Kind::Object),
            field("hint", Kind::Hint),
            field("collation", Kind::Object),
        ],
        transaction: TransactionUse::Anywhere,
        reads: ReadsFrom::Collection,
        read_concern: ReadConcernUse::AllLevels,
        secrets: Secrets::OfUsers(is_on_users),
        explain: Explanation::Distinct,
        class: OperationClass::Read,
        time_limit: TimeLimit::OfReads,
        unstored: UnstoredUse::Reads,
        encryption: EncryptionUse::Allowed,
        query_shape: QUERY_SHAPE,
        internal_fields: &["includeQueryStatsMetrics", "sampleId"],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::Find),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace_or_uuid()?;
    let key = key(invocation)?;
    invocation.refuse_if_large(&namespace)?;
    let scope = invocation.scope_in(invocation, &namespace)?;
    let query = parse(invocation, &scope)?;
    let values = match Target::of(invocation, &namespace)? {
        target @ (Target::View | Target::TimeSeries(_) | Target::Unstored(_)) => {
            invocation.has_integer_ok = target.is_view();
            view_reads::distinct(invocation, &namespace, key)?
        }
        Target::Absent => {
            invocation.service.catalog.check_never_removed(&namespace, invocation)?;
            ArrayBuf::new()
        }
        Target::Collection(collection) => {
            let plan = plan(&collection, distinct_query(query, key))?;
            invocation.refuse_if_long(plan.is_long(&collection))?;
            let (values, execution) = distinct_of_plan(&plan, key)?;
            note_execution(invocation, Some(&execution));
            invocation.note_plan(|| Some(execution.report()));
            values
        }
    };
    reply.append("values", &values);
    invocation.write_state_time(reply);
    Ok(())
}

/// The field whose values the command returns.
pub(super) fn key<'a>(fields: &Fields<'a>) -> Result<&'a str> {
    let value = required_value(fields, "key")?;
    let key = value.as_str().ok_or_else(|| fields.mismatch("key", value, "type 'string'"))?;
    if key.contains('\0') {
        return Err(Failure::new(ErrorCode(31032), "Key field cannot contain an embedded null byte"));
    }
    Ok(key)
}

/// Reads the filter of a distinct, also for `explain`.
/// # Errors
/// MongoDB's codes for malformed fields.
pub(super) fn parse(fields: &Fields<'_>, scope: &QueryScope) -> Result<FindQuery> {
    let mut query =
        FindQuery::new(fields.document("query")?.unwrap_or(DocumentRef::EMPTY), Arc::new(scope.without_builtins()))?;
    // Null is refused as a hint.
    query.hint = fields.body.get("hint").map_or(Ok(None), Hint::parse)?;
    Ok(query)
}
