//! `find`: returns documents that match a filter.

mod resumable;
mod tailing;

use crate::authorization::Privileges;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::cursor_reply::{FIRST_BATCH_DOCUMENTS, FirstBatch, while_running, write_first_batch, write_running};
use crate::hint_option::HintOption;
use crate::invocation::Invocation;
use crate::scope_options::ScopeOptions;
use crate::target::Target;
use crate::view_reads::ReadByPipeline;
use bunko_access::Action;
use bunko_authority::is_on_users;
use bunko_bson::{DocumentRef, Type, ValueRef, Writer};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure};
use bunko_observe::observation::IdLookup;
use bunko_operation::{DiskUse, Examined, OperationContext};
use bunko_pipelines::PipelineContext;
use bunko_pipelines::oplog::{self, AtEnd};
use bunko_pipelines::unstored::Unstored;
use bunko_query::{FindQuery, QueryScope, ResumableScan, fetch_by_id, id_lookup, plan};
use bunko_request::counted_as::{Opcounter, OperationClass, UsageKind};
use bunko_request::facts::{
    CommandFacts, EncryptionUse, Explanation, ReadConcernUse, ReadsFrom, Secrets, SettingsUse, Stability, TimeLimit,
    TransactionUse, UnstoredUse,
};
use bunko_request::field_kinds::{Kind, NOT_NEGATIVE, field};
use bunko_request::fields::Fields;
use bunko_request::query_shape::ShapePart;
use bunko_session::Halt;
use bunko_session::cursors::{CursorSource, NoDocuments};
use resumable::{Resumable, Tokens};
use std::sync::Arc;
use tailing::not_capped;

/// The fields of its query shape, and how they contribute.
const QUERY_SHAPE: &[(&str, ShapePart)] = &[
    ("filter", ShapePart::Filter),
    ("sort", ShapePart::Exact),
    ("projection", ShapePart::Projection),
    ("skip", ShapePart::Value),
    ("limit", ShapePart::Value),
    ("max", ShapePart::Values),
    ("min", ShapePart::Values),
    ("singleBatch", ShapePart::Flag),
    ("returnKey", ShapePart::Flag),
    ("showRecordId", ShapePart::Flag),
    ("tailable", ShapePart::Flag),
    ("awaitData", ShapePart::Flag),
    ("oplogReplay", ShapePart::Flag),
    ("allowDiskUse", ShapePart::Flag),
    ("collation", ShapePart::Exact),
    ("let", ShapePart::Expressions),
];

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "find",
        fields: &[
            field("filter", Kind::ObjectOnly),
            field("sort", Kind::ObjectOnly),
            field("projection", Kind::ObjectOnly),
            field("hint", Kind::Hint),
            field("skip", NOT_NEGATIVE),
            field("limit", NOT_NEGATIVE),
            field("batchSize", NOT_NEGATIVE),
            field("singleBatch", Kind::Flag),
            field("max", Kind::ObjectOnly),
            field("min", Kind::ObjectOnly),
            field("returnKey", Kind::Flag),
            field("showRecordId", Kind::Flag),
            field("tailable", Kind::Flag),
            field("oplogReplay", Kind::Flag),
            field("noCursorTimeout", Kind::Flag),
            field("awaitData", Kind::Flag),
            field("allowPartialResults", Kind::Flag),
            field("collation", Kind::ObjectOnly),
            field("allowDiskUse", Kind::Flag),
            field("let", Kind::Object),
            field("ntoreturn", NOT_NEGATIVE),
            field("readOnce", Kind::Flag),
            field("collectionUUID", Kind::Uuid),
            field("$_requestResumeToken", Kind::Flag),
            field("$_resumeAfter", Kind::ObjectOnly),
            field("$_startAt", Kind::ObjectOnly),
        ],
        transaction: TransactionUse::Anywhere,
        reads: ReadsFrom::Collection,
        read_concern: ReadConcernUse::AllLevels,
        stable_api: Stability::Version1 {
            fields_outside: &[
                "$_requestResumeToken",
                "$_resumeAfter",
                "$_startAt",
                "awaitData",
                "max",
                "min",
                "noCursorTimeout",
                "oplogReplay",
                "readOnce",
                "returnKey",
                "showRecordId",
                "tailable",
            ],
        },
        secrets: Secrets::OfUsers(is_on_users),
        explain: Explanation::Find,
        class: OperationClass::Read,
        usage: UsageKind::Query,
        opcounter: Opcounter::Query,
        time_limit: TimeLimit::OfReads,
        unstored: UnstoredUse::Reads,
        encryption: EncryptionUse::Allowed,
        query_shape: QUERY_SHAPE,
        query_settings: SettingsUse::ByShape,
        internal_fields: &["includeQueryStatsMetrics", "legacyRuntimeConstants", "runtimeConstants", "sampleId"],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::Find),
    run,
    ..Command::PLAIN
};

/// Name of the command in the message of a failure that happens while it runs.
const RUNNING: &str = "find command";

/// A `find`, also one inside `explain`.
#[derive(Clone, Copy)]
pub(super) struct Find<'a> {
    /// The expected UUID of the collection.
    pub(super) uuid: Option<[u8; 16]>,
    pub(super) scope: ScopeOptions<'a>,
    filter: DocumentRef<'a>,
    sort: Option<DocumentRef<'a>>,
    projection: Option<DocumentRef<'a>>,
    hint: HintOption<'a>,
    skip: u64,
    limit: Option<u64>,
    min: DocumentRef<'a>,
    max: DocumentRef<'a>,
    returns_keys: bool,
    shows_record_ids: bool,
    is_tailable: bool,
    awaits_data: bool,
    tokens: Tokens<'a>,
    allows_disk_use: Option<bool>,
    has_number_to_return: bool,
    reads_once: bool,
    is_single_batch: bool,
    has_no_timeout: bool,
    batch_size: Option<u64>,
}

impl<'a> Find<'a> {
    /// # Errors
    /// MongoDB's codes for fields of the wrong type.
    pub(super) fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
        Ok(Self {
            uuid: collection_uuid::parse(fields)?,
            scope: ScopeOptions::parse(fields, &COMMAND.facts)?,
            filter: fields.document("filter")?.unwrap_or(DocumentRef::EMPTY),
            sort: fields.document("sort")?.filter(|sort| !sort.is_empty()),
            projection: fields.document("projection")?.filter(|projection| !projection.is_empty()),
            hint: HintOption::parse(fields),
            skip: fields.size("skip")?.unwrap_or(0),
            limit: fields.size("limit")?.filter(|limit| *limit > 0),
            min: fields.document("min")?.unwrap_or(DocumentRef::EMPTY),
            max: fields.document("max")?.unwrap_or(DocumentRef::EMPTY),
            returns_keys: fields.boolean("returnKey", false)?,
            shows_record_ids: fields.boolean("showRecordId", false)?,
            is_tailable: fields.boolean("tailable", false)?,
            awaits_data: fields.boolean("awaitData", false)?,
            tokens: Tokens::parse(fields)?,
            allows_disk_use: parse_disk_use(fields)?,
            has_number_to_return: fields.field("ntoreturn").is_some(),
            // On a single node, and with scans that do not fill the cache, `oplogReplay`, `allowPartialResults` and
            // `readOnce` have no effect outside of transactions.
            reads_once: fields.boolean("readOnce", false)?,
            is_single_batch: fields.boolean("singleBatch", false)?,
            has_no_timeout: fields.boolean("noCursorTimeout", false)?,
            batch_size: fields.size("batchSize")?,
        })
    }

    /// The query over a target.
    /// # Errors
    /// As [`Self::query`]; MongoDB's codes for options that the target does not support.
    pub(super) fn query_over(&self, target: &Target, scope: Arc<QueryScope>) -> Result<FindQuery, Failure> {
        let query = self.query(scope)?;
        if query.resumed.is_some() && self.is_tailable {
            return Err(resumable::unsupported("a tailable cursor"));
        }
        match target {
            Target::View | Target::TimeSeries(_) | Target::Unstored(Unstored::Sessions(_)) => {
                self.check_over_view(&query, target)?;
            }
            Target::Collection(collection) if self.is_tailable => self.check_following(collection, &query)?,
            Target::Collection(_) | Target::Unstored(Unstored::Oplog) | Target::Absent => {}
        }
        Ok(query)
    }

    /// Refuses options that a view, a time series or a generated collection does not support.
    fn check_over_view(&self, query: &FindQuery, target: &Target) -> Result<(), Failure> {
        if self.is_tailable && matches!(target, Target::Unstored(_)) {
            return Err(not_capped());
        }
        if self.is_tailable {
            let message = "Option tailable is not supported on a view";
            return Err(Failure::new(ErrorCode::INVALID_PIPELINE_OPERATOR, message));
        }
        if query.resumed.is_some() { Err(resumable::unsupported("a view")) } else { Ok(()) }
    }

    /// The query, without the part that depends on the target.
    /// # Errors
    /// MongoDB's codes for malformed fields; `CommandNotSupported` for options that Bunko does not have.
    pub(super) fn query(&self, scope: Arc<QueryScope>) -> Result<FindQuery, Failure> {
        if self.has_number_to_return {
            return Err(unsupported("ntoreturn"));
        }
        if self.awaits_data && !self.is_tailable {
            return Err(Failure::failed_to_parse("Cannot set 'awaitData' without also setting 'tailable'"));
        }
        let resumed = self.tokens.start(self.hint, self.sort)?;
        set_disk_use(self.allows_disk_use, &scope.operation);
        let mut query = FindQuery::new(self.filter, self.scope.variables.define_in(scope)?)?;
        query.hint = self.hint.read()?;
        if let Some(sort) = self.sort {
            query.set_sort(sort)?;
        }
        if let Some(projection) = self.projection {
            query.set_projection(projection)?;
        }
        query.simplify();
        if self.shows_record_ids {
            query.show_record_ids();
        }
        query.returns_keys = self.returns_keys;
        let (min, max) = (self.min, self.max);
        let have_same_fields = || min.iter().map(|bound| bound.name).eq(max.iter().map(|bound| bound.name));
        if !min.is_empty() && !max.is_empty() && !have_same_fields() {
            return Err(Failure::new(ErrorCode(51176), "min and max must have the same field names"));
        }
        query.set_key_bounds(min, max);
        (query.resumed, query.skip, query.limit) = (resumed, self.skip, self.limit);
        query.needs_only_projected();
        Ok(query)
    }

    /// The find as a pipeline, for a view or a generated collection.
    /// # Errors
    /// `InvalidPipelineOperator` for options that pipelines lack.
    pub(super) fn by_pipeline(&self) -> Result<ReadByPipeline<'a>, Failure> {
        let options = [
            ("returnKey", self.returns_keys),
            ("showRecordId", self.shows_record_ids),
            ("tailable", self.is_tailable),
            ("awaitData", self.awaits_data),
            ("min", !self.min.is_empty()),
            ("max", !self.max.is_empty()),
        ];
        if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
            let message = format!("Option {option} not supported in aggregation.");
            return Err(Failure::new(ErrorCode::INVALID_PIPELINE_OPERATOR, message));
        }
        let read = ReadByPipeline::of(self.filter, self.scope, self.hint);
        let mut read = read.sorted(self.sort).within(self.skip, self.limit);
        if let Some(projection) = self.projection {
            read.push("$project", projection);
        }
        Ok(read)
    }

    /// Refuses options that a transaction does not allow.
    /// # Errors
    /// `InvalidOptions`, `OperationNotSupportedInTransaction`.
    fn check_use(&self, invocation: &Invocation<'_>) -> Result<(), Failure> {
        if self.is_tailable && invocation.is_of_transaction() {
            let message = "It is illegal to open a tailable cursor in a transaction";
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        if self.reads_once && invocation.is_of_transaction() {
            let message = "The 'readOnce' option is not supported within a transaction.";
            return Err(Failure::new(ErrorCode::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message));
        }
        Ok(())
    }

    fn first_batch(&self, is_long: bool) -> FirstBatch {
        FirstBatch {
            documents: self.batch_size.unwrap_or(FIRST_BATCH_DOCUMENTS),
            is_only: self.is_single_batch,
            is_long,
            has_no_timeout: self.has_no_timeout,
        }
    }
}

fn unsupported(option: &str) -> Failure {
    Failure::new(
        ErrorCode::COMMAND_NOT_SUPPORTED,
        format!("the option '{option}' of '{}' is not supported", COMMAND.facts.name),
    )
}

/// `allowDiskUse`, if it is given.
/// # Errors
/// `TypeMismatch`.
pub(super) fn parse_disk_use(fields: &Fields<'_>) -> Result<Option<bool>, Failure> {
    fields.field("allowDiskUse").map(|_| fields.strict_boolean("allowDiskUse", false)).transpose()
}

/// Sets whether an operation may use the disk. Without `allowDiskUse` the server parameter decides.
pub(super) fn set_disk_use(is_allowed: Option<bool>, operation: &OperationContext) {
    if let Some(is_allowed) = is_allowed {
        operation.set_disk_use(if is_allowed { DiskUse::Allowed } else { DiskUse::Refused });
    }
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace_or_uuid()?;
    let collection = invocation.collection(&namespace);
    if let (Some(collection), Some(id)) = (&collection, express(invocation.request.body)) {
        return Ok(reply_with_one(invocation, reply, &namespace, collection, id)?);
    }
    let find = Find::parse(invocation)?;
    let catalog = &invocation.service.catalog;
    collection_uuid::check(catalog, &namespace, find.uuid)?;
    let target = Target::beside(catalog, &namespace, collection)?;
    if !matches!(target, Target::Collection(_)) {
        catalog.check_never_removed(&namespace, invocation)?;
    }
    invocation.refuse_if_large(&namespace)?;
    find.check_use(invocation)?;
    let query = find.query_over(&target, invocation.scope_in(&find.scope, &namespace)?)?;
    let (source, batch): (Box<dyn CursorSource>, _) = match target {
        Target::Unstored(Unstored::Oplog) => (of_oplog(invocation, &find, query)?, find.first_batch(true)),
        Target::Collection(collection) if find.is_tailable => {
            let is_long = collection.count() > LONG_DOCUMENTS;
            (Box::new(find.follow(&collection, query)?), find.first_batch(is_long))
        }
        Target::Collection(collection) => {
            let (source, is_long) = of_collection(invocation, &namespace, &collection, query)?;
            (source, find.first_batch(is_long))
        }
        Target::View | Target::TimeSeries(_) | Target::Unstored(_) => {
            let (source, is_long) =
                find.by_pipeline()?.open(invocation, &namespace, invocation.scope_in(&find.scope, &namespace)?)?;
            (source, find.first_batch(is_long))
        }
        Target::Absent => {
            let batch = FirstBatch { documents: 0, is_only: true, is_long: false, has_no_timeout: false };
            return Ok(write_first_batch(invocation, reply, &namespace, Box::new(NoDocuments), &batch)?);
        }
    };
    Ok(write_running(invocation, reply, &namespace, source, &batch, RUNNING)?)
}

/// Opens a find on a stored collection. The flag says whether it may take long.
fn of_collection(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    collection: &Arc<Collection>,
    query: FindQuery,
) -> Result<(Box<dyn CursorSource>, bool), Halt> {
    let query = Arc::new(query);
    let plan = plan(collection, Arc::clone(&query))?;
    let is_long = plan.is_long(collection);
    invocation.refuse_if_long(is_long)?;
    let Some(start) = query.resumed else { return Ok((Box::new(plan.open()?), is_long)) };
    resumable::check(collection, &query)?;
    let scan = ResumableScan::new(collection, query, start);
    let scan = scan.map_err(|failure| while_running(failure, RUNNING, namespace))?;
    Ok((Box::new(Resumable(scan)), is_long))
}

/// Opens a find on the oplog.
fn of_oplog(invocation: &Invocation<'_>, find: &Find<'_>, query: FindQuery) -> Result<Box<dyn CursorSource>, Halt> {
    if query.resumed.is_some() {
        return Err(resumable::unsupported("the oplog").into());
    }
    for (name, is_given) in [("returnKey", find.returns_keys), ("showRecordId", find.shows_record_ids)] {
        if is_given {
            return Err(unsupported(name).into());
        }
    }
    if query.reads_what_plans_know() {
        let message = "$meta of recordId, indexKey and sortKey over the oplog is not supported yet";
        return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message).into());
    }
    let at_end = match (find.is_tailable, find.awaits_data) {
        (false, _) => AtEnd::Closes,
        (true, false) => AtEnd::Stays,
        (true, true) => AtEnd::Awaits,
    };
    invocation.refuse_if_long(true)?;
    Ok(oplog::find(&invocation.surroundings(), query, find.sort, at_end)?)
}

/// Size of a capped collection above which the command runs on a thread of its own: it may have to skip many documents.
const LONG_DOCUMENTS: u64 = 2_000;

/// The `_id` of a find for one whole document by its `_id`. It needs no plan and no cursor.
fn express(body: DocumentRef<'_>) -> Option<ValueRef<'_>> {
    let mut id = None;
    for field in body.iter().encoded().skip(1) {
        match field.name_bytes() {
            b"filter" => id = Some(id_lookup(field.value()?.as_document()?)?),
            b"limit" if matches!(field.value()?, ValueRef::Int32(1) | ValueRef::Int64(1)) => {}
            b"singleBatch" if field.kind() == Type::Boolean => {}
            b"$db" | b"lsid" | b"$readPreference" | b"readConcern" | b"$clusterTime" | b"comment" => {}
            _ => return None,
        }
    }
    id
}

fn reply_with_one(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: &Namespace,
    collection: &Collection,
    id: ValueRef<'_>,
) -> Result<(), Failure> {
    let mut document = Vec::new();
    let found = fetch_by_id(collection, id, &*invocation, &mut document)?;
    reply.begin_document("cursor").begin_array("firstBatch");
    if found.is_some() {
        reply.push(0, DocumentRef::trusted(&document));
    }
    reply.end().append("id", 0_i64).append("ns", namespace.as_str());
    invocation.write_state_time(reply);
    reply.end();
    let is_found = found.is_some();
    let found = u64::from(is_found);
    invocation.service.counters.note_returned(found);
    let observation = &mut invocation.observation;
    (observation.returned, observation.is_cursor_exhausted) = (Some(found), true);
    observation.lookup = Some(IdLookup { is_clustered: collection.is_clustered(), is_found });
    invocation.note_examined(Examined { keys: found, documents: found });
    Ok(())
}
