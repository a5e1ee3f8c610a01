//! `count`: the number of documents that match.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::hint_option::HintOption;
use crate::invocation::Invocation;
use crate::scope_options::ScopeOptions;
use crate::target::Target;
use crate::view_reads::ReadByPipeline;
use bunko_access::Action;
use bunko_authority::is_on_users;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef, Writer, number};
use bunko_errors::{Failure, Result};
use bunko_operation::Examined;
use bunko_pipelines::unstored::Unstored;
use bunko_pipelines::{PipelineContext, oplog};
use bunko_query::{CountPlan, Execution, FindQuery, QueryScope};
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{
    CommandFacts, EncryptionUse, Explanation, ReadConcernUse, ReadsFrom, Secrets, Stability, TimeLimit, UnstoredUse,
};
use bunko_request::field_kinds::{Kind, NOT_NEGATIVE, field};
use bunko_request::fields::Fields;
use bunko_request::query_shape::ShapePart;
use bunko_session::Halt;
use std::sync::Arc;

/// The fields of its query shape, and how they contribute.
const QUERY_SHAPE: &[(&str, ShapePart)] = &[
    ("query", ShapePart::Filter),
    ("collation", ShapePart::Exact),
    ("skip", ShapePart::Value),
    ("limit", ShapePart::Value),
];

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
        query_shape: QUERY_SHAPE,
        internal_fields: &["includeQueryStatsMetrics", "sampleId"],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::Find),
    run,
    ..Command::PLAIN
};

/// A `count`, also one inside `explain`.
#[derive(Clone, Copy)]
pub(super) struct Count<'a> {
    pub(super) scope: ScopeOptions<'a>,
    filter: DocumentRef<'a>,
    hint: HintOption<'a>,
    skip: u64,
    limit: Option<u64>,
}

impl<'a> Count<'a> {
    /// # Errors
    /// MongoDB's codes for fields of the wrong type, and for a limit that is not an integer.
    pub(super) fn parse(fields: &Fields<'a>) -> Result<Self> {
        Ok(Self {
            scope: ScopeOptions::parse(fields, &COMMAND.facts)?,
            filter: fields.document("query")?.unwrap_or(DocumentRef::EMPTY),
            hint: HintOption::parse(fields),
            skip: fields.size("skip")?.unwrap_or(0),
            limit: fields.value("limit").map_or(Ok(None), limit)?,
        })
    }

    /// # Errors
    /// MongoDB's codes for a malformed filter or hint.
    pub(super) fn query(&self, scope: &QueryScope) -> Result<FindQuery> {
        let mut query = FindQuery::new(self.filter, Arc::new(scope.without_builtins()))?;
        query.simplify();
        (query.hint, query.skip, query.limit) = (self.hint.read()?, self.skip, self.limit);
        Ok(query)
    }

    /// The count as a pipeline, for a view or a generated collection.
    pub(super) fn by_pipeline(&self) -> ReadByPipeline<'a> {
        let mut read = ReadByPipeline::of(self.filter, self.scope, self.hint).within(self.skip, self.limit);
        read.push("$count", "count");
        read
    }
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace_or_uuid()?;
    let request = Count::parse(invocation)?;
    invocation.refuse_if_large(&namespace)?;
    let scope = invocation.scope_in(&request.scope, &namespace)?;
    let query = request.query(&scope)?;
    let collection = match Target::of(&invocation.service.catalog, invocation, &namespace)? {
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
            let count = request.by_pipeline().count(invocation, &namespace, scope)?;
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
    let count = oplog::statistics(&invocation.surroundings())?.count;
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

/// Reads `limit` without its sign: old clients sent a negative one to ask for a single batch. 0 is no limit.
fn limit(value: ValueRef<'_>) -> Result<Option<u64>> {
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
