//! `bulkWrite`: inserts, updates and deletes in several collections, in one command.
//!
//! An operation is turned into an entry of `updates` or `deletes` and runs like one of those commands. Consecutive
//! inserts into one collection are stored together. The client reads the result of each operation from a cursor.

mod explained;
mod operation;
mod target;

pub(super) use explained::OnlyOperation;
pub(super) use operation::Action;

use super::insert::check_batch_size;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::document_list::{parse_batch_size, write_document_list};
use crate::insertion::Insertion;
use crate::invocation::Invocation;
use crate::let_variables::Let;
use crate::retries::Retries;
use crate::statement_note::{Statement, StatementClock, StatementKind};
use crate::system_namespace::{Creation, check_writable};
use crate::target::WriteTarget;
use crate::update_stages::own_fault;
use crate::write_statement::{WriteOptions, is_interruption, refuse_long_batch, refuse_scripts};
use bunko_authority::has_namespace_of_users;
use bunko_authority::privileges::writes;
use bunko_bson::{DocumentBuf, DocumentRef, MAX_USER_DOCUMENT_BYTES, Value, Writer};
use bunko_catalog::stored_document::{EmptyTimestamps, for_insert};
use bunko_catalog::{Catalog, Namespace, Order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_observe::observation::WriteCounts;
use bunko_query::QueryScope;
use bunko_query::write::{DeleteStatement, Express, LastSearch, UpdateOutcome, UpdateStatement, Upsert, Writes};
use bunko_request::counted_as::{Opcounter, OperationClass};
use bunko_request::facts::{
    Changes, CommandFacts, Databases, ExplainedWrite, Explanation, OwnTime, Profiling, Retry, Secrets, Stability,
    TransactionUse, WriteConcernUse,
};
use bunko_request::field_kinds::{Kind, field};
use bunko_session::Halt;
use bunko_update::Targets;
use operation::Operation;
use std::sync::Arc;
use target::{NamespaceInfo, parse_target};

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
    namespaces: Vec<NamespaceInfo>,
    operations: Vec<Operation<'i>>,
    order: Order,
    told: Told,
    /// Maximum number of results of the first batch.
    batch_size: Option<u64>,
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

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let (documents, mut bulk) = BulkWrite::parse(invocation)?;
    bulk.refuse_if_long(invocation)?;
    refuse_scripts(invocation, &documents)?;
    bulk.execute(invocation)?;
    let BulkWrite { totals, results, retries, batch_size, .. } = bulk;
    invocation.note_written(retries.written());
    retries.end()?;
    let cursor = Namespace::of_cursor("admin", "$cmd.bulkWrite")?;
    write_document_list(invocation, reply, &cursor, results, batch_size)?;
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
    /// Also returns the operations as they were sent.
    fn parse(invocation: &Invocation<'i>) -> Result<(Vec<DocumentRef<'i>>, Self), Halt> {
        let documents = invocation.documents("ops")?;
        invocation.will_read_statements(documents.len())?;
        check_batch_size(documents.len())?;
        let namespaces: Vec<_> =
            invocation.documents("nsInfo")?.into_iter().map(parse_target).collect::<Result<_>>()?;
        let operations = documents.iter().map(|operation| Operation::parse(*operation, namespaces.len()));
        let retries = Retries::of(invocation, documents.len())?;
        let operations = operations.collect::<Result<_>>()?;
        let options = WriteOptions::parse(invocation)?;
        options.apply_bypass(invocation);
        let bulk = Self {
            retries,
            operations,
            namespaces,
            order: options.order,
            told: if invocation.strict_boolean("errorsOnly", false)? { Told::Errors } else { Told::All },
            batch_size: parse_batch_size(invocation)?,
            empty: options.empty_timestamps,
            scope: Let::parse(invocation)?.define_in(invocation.scope())?,
            totals: Totals::default(),
            results: Vec::new(),
            clock: StatementClock::begin(invocation)?,
            done: Done::default(),
        };
        Ok((documents, bulk))
    }

    /// Refuses, before any operation runs, a long command on a shared thread, and `multi: true` in a retryable write.
    /// Malformed operations are ignored here; each fails when it runs.
    fn refuse_if_long(&self, invocation: &Invocation<'_>) -> Result<(), Halt> {
        for (position, target) in self.namespaces.iter().enumerate() {
            let own = || self.operations.iter().filter(move |operation| operation.namespace == position);
            let updates: Vec<_> = own()
                .filter_map(|operation| match &operation.action {
                    Action::Update(Ok(update)) => Some(update),
                    _ => None,
                })
                .collect();
            let deletes: Vec<_> = own()
                .filter_map(|operation| match &operation.action {
                    Action::Delete(Ok(delete)) => Some(delete),
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
                    let outcome = self.update(invocation, operation.namespace, position, update);
                    self.end_statement(invocation, operation, outcome.as_ref().err());
                    self.note(position, outcome, true)?;
                    1
                }
                Action::Delete(delete) => {
                    let outcome = self.delete(invocation, operation.namespace, position, delete);
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
            kind: StatementKind::OfSeveral(COMMAND.name),
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
        let written = WriteTarget::of(&invocation.service.catalog, invocation, &target.namespace)?;
        let allowed = check_writable(&service.catalog, &target.namespace, Creation::Implied)
            .and_then(|()| target.check_uuid(&service.catalog))
            .and_then(|()| match written {
                WriteTarget::View => service.catalog.refuse_view(&target.namespace),
                WriteTarget::Collection | WriteTarget::TimeSeries(_) => Ok(()),
            });
        let prepare = |_, document| {
            allowed.clone()?;
            check_size(document)?;
            for_insert(document, self.empty, &service.world)
        };
        let (namespace, target, order) = (&target.namespace, &written, self.order);
        let insertion = Insertion { namespace, target, order, first, insert: Catalog::insert };
        let outcome = insertion.run(invocation, &mut self.retries, documents, prepare)?;
        self.done.counts = WriteCounts::inserted(outcome.inserted, outcome.keys);
        if let Some(failure) = outcome.stopped_by {
            return Err(failure);
        }
        self.totals.inserted += (outcome.inserted + outcome.done_before) as i32;
        let mut failures = outcome.failures.into_iter().peekable();
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
        update: &Result<UpdateStatement<'_>>,
    ) -> Result<DocumentBuf> {
        if let Some(done_before) = self.retries.begin_update(position)? {
            return Ok(self.updated(&done_before));
        }
        let target = &self.namespaces[namespace];
        let service = invocation.service;
        let statement = update.as_ref().map_err(Failure::clone)?;
        let creation = if statement.upsert == Upsert::Yes { Creation::Implied } else { Creation::None };
        check_writable(&service.catalog, &target.namespace, creation)?;
        target.check_uuid(&service.catalog)?;
        self.pass_time(invocation);
        let target = &self.namespaces[namespace];
        self.done.stage = "UPDATE";
        let outcome = if let WriteTarget::TimeSeries(series) =
            WriteTarget::of(&service.catalog, invocation, &target.namespace)?
        {
            invocation.write_series(|writes| writes.update(&series, &self.scope, statement))?
        } else {
            let mut writes = Writes::new(&service.catalog, &target.namespace, &service.world, Arc::clone(&self.scope))
                .with_empty_timestamps(self.empty);
            let outcome = writes.update(statement);
            self.done.search = writes.take_last_search();
            invocation.note_written(writes.written());
            outcome.map_err(|failure| own_fault(failure, statement.update, &self.scope))?
        };
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
        delete: &Result<DeleteStatement<'_>>,
    ) -> Result<DocumentBuf> {
        if let Some(done_before) = self.retries.begin_delete(position)? {
            return Ok(self.deleted(done_before));
        }
        let target = &self.namespaces[namespace];
        let service = invocation.service;
        let statement = delete.as_ref().map_err(Failure::clone)?;
        check_writable(&service.catalog, &target.namespace, Creation::None)?;
        target.check_uuid(&service.catalog)?;
        self.pass_time(invocation);
        let target = &self.namespaces[namespace];
        self.done.stage = "DELETE";
        let deleted = if let WriteTarget::TimeSeries(series) =
            WriteTarget::of(&service.catalog, invocation, &target.namespace)?
        {
            invocation.write_series(|writes| writes.delete(&series, &self.scope, statement))?
        } else {
            let scope = Arc::clone(&self.scope);
            let mut writes = Writes::new(&service.catalog, &target.namespace, &service.world, scope);
            let deleted = writes.delete(statement);
            self.done.search = writes.take_last_search();
            invocation.note_written(writes.written());
            deleted?
        };
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
