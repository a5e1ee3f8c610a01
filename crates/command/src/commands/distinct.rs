//! `distinct`: the distinct values of one field.

use super::count::note_execution;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::hint_option::HintOption;
use crate::invocation::Invocation;
use crate::scope_options::ScopeOptions;
use crate::target::Target;
use crate::view_reads::ReadByPipeline;
use bunko_access::Action;
use bunko_authority::is_on_users;
use bunko_bson::{ArrayBuf, DocumentRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::{FindQuery, QueryScope, distinct_of_plan, distinct_query, plan};
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{
    CommandFacts, EncryptionUse, Explanation, ReadConcernUse, ReadsFrom, Secrets, SettingsUse, TimeLimit,
    TransactionUse, UnstoredUse,
};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_request::query_shape::ShapePart;
use bunko_session::Halt;
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
        query_settings: SettingsUse::ByShape,
        internal_fields: &["includeQueryStatsMetrics", "sampleId"],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::Find),
    run,
    ..Command::PLAIN
};

/// A `distinct`, also one inside `explain`.
#[derive(Clone, Copy)]
pub(super) struct Distinct<'a> {
    pub(super) scope: ScopeOptions<'a>,
    /// The field whose values the command returns.
    key: &'a str,
    filter: DocumentRef<'a>,
    hint: HintOption<'a>,
}

impl<'a> Distinct<'a> {
    /// # Errors
    /// MongoDB's codes for fields of the wrong type, and for a key that is missing or holds a null byte.
    pub(super) fn parse(fields: &Fields<'a>) -> Result<Self> {
        let key = fields.string("key")?.ok_or_else(|| fields.missing("key"))?;
        if key.contains('\0') {
            return Err(Failure::new(ErrorCode(31032), "Key field cannot contain an embedded null byte"));
        }
        Ok(Self {
            scope: ScopeOptions::parse(fields, &COMMAND.facts)?,
            key,
            filter: fields.document("query")?.unwrap_or(DocumentRef::EMPTY),
            hint: HintOption::parse(fields),
        })
    }

    /// The query for the documents with the values.
    /// # Errors
    /// MongoDB's codes for a malformed filter or hint.
    pub(super) fn query(&self, scope: &QueryScope) -> Result<FindQuery> {
        let mut query = FindQuery::new(self.filter, Arc::new(scope.without_builtins()))?;
        query.simplify();
        query.hint = self.hint.read()?;
        Ok(distinct_query(query, self.key))
    }

    /// The documents with the values as a pipeline, for a view or a generated collection.
    pub(super) fn by_pipeline(&self) -> ReadByPipeline<'a> {
        ReadByPipeline::of(self.filter, self.scope, self.hint)
    }
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace_or_uuid()?;
    let request = Distinct::parse(invocation)?;
    invocation.refuse_if_large(&namespace)?;
    let scope = invocation.scope_in(&request.scope, &namespace)?;
    let query = request.query(&scope)?;
    let values = match Target::of(&invocation.service.catalog, invocation, &namespace)? {
        target @ (Target::View | Target::TimeSeries(_) | Target::Unstored(_)) => {
            invocation.has_integer_ok = target.is_view();
            request.by_pipeline().distinct(invocation, &namespace, scope, request.key)?
        }
        Target::Absent => {
            invocation.service.catalog.check_never_removed(&namespace, invocation)?;
            ArrayBuf::new()
        }
        Target::Collection(collection) => {
            let plan = plan(&collection, query)?;
            invocation.refuse_if_long(plan.is_long(&collection))?;
            let (values, execution) = distinct_of_plan(&plan, request.key)?;
            note_execution(invocation, Some(&execution));
            invocation.note_plan(|| Some(execution.report()));
            values
        }
    };
    reply.append("values", &values);
    invocation.write_state_time(reply);
    Ok(())
}
