//! `bulkWrite`: inserts, updates and deletes in several collections, in one command.
//!
//! An operation is turned into an entry of `updates` or `deletes` and runs like one of those commands. Consecutive
//! inserts into one collection are stored together. The client reads the result of each operation from a cursor.

mod explained;
mod operation;

pub(super) use explained::only_operation;
pub(super) use operation::Action;

use super::insert::{bypasses, check_batch_size};
use super::{delete, update};
use crate::authorization::Privileges;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::dispatch::Halt;
use crate::document_list::write_document_list;
use crate::invocation::Invocation;
use crate::retries::{Retries, other_kind};
use crate::statement_note::{Statement, StatementClock, StatementKind};
use crate::system_namespace::{Creation, check_writable};
use crate::time_series;
use crate::update_stages::own_fault;
use crate::write_statement::{is_interruption, refuse_long_batch, refuse_scripts};
use bunko_authority::has_namespace_of_users;
use bunko_authority::privileges::writes;
use bunko_bson::{DocumentBuf, DocumentRef, MAX_USER_DOCUMENT_BYTES, Value, Writer};
use bunko_catalog::stored_document::{EmptyTimestamps, for_insert};
use bunko_catalog::{Inserted, Namespace, Order, Outcome};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_observe::observation::WriteCounts;
use bunko_query::QueryScope;
use bunko_query::write::{Express, LastSearch, UpdateOutcome, Upsert, Writes};
use bunko_request::counted_as::Opcounter;
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{
    Changes, CommandFacts, Databases, ExplainedWrite, Explanation, OwnTime, Profiling, Retry, Secrets, Stability,
    TransactionUse, WriteConcernUse,
};
use bunko_request::field_kinds::{Field, Kind, field};
use bunko_request::fields::Fields;
use bunko_request::statement::{required_value, statement};
use bunko_update::Targets;
use operation::Operation;
use std::borrow::Cow;
use std::sync::Arc;

const NAMESPACE_FIELDS: &[Field] =
    &[field("ns", Kind::Text), field("collectionUUID", Kind::Uuid), field("encryptionInformation", Kind::Object)];

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "bulkWrite",
        fields: &[
            field("ops", Kind::Array),
            field("nsInfo", Kind::Array),
            field("ordered", Kind::Boolean),
            field("errorsOnly", Kind::Boolean),
            field("let", Kind::Object),
            field("cursor", Kind::Object),
            field("bypassDocumentValidation", Kind::BooleanLike),
            field("bypassEmptyTsReplacement", Kind::Flag),
            field("stmtId", Kind::Int),
            field("stmtIds", Kind::Own),
        ],
        databases: Databases::Admin,
        transaction: TransactionUse::Anywhere,
        sequences: &["ops", "nsInfo"],
        changes: Changes::DocumentsOfSeveral,
        write_concern: WriteConcernUse::Taken,
        retry: Retry::Safe,
        stable_api: Stability::WHOLE,
        secrets: Secrets::OfUsers(has_namespace_of_users),
        explain: Explanation::Write(ExplainedWrite::Bulk),
        profiling: Profiling::ByStatement,
        class: OperationClass::Write,
        opcounter: Opcounter::ByStatement,
        own_time: OwnTime::Shown,
        internal_fields: &["$_isClusterQueryWithoutShardKeyCmd"],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(writes::bulk_write),
    run,
    ..Command::PLAIN
};

/// Which results are returned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    All,
    Errors,
}

/// Counts of the whole command.
#[derive(Default)]
struct Totals {
    errors: i32,
    inserted: i32,
    matched: i32,
    modified: i32,
    upserted: i32,
    deleted: i32,
}

/// The command while its operations run.
struct BulkWrite<'i> {
    namespaces: Vec<Target>,
    operations: Vec<Operation<'i>>,
    order: Order,
    told: Told,
    empty: EmptyTimestamps,
    scope: Arc<QueryScope>,
    totals: Totals,
    results: Vec<DocumentBuf>,
    retries: Retries<'i>,
    clock: StatementClock,
    done: Done,
}

/// Effects of the current operation, for the profiler.
#[derive(Default)]
struct Done {
    counts: WriteCounts,
    search: Option<LastSearch>,
    stage: &'static str,
}

/// One entry of `nsInfo`.
pub(super) struct Target {
    pub(super) namespace: Namespace,
    /// The `collectionUUID` that the collection must have.
    uuid: Option<[u8; 16]>,
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let mut bulk = BulkWrite::parse(invocation)?;
    bulk.refuse_if_long(invocation)?;
    refuse_scripts(invocation, &invocation.documents("ops")?)?;
    bulk.execute(invocation)?;
    let BulkWrite { totals, results, retries, .. } = bulk;
    invocation.note_written(retries.written());
    retries.end()?;
    write_document_list(invocation, reply, &Namespace::of_cursor("admin", "$cmd.bulkWrite")?, results)?;
    reply
        .append("nErrors", totals.errors)
        .append("nInserted", totals.inserted)
        .append("nMatched", totals.matched)
        .append("nModified", totals.modified)
        .append("nUpserted", totals.upserted)
        .append("nDeleted", totals.deleted);
    retries.write(reply);
    Ok(())
}

impl<'i> BulkWrite<'i> {
    fn parse(invocation: &Invocation<'i>) -> Result<Self, Halt> {
        let operations = invocation.documents("ops")?;
        invocation.will_read_statements(operations.len())?;
        check_batch_size(operations.len())?;
        let namespaces: Vec<_> = invocation.documents("nsInfo")?.into_iter().map(target).collect::<Result<_>>()?;
        let operations = operations.into_iter().map(|operation| Operation::parse(operation, namespaces.len()));
        Ok(Self {
            retries: Retries::of(invocation, operations.len())?,
            operations: operations.collect::<Result<_>>()?,
            namespaces,
            order: if invocation.strict_boolean("ordered", true)? { Order::Ordered } else { Order::Unordered },
            told: if invocation.strict_boolean("errorsOnly", false)? { Told::Errors } else { Told::All },
            empty: bypasses(invocation)?,
            scope: update::scope(invocation)?,
            totals: Totals::default(),
            results: Vec::new(),
            clock: StatementClock::begin(invocation)?,
            done: Done::default(),
        })
    }

    /// Refuses, before any operation runs, a long command on a shared thread, and `multi: true` in a retryable write.
    /// Malformed operations are ignored here; each fails when it runs.
    fn refuse_if_long(&self, invocation: &Invocation<'_>) -> Result<(), Halt> {
        for (position, target) in self.namespaces.iter().enumerate() {
            let own = || self.operations.iter().filter(move |operation| operation.namespace == position);
            let updates: Vec<_> = own()
                .filter_map(|operation| match &operation.action {
                    Action::Update(update) => update::parse(update.as_ref()).ok(),
                    _ => None,
                })
                .collect();
            let deletes: Vec<_> = own()
                .filter_map(|operation| match &operation.action {
                    Action::Delete(delete) => delete::parse(delete.as_ref()).ok(),
                    _ => None,
                })
                .collect();
            let are_many = updates.iter().map(|update| update.targets == Targets::Many);
            self.retries.refuse_many(are_many, "multi=true")?;
            self.retries.refuse_many(deletes.iter().map(|delete| delete.targets == Targets::Many), "multi=true")?;
            let updates = updates.iter().map(|update| (update.filter, update.sort, update.targets));
            let deletes = deletes.iter().map(|delete| (delete.filter, None, delete.targets));
            refuse_long_batch(invocation, &target.namespace, updates.chain(deletes))?;
        }
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<()> {
        let operations = std::mem::take(&mut self.operations);
        let mut position = 0;
        while let Some(operation) = operations.get(position) {
            let before = self.totals.errors;
            position += match &operation.action {
                Action::Insert(_) => {
                    let alike = operations[position..].iter().map_while(|other| match &other.action {
                        Action::Insert(document) if other.namespace == operation.namespace => Some(*document),
                        _ => None,
                    });
                    let documents: Vec<_> = alike.collect();
                    let outcome = self.insert(invocation, operation.namespace, position, &documents);
                    self.end_statement(invocation, operation, outcome.as_ref().err());
                    outcome?;
                    documents.len()
                }
                Action::Update(update) => {
                    let outcome = self.update(invocation, operation.namespace, position, update.as_ref());
                    self.end_statement(invocation, operation, outcome.as_ref().err());
                    self.note(position, outcome, true)?;
                    1
                }
                Action::Delete(delete) => {
                    let outcome = self.delete(invocation, operation.namespace, position, delete.as_ref());
                    self.end_statement(invocation, operation, outcome.as_ref().err());
                    self.note(position, outcome, false)?;
                    1
                }
            };
            if self.order == Order::Ordered && self.totals.errors > before {
                break;
            }
        }
        Ok(())
    }

    /// Tells the profiler of an operation that has ended.
    fn end_statement(&mut self, invocation: &mut Invocation<'_>, operation: &Operation<'_>, failure: Option<&Failure>) {
        let Done { counts, search, stage } = std::mem::take(&mut self.done);
        let statement = Statement {
            kind: StatementKind::BulkWrite,
            namespace: &self.namespaces[operation.namespace].namespace,
            sent: operation.sent,
            counts: failure.map_or(Ok(counts), Err),
            search,
            stage,
            express: Express::Yes,
        };
        self.clock.end(invocation, &statement);
    }

    /// Notes the outcome of an update or a delete.
    /// # Errors
    /// Interruptions, which end the whole command.
    fn note(&mut self, position: usize, outcome: Result<DocumentBuf>, is_update: bool) -> Result<()> {
        match outcome {
            Ok(result) if self.told == Told::All => self.results.push(with_position(position, &result)),
            Ok(_) => {}
            Err(failure) if is_interruption(&failure) => return Err(failure),
            Err(failure) => self.note_failure(position, &failure, is_update),
        }
        Ok(())
    }

    fn note_failure(&mut self, position: usize, failure: &Failure, is_update: bool) {
        self.totals.errors += 1;
        let mut result = DocumentBuf::new().with("ok", 0.0).with("idx", position as i32).with("code", failure.code().0);
        result.extend(failure.details()).append("errmsg", failure.message()).append("n", 0);
        if is_update {
            result.append("nModified", 0);
        }
        self.results.push(result);
    }

    /// Inserts into one collection; `first` is the position of the first document among all operations.
    fn insert(
        &mut self,
        invocation: &mut Invocation<'_>,
        namespace: usize,
        first: usize,
        documents: &[DocumentRef<'_>],
    ) -> Result<()> {
        let service = invocation.service;
        let target = &self.namespaces[namespace];
        let mut failures: Vec<(usize, Failure)> = Vec::new();
        let mut storable: Vec<Cow<'_, [u8]>> = Vec::with_capacity(documents.len());
        let mut positions = Vec::with_capacity(documents.len());
        let mut done_before = 0;
        let allowed = check_writable(&service.catalog, &target.namespace, Creation::Implied)
            .and_then(|()| target.check_uuid(invocation));
        for (position, document) in documents.iter().enumerate() {
            if self.retries.did(first + position)?.is_some() {
                done_before += 1;
                continue;
            }
            let stored = allowed
                .clone()
                .and_then(|()| check_size(*document))
                .and_then(|()| for_insert(*document, self.empty, &service.world));
            match stored {
                Ok(document) => {
                    storable.push(document);
                    positions.push(position);
                }
                Err(failure) => {
                    failures.push((position, failure));
                    if self.order == Order::Ordered {
                        break;
                    }
                }
            }
        }
        let (mut inserted, mut keys) = (0, 0);
        if !storable.is_empty() {
            if let Some((count, failure)) =
                self.retries.begin_inserts(positions.iter().map(|position| first + position))
            {
                // In an unordered command the documents after the failed one fail too.
                let refused = if self.order == Order::Ordered { 1 } else { positions.len() - count };
                failures.extend(positions[count..].iter().take(refused).map(|position| (*position, failure.clone())));
                storable.truncate(count);
            }
            let outcome =
                service.catalog.insert(&target.namespace, &storable, self.order, invocation).or_else(|failure| {
                    time_series::insert_instead(invocation, &target.namespace, &storable, self.order, failure)
                });
            let outcome = match outcome {
                Err(failure) if failure.code() == ErrorCode::COMMAND_NOT_SUPPORTED_ON_VIEW => {
                    Inserted { failures: vec![(0, failure)], ..Inserted::default() }
                }
                outcome => outcome?,
            };
            invocation.note_written(outcome.lsn);
            (inserted, keys) = (outcome.count, outcome.keys);
            if let Some(failure) = outcome.stopped_by {
                return Err(failure);
            }
            let refused = outcome.failures.into_iter().map(|(position, failure)| (positions[position], failure));
            if self.order == Order::Ordered && inserted < storable.len() {
                failures = refused.collect();
            } else {
                failures.extend(refused);
                failures.sort_by_key(|(position, _)| *position);
            }
        }
        let has_stopped = self.order == Order::Ordered && !failures.is_empty();
        let attempted = if has_stopped { inserted + 1 } else { documents.len() - done_before };
        service.counters.note_inserts(attempted as u64, inserted as u64);
        self.done.counts = WriteCounts::inserted(inserted, keys);
        self.totals.inserted += (inserted + done_before) as i32;
        let mut failures = failures.into_iter().peekable();
        for position in 0..documents.len() {
            if let Some((_, failure)) = failures.next_if(|(failed, _)| *failed == position) {
                self.note_failure(first + position, &failure, false);
                if self.order == Order::Ordered {
                    break;
                }
            } else if self.told == Told::All {
                self.results.push(with_position(first + position, &DocumentBuf::new().with("n", 1)));
            }
        }
        Ok(())
    }

    fn update(
        &mut self,
        invocation: &mut Invocation<'_>,
        namespace: usize,
        position: usize,
        update: DocumentRef<'_>,
    ) -> Result<DocumentBuf> {
        match self.retries.did(position)? {
            None => self.retries.begin(position)?,
            Some(Outcome::One) => {
                return Ok(self.updated(&UpdateOutcome { matched: 1, modified: 1, upserted: None }));
            }
            Some(Outcome::Upserted(id)) => {
                return Ok(self.updated(&UpdateOutcome { upserted: Some(id), ..UpdateOutcome::default() }));
            }
            Some(Outcome::Returned { .. }) => return Err(other_kind("update")),
        }
        let target = &self.namespaces[namespace];
        let service = invocation.service;
        let statement = update::parse(update)?;
        let creation = if statement.upsert == Upsert::Yes { Creation::Implied } else { Creation::None };
        check_writable(&service.catalog, &target.namespace, creation)?;
        target.check_uuid(invocation)?;
        self.pass_time(invocation);
        let target = &self.namespaces[namespace];
        let mut writes = Writes::new(&service.catalog, &target.namespace, &service.world, Arc::clone(&self.scope))
            .with_empty_timestamps(self.empty);
        let outcome = writes.update(&statement);
        self.done = Done { search: writes.take_last_search(), stage: "UPDATE", ..Done::default() };
        let outcome = outcome.map_err(|failure| own_fault(failure, statement.update, &self.scope));
        invocation.note_written(writes.written());
        let outcome = outcome.or_else(|failure| {
            time_series::update_instead(invocation, &target.namespace, &self.scope, &statement, failure)
        })?;
        service.counters.note_updates(1, outcome.modified);
        self.done.counts = WriteCounts::updated(&outcome);
        Ok(self.updated(&outcome))
    }

    /// Gives the next operation the cluster time as the operation before it left it.
    fn pass_time(&mut self, invocation: &Invocation<'_>) {
        if let Some(time) = invocation.service.cluster_time() {
            let scope = Arc::make_mut(&mut self.scope);
            scope.variables = std::mem::take(&mut scope.variables).with_cluster_time(Some(time));
        }
    }

    /// Adds the counts of an update to the totals, and returns its result.
    fn updated(&mut self, outcome: &UpdateOutcome) -> DocumentBuf {
        self.totals.matched += outcome.matched as i32;
        self.totals.modified += outcome.modified as i32;
        self.totals.upserted += i32::from(outcome.upserted.is_some());
        let n = outcome.matched as i32 + i32::from(outcome.upserted.is_some());
        let mut result = DocumentBuf::new().with("n", n).with("nModified", outcome.modified as i32);
        if let Some(id) = &outcome.upserted {
            result.append("upserted", &DocumentBuf::new().with("_id", Value::as_ref(id)));
        }
        result
    }

    fn delete(
        &mut self,
        invocation: &mut Invocation<'_>,
        namespace: usize,
        position: usize,
        delete: DocumentRef<'_>,
    ) -> Result<DocumentBuf> {
        match self.retries.did(position)? {
            None => self.retries.begin(position)?,
            Some(Outcome::One) => return Ok(self.deleted(1)),
            Some(Outcome::Upserted(_) | Outcome::Returned { .. }) => return Err(other_kind("delete")),
        }
        let target = &self.namespaces[namespace];
        let service = invocation.service;
        let statement = delete::parse(delete)?;
        check_writable(&service.catalog, &target.namespace, Creation::None)?;
        target.check_uuid(invocation)?;
        self.pass_time(invocation);
        let target = &self.namespaces[namespace];
        let mut writes = Writes::new(&service.catalog, &target.namespace, &service.world, Arc::clone(&self.scope));
        let deleted = writes.delete(&statement);
        self.done = Done { search: writes.take_last_search(), stage: "DELETE", ..Done::default() };
        invocation.note_written(writes.written());
        let deleted = deleted.or_else(|failure| {
            time_series::delete_instead(invocation, &target.namespace, &self.scope, &statement, failure)
        })?;
        service.counters.note_deletes(1, deleted);
        self.done.counts = WriteCounts::deleted(deleted);
        Ok(self.deleted(deleted))
    }

    /// Adds the count of a delete to the totals, and returns its result.
    fn deleted(&mut self, deleted: u64) -> DocumentBuf {
        self.totals.deleted += deleted as i32;
        DocumentBuf::new().with("n", deleted as i32)
    }
}

/// Refuses a document that is too large.
fn check_size(document: DocumentRef<'_>) -> Result<()> {
    let bytes = document.len_bytes();
    if bytes <= MAX_USER_DOCUMENT_BYTES {
        return Ok(());
    }
    let message = format!("object to insert too large. size in bytes: {bytes}, max size: {MAX_USER_DOCUMENT_BYTES}");
    Err(Failure::new(ErrorCode::BSON_OBJECT_TOO_LARGE, message))
}

fn with_position(position: usize, result: &DocumentBuf) -> DocumentBuf {
    let mut whole = DocumentBuf::new().with("ok", 1.0).with("idx", position as i32);
    whole.extend(result.as_ref());
    whole
}

/// Reads an entry of `nsInfo`.
fn target(info: DocumentRef<'_>) -> Result<Target> {
    let fields: Fields<'_> = statement("bulkWrite.nsInfo", info, NAMESPACE_FIELDS)?;
    let name = required_value(&fields, "ns")?;
    let name = name.as_str().ok_or_else(|| fields.mismatch("ns", name, "type 'string'"))?;
    if fields.field("encryptionInformation").is_some() {
        return Err(fields.unsupported("encryptionInformation"));
    }
    let uuid = collection_uuid::parse(&fields)?;
    Ok(Target { namespace: Namespace::parse(name)?, uuid })
}

impl Target {
    /// Refuses a collection whose UUID is not the given one.
    /// # Errors
    /// As [`collection_uuid::check`].
    pub(super) fn check_uuid(&self, invocation: &Invocation<'_>) -> Result<()> {
        collection_uuid::check(&invocation.service.catalog, &self.namespace, self.uuid)
    }
}
