//! `find`: returns documents that match a filter.

mod resumable;

use crate::authorization::Privileges;
use crate::capped_options::is_capped;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::cursor_reply::{FIRST_BATCH_DOCUMENTS, FirstBatch, while_running, write_first_batch, write_running};
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::let_variables::scope_with_let;
use crate::oplog_view::{self, AtEnd, is_oplog};
use crate::target::Target;
use crate::unstored::Unstored;
use crate::view_reads;
use bunko_access::Action;
use bunko_authority::is_on_users;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure};
use bunko_observe::observation::IdLookup;
use bunko_operation::{DiskUse, Examined, OperationContext};
use bunko_query::{FindQuery, Hint, QueryScope, ResumableScan, Tail, fetch_by_id, id_lookup, parse_limit, plan};
use bunko_request::counted_as::Opcounter;
use bunko_request::counted_as::OperationClass;
use bunko_request::counted_as::UsageKind;
use bunko_request::facts::{
    CommandFacts, EncryptionUse, Explanation, ReadConcernUse, ReadsFrom, Secrets, Stability, TimeLimit, TransactionUse,
    UnstoredUse,
};
use bunko_request::field_kinds::{Kind, NOT_NEGATIVE, field};
use bunko_request::fields::Fields;
use bunko_request::query_shape::ShapePart;
use bunko_session::cursors::{CursorSource, NoDocuments};
use bunko_store::{Bell, Direction};
use resumable::Resumable;
use std::sync::Arc;

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
        internal_fields: &["includeQueryStatsMetrics", "legacyRuntimeConstants", "runtimeConstants", "sampleId"],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::Find),
    run,
    ..Command::PLAIN
};

/// The source of a tailable cursor.
struct Tailing {
    tail: Tail,
    /// Whether a `getMore` waits for new documents.
    awaits_data: bool,
}

impl CursorSource for Tailing {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>, Failure> {
        self.tail.next()
    }

    fn examined(&self) -> Option<Examined> {
        Some(Examined { keys: 0, documents: self.tail.examined() })
    }

    fn resume(&mut self) -> Result<(), Failure> {
        self.tail.resume()
    }

    fn stays_open(&self) -> bool {
        self.tail.has_place()
    }

    fn bell(&self) -> Option<&Arc<Bell>> {
        self.awaits_data.then(|| self.tail.collection().bell())
    }
}

/// Name of the command in the message of a failure that happens while it runs.
const RUNNING: &str = "find command";

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace_or_uuid()?;
    collection_uuid::check_field(&invocation.service.catalog, invocation, &namespace)?;
    let collection = invocation.collection(&namespace);
    if collection.is_none() {
        invocation.service.catalog.check_never_removed(&namespace, invocation)?;
    }
    if let (Some(collection), Some(id)) = (&collection, express(invocation.request.body)) {
        return Ok(reply_with_one(invocation, reply, &namespace, collection, id)?);
    }
    invocation.refuse_if_large(&namespace)?;
    let query = parse(invocation, invocation.scope_in(invocation, &namespace)?)?;
    let batch_size = invocation.size("batchSize")?;
    let is_single_batch = invocation.boolean("singleBatch", false)?;
    let has_no_timeout = invocation.boolean("noCursorTimeout", false)?;
    let is_tailable = invocation.boolean("tailable", false)?;
    if query.resumed.is_some() && is_tailable {
        return Err(resumable::unsupported("a tailable cursor").into());
    }
    if is_tailable && invocation.is_of_transaction() {
        let message = "It is illegal to open a tailable cursor in a transaction";
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message).into());
    }
    if invocation.boolean("readOnce", false)? && invocation.is_of_transaction() {
        let message = "The 'readOnce' option is not supported within a transaction.";
        return Err(Failure::new(ErrorCode::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message).into());
    }
    let target = match collection {
        Some(collection) if !is_oplog(&invocation.service.catalog, &namespace) => Target::Collection(collection),
        _ => Target::of(invocation, &namespace)?,
    };
    if let Target::Unstored(Unstored::Oplog) = target {
        if query.resumed.is_some() {
            return Err(resumable::unsupported("the oplog").into());
        }
        let at_end = match (is_tailable, invocation.boolean("awaitData", false)?) {
            (false, _) => AtEnd::Closes,
            (true, false) => AtEnd::Stays,
            (true, true) => AtEnd::Awaits,
        };
        for name in ["returnKey", "showRecordId"] {
            if invocation.boolean(name, false)? {
                return Err(invocation.unsupported(name).into());
            }
        }
        if query.reads_what_plans_know() {
            let message = "$meta of recordId, indexKey and sortKey over the oplog is not supported yet";
            return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message).into());
        }
        invocation.refuse_if_long(true)?;
        let source = oplog_view::find(invocation, query, invocation.document("sort")?, at_end)?;
        let documents = batch_size.unwrap_or(FIRST_BATCH_DOCUMENTS);
        let batch = FirstBatch { documents, is_only: is_single_batch, is_long: true, has_no_timeout };
        return Ok(write_running(invocation, reply, &namespace, source, &batch, RUNNING)?);
    }
    let Target::Collection(collection) = target else {
        if target.is_read_by_pipeline() {
            if is_tailable && matches!(target, Target::Unstored(_)) {
                return Err(not_capped().into());
            }
            if is_tailable {
                let message = "Option tailable is not supported on a view";
                return Err(Failure::new(ErrorCode::INVALID_PIPELINE_OPERATOR, message).into());
            }
            if query.resumed.is_some() {
                return Err(resumable::unsupported("a view").into());
            }
            let (source, is_long) = view_reads::find(invocation, &namespace)?;
            let documents = batch_size.unwrap_or(FIRST_BATCH_DOCUMENTS);
            let batch = FirstBatch { documents, is_only: is_single_batch, is_long, has_no_timeout };
            return Ok(write_running(invocation, reply, &namespace, source, &batch, RUNNING)?);
        }
        let batch = FirstBatch { documents: 0, is_only: true, is_long: false, has_no_timeout: false };
        return Ok(write_first_batch(invocation, reply, &namespace, Box::new(NoDocuments), &batch)?);
    };
    if is_tailable {
        return follow(invocation, reply, &namespace, &collection, query);
    }
    let query = Arc::new(query);
    let plan = plan(&collection, Arc::clone(&query))?;
    let is_long = plan.is_long(&collection);
    invocation.refuse_if_long(is_long)?;
    let source: Box<dyn CursorSource> = match query.resumed {
        Some(start) => {
            resumable::check(&collection, &query)?;
            let scan = ResumableScan::new(&collection, query, start);
            Box::new(Resumable(scan.map_err(|failure| while_running(failure, RUNNING, &namespace))?))
        }
        None => Box::new(plan.open()?),
    };
    let batch = FirstBatch {
        documents: batch_size.unwrap_or(FIRST_BATCH_DOCUMENTS),
        is_only: is_single_batch,
        is_long,
        has_no_timeout,
    };
    Ok(write_running(invocation, reply, &namespace, source, &batch, RUNNING)?)
}

/// Opens a tailable cursor, which also returns documents that are inserted later.
fn follow(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: &Namespace,
    collection: &Arc<Collection>,
    query: FindQuery,
) -> Result<(), Halt> {
    if !is_capped(collection) {
        return Err(not_capped().into());
    }
    if invocation.boolean("singleBatch", false)? {
        return Err(Failure::bad_value("Cannot use tailable option with the 'singleBatch' option").into());
    }
    let sorts_backward = invocation.document("sort")?.is_some_and(|sort| !sort.is_empty())
        && matches!(query.hint, Some(Hint::Natural(Direction::Backward)));
    if sorts_backward {
        let message = "cannot use tailable option with a sort other than {$natural: 1}";
        return Err(Failure::bad_value(message).into());
    }
    let source =
        Tailing { tail: Tail::new(collection, Arc::new(query))?, awaits_data: invocation.boolean("awaitData", false)? };
    let batch = FirstBatch {
        documents: invocation.size("batchSize")?.unwrap_or(FIRST_BATCH_DOCUMENTS),
        is_only: false,
        is_long: collection.count() > LONG_DOCUMENTS,
        has_no_timeout: invocation.boolean("noCursorTimeout", false)?,
    };
    Ok(write_running(invocation, reply, namespace, Box::new(source), &batch, RUNNING)?)
}

/// Size of a capped collection above which the command runs on a thread of its own: it may have to skip many documents.
const LONG_DOCUMENTS: u64 = 2_000;

fn not_capped() -> Failure {
    Failure::bad_value("error processing query: tailable cursor requested on non capped collection")
}

/// The `_id` of a find for one whole document by its `_id`. It needs no plan and no cursor.
fn express(body: DocumentRef<'_>) -> Option<ValueRef<'_>> {
    let mut id = None;
    for element in body.iter().skip(1) {
        match element.name {
            "filter" => id = Some(id_lookup(element.value.as_document()?)?),
            "limit" if matches!(element.value, ValueRef::Int32(1) | ValueRef::Int64(1)) => {}
            "singleBatch" if matches!(element.value, ValueRef::Boolean(_)) => {}
            "$db" | "lsid" | "$readPreference" | "readConcern" | "$clusterTime" | "comment" => {}
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

/// Reads the fields of a `find`, also for `explain`.
/// # Errors
/// MongoDB's codes for malformed fields; `CommandNotSupported` for options that Bunko does not have.
pub(crate) fn parse(fields: &Fields<'_>, scope: Arc<QueryScope>) -> Result<FindQuery, Failure> {
    refuse_unsupported(fields)?;
    let resumed = resumable::asked(fields)?;
    set_disk_use(fields, &scope.operation)?;
    let scope = scope_with_let(fields, scope)?;
    // Null is refused as a filter, as in MongoDB.
    if let Some(value) = fields.body.get("filter").filter(|value| value.is_nullish()) {
        return Err(fields.mismatch("filter", value, "type 'object'"));
    }
    let mut query = FindQuery::new(fields.document("filter")?.unwrap_or(DocumentRef::EMPTY), scope)?;
    if let Some(hint) = fields.field("hint") {
        query.hint = Hint::parse(hint)?;
    }
    if let Some(sort) = fields.document("sort")? {
        query.set_sort(sort)?;
    }
    if let Some(projection) = fields.document("projection")? {
        query.set_projection(projection)?;
    }
    if fields.boolean("showRecordId", false)? {
        query.show_record_ids();
    }
    query.returns_keys = fields.boolean("returnKey", false)?;
    let key_bound = |name| Ok::<_, Failure>(fields.document(name)?.unwrap_or(DocumentRef::EMPTY));
    let (min, max) = (key_bound("min")?, key_bound("max")?);
    let have_same_fields = || min.iter().map(|bound| bound.name).eq(max.iter().map(|bound| bound.name));
    if !min.is_empty() && !max.is_empty() && !have_same_fields() {
        return Err(Failure::new(ErrorCode(51176), "min and max must have the same field names"));
    }
    query.set_key_bounds(min, max);
    query.resumed = resumed;
    query.skip = fields.size("skip")?.unwrap_or(0);
    query.limit = fields.field("limit").map(parse_limit).transpose()?.flatten();
    query.needs_only_projected();
    Ok(query)
}

/// Reads `allowDiskUse`. Without it the server parameter decides.
/// # Errors
/// `TypeMismatch`.
pub(super) fn set_disk_use(fields: &Fields<'_>, operation: &OperationContext) -> Result<(), Failure> {
    let is_allowed = fields.boolean("allowDiskUse", operation.disk_use() == DiskUse::Allowed)?;
    operation.set_disk_use(if is_allowed { DiskUse::Allowed } else { DiskUse::Refused });
    Ok(())
}

fn refuse_unsupported(fields: &Fields<'_>) -> Result<(), Failure> {
    if fields.field("ntoreturn").is_some() {
        return Err(fields.unsupported("ntoreturn"));
    }
    if fields.boolean("awaitData", false)? && !fields.boolean("tailable", false)? {
        return Err(Failure::failed_to_parse("Cannot set 'awaitData' without also setting 'tailable'"));
    }
    for name in ["oplogReplay", "allowPartialResults", "readOnce"] {
        // On a single node, and with scans that do not fill the cache, these have no effect. Only their types are
        // checked.
        fields.boolean(name, false)?;
    }
    Ok(())
}
