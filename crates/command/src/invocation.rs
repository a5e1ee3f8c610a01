//! One running command: its request, its options, and what it may use.

mod observing;
mod transaction;

pub(crate) use transaction::Conflict;

use crate::authorization::Asker;
use crate::awaiting::{Heartbeat, ParkedCursor};
use crate::collation_option;
use crate::collection_uuid;
use crate::connection::ClientConnection;
use crate::dispatch::{Command, FollowUp, Halt, Request, RunOn};
use crate::fail_points::InjectedError;
use crate::field_kinds::{Kind, field};
use crate::fields::{Fields, elements};
use crate::generic_options::GenericOptions;
use crate::machine;
use crate::observation::Observation;
use crate::operations::{Interruption, RunningOperation};
use crate::query_settings;
use crate::service::Service;
use crate::sessions::CheckedOut;
use crate::unstored;
use bunko_bson::{DocumentRef, Timestamp, ValueRef};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{OperationContext, OperationSource, Place, UnitOfWork};
use bunko_query::{QueryScope, SystemFunctions};
use bunko_store::{Bell, Lsn};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A query of more bytes takes longer to plan than another thread takes to begin with it.
const LARGE_QUERY_BYTES: usize = 4 * 1024;
/// So many statements of one command take memory of note before the first of them is done.
const MANY_STATEMENTS: usize = 1_000;
/// Bytes that a statement takes once it is read.
const STATEMENT_BYTES: usize = 512;
/// Documents of a collection over which such a query may take long.
const LARGE_COLLECTION: u64 = 2_000;
/// Documents from that length on are read by threads of their own alone, of which each draws for one: 60 threads of connections that
/// read 16 MB each take a gigabyte.
const LONG_DOCUMENT_BYTES: u64 = 256 * 1024;

/// A command at work.
pub struct Invocation<'a> {
    /// What all connections share.
    pub service: &'a Service,
    /// Who asks.
    pub connection: &'a mut ClientConnection,
    /// What was asked.
    pub request: Request<'a>,
    fields: Fields<'a>,
    /// The entry of the table.
    pub command: &'static Command,
    /// `writeConcern`, `maxTimeMS`, `lsid`, `comment`.
    pub options: GenericOptions,
    /// Hold the reply back that long; only a login that is refused does.
    pub delay: Option<Duration>,
    /// Say `ok` as an integer: MongoDB does where it answers from a pipeline.
    pub has_integer_ok: bool,
    /// What may follow the reply: of a `getMore` that has left its cursor open, and of a heartbeat.
    pub(crate) follow_up: Option<FollowUp>,
    /// The cursor that the command leaves open, which waits for its client from now on.
    pub(crate) cursor_left: Option<i64>,
    /// How far a heartbeat is.
    pub(crate) heartbeat: Heartbeat,
    /// The cursor that a command brings which goes on after a wait, or leaves where it is to wait.
    pub(crate) parked: Option<ParkedCursor>,
    /// What a failpoint adds to the reply.
    pub(crate) injected: Option<InjectedError>,
    pub(crate) run_on: RunOn,
    operation: &'a RunningOperation,
    /// The session, where the command is a retryable write or part of a transaction.
    checked_out: Option<CheckedOut<'a>>,
    /// What the command belongs to that this one is a part of.
    outer_unit: Option<Arc<UnitOfWork>>,
    /// The time of the state that the command reads, where its reply tells that.
    state_at: Option<Timestamp>,
    context: OnceCell<Context>,
    written: Option<Lsn>,
    collection: Option<Cow<'a, str>>,
    /// Whether the command has dropped its collection.
    is_collection_gone: bool,
    /// The command's effects and its plan, for the profiler and the log.
    pub(crate) observation: Observation,
    /// Keys and documents that its statements examined: counted, but not told in the command's own entry.
    examined_by_statements: Examined,
    /// Processor time of its thread when it began, where a database is profiled.
    processor_time_before: Option<Duration>,
}

/// What a command looked at, where it is counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Examined {
    /// Index keys.
    pub keys: u64,
    /// Documents.
    pub documents: u64,
}

/// An operation and what interrupts it.
#[derive(Clone)]
pub(crate) struct Context {
    interruption: Arc<Interruption>,
    operation: Arc<OperationContext>,
}

impl Context {
    /// The operation that counts its work.
    pub(crate) fn operation(&self) -> &Arc<OperationContext> {
        &self.operation
    }

    /// Ends whatever works with it.
    pub(crate) fn note_killed_cursor(&self) {
        self.interruption.note_killed_cursor();
    }
}

impl<'a> Invocation<'a> {
    pub(crate) fn new(
        service: &'a Service,
        connection: &'a mut ClientConnection,
        request: Request<'a>,
        command: &'static Command,
        options: GenericOptions,
        run_on: RunOn,
        operation: &'a RunningOperation,
    ) -> Self {
        Self {
            service,
            connection,
            request,
            fields: Fields::of_walked(command.name, request.body, options.met),
            command,
            options,
            delay: None,
            has_integer_ok: false,
            follow_up: None,
            cursor_left: None,
            heartbeat: Heartbeat::default(),
            parked: None,
            injected: None,
            run_on,
            operation,
            checked_out: None,
            outer_unit: None,
            state_at: None,
            context: OnceCell::new(),
            written: None,
            collection: None,
            is_collection_gone: false,
            observation: Observation::default(),
            examined_by_statements: Examined::default(),
            processor_time_before: service.profiler.is_any_on().then(machine::thread_time).flatten(),
        }
    }

    /// Who asks, where the server asks for privileges.
    pub(crate) fn asker(&self) -> Option<Asker<'_>> {
        if self.service.access.is_enforced() { Asker::of(self.service, self.connection) } else { None }
    }

    /// A command that is part of this one: for the same client, stopped by what stops this one. What it has written
    /// is its caller's to note.
    /// # Errors
    /// As [`GenericOptions::parse`]: unknown fields are refused inside as they are outside.
    pub(crate) fn inner<'b>(&'b mut self, command: &'static Command, request: Request<'b>) -> Result<Invocation<'b>> {
        let mut options = GenericOptions::parse(self.service.deployment(), command, &request)?;
        options.session = options.named_session.and(self.options.session);
        self.operation();
        let context = self.context.clone();
        let outer_unit = self.checked_out.as_ref().filter(|own| own.is_of_transaction()).and_then(CheckedOut::unit);
        let outer_unit = outer_unit.or_else(|| self.outer_unit.clone());
        let inner =
            Invocation::new(self.service, self.connection, request, command, options, self.run_on, self.operation);
        Ok(Invocation { outer_unit, context, ..inner })
    }

    /// The command's first value.
    pub fn argument(&self) -> ValueRef<'a> {
        self.request.argument()
    }

    /// The command's first value, where it is of that kind.
    /// # Errors
    /// As [`Field::check_value`](crate::field_kinds::Field::check_value); 40414 where it is null.
    pub fn argument_of(&self, kind: Kind) -> Result<ValueRef<'a>> {
        let (name, argument) = (self.command.name, self.argument());
        field(name, kind).check_value(name, argument)?;
        if argument.is_nullish() {
            let message = format!("BSON field '{name}.{name}' is missing but a required field");
            return Err(Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message));
        }
        Ok(argument)
    }

    /// The collection that the command's first value names.
    /// # Errors
    /// `InvalidNamespace`, also where it is not a string; `CommandNotSupported` for the oplog and the
    /// collections of sessions, unless the command reads them.
    pub fn namespace(&mut self) -> Result<Namespace> {
        let name = match self.argument() {
            ValueRef::String(name) => name,
            other => {
                return Err(Failure::new(
                    ErrorCode::INVALID_NAMESPACE,
                    format!("collection name has invalid type {}", other.kind().alias()),
                ));
            }
        };
        let namespace = Namespace::new(self.request.database, name)?;
        unstored::check(self, &namespace, self.command)?;
        self.note_collection(name);
        Ok(namespace)
    }

    /// The collection that the command is over, for the commands that MongoDB also takes an identity of one for.
    /// # Errors
    /// As [`Self::namespace`]; `NamespaceNotFound` for an identity that no collection of the database has, `InvalidUUID`;
    /// `CommandNotSupported` for that of a collection of the server's own, which rights to the database do not open.
    pub fn namespace_or_uuid(&mut self) -> Result<Namespace> {
        let Some(uuid) = collection_uuid::of_value(self.argument())? else { return self.namespace() };
        let database = self.request.database;
        let named = self.service.catalog.collection_by_uuid(uuid);
        let Some(collection) = named.filter(|collection| collection.namespace().database() == database) else {
            let message = format!("no collection of the database {database} has that UUID");
            return Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message));
        };
        let namespace = collection.namespace();
        if namespace.collection().starts_with("system.") {
            return Err(Failure::not_supported_yet("a collection of the server that is named by its UUID"));
        }
        self.note_namespace(&namespace);
        Ok(Namespace::clone(&namespace))
    }

    /// The collection with that name, if it exists.
    pub fn collection(&self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.service.catalog.collection_for(namespace, self)
    }

    /// The same for a command that works on collections alone.
    /// # Errors
    /// `CommandNotSupportedOnView` where a view has the name.
    pub fn collection_not_view(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        let collection = self.collection(namespace);
        if collection.is_none() {
            self.service.catalog.refuse_view(namespace)?;
        }
        Ok(collection)
    }

    /// The documents of an array field, whether it came in the body or as a sequence.
    pub fn documents(&self, name: &str) -> Result<Vec<DocumentRef<'a>>> {
        if let Some(sequence) = self.request.sequence(name) {
            return Ok(sequence.documents.clone().collect());
        }
        let array = self.array(name)?.ok_or_else(|| {
            Failure::new(
                ErrorCode::IDL_FAILED_TO_PARSE,
                format!("BSON field '{}.{name}' is missing but a required field", self.command.name),
            )
        })?;
        elements(array)
            .map(|(index, value)| {
                value.as_document().ok_or_else(|| self.mismatch(&format!("{name}.{index}"), value, "type 'object'"))
            })
            .collect()
    }

    /// Asks before many statements of one command are read. A few begin no operation for it.
    /// # Errors
    /// As [`OperationContext::check`].
    pub fn will_read_statements(&self, count: usize) -> Result<()> {
        if count < MANY_STATEMENTS { Ok(()) } else { self.operation().will_take(count * STATEMENT_BYTES) }
    }

    /// Notes a record that the reply will acknowledge.
    pub fn note_written(&mut self, lsn: Option<Lsn>) {
        self.written = self.written.max(lsn);
        if let (Some(_), Some(context)) = (lsn, self.context.get()) {
            context.operation.note_change();
        }
    }

    pub(crate) fn written(&self) -> Option<Lsn> {
        self.written
    }

    /// Refuses to go on where others would have to wait; call before anything is done.
    pub fn refuse_if_long(&self, is_long: bool) -> Result<(), Halt> {
        if is_long && self.run_on != RunOn::OwnThread { Err(Halt::TooLong) } else { Ok(()) }
    }

    /// Refuses to go on, as [`Self::refuse_if_long`], with a query of so many bytes that to plan it takes long, over a collection in
    /// which it may find much; and over a collection whose documents are so long that a thread of its own is to wait until memory has
    /// room for one. A caller that asks before the query is read does not read it twice.
    pub fn refuse_if_large(&self, namespace: &Namespace) -> Result<(), Halt> {
        if self.run_on == RunOn::OwnThread {
            return Ok(());
        }
        let Some(collection) = self.collection(namespace) else { return Ok(()) };
        let is_query_large = self.request.body.len_bytes() > LARGE_QUERY_BYTES;
        let is_large = is_query_large && collection.count() > LARGE_COLLECTION;
        self.refuse_if_long(is_large || collection.usual_document_bytes() > LONG_DOCUMENT_BYTES)
    }

    /// Waits where writes are held back, before anything is done.
    pub(crate) fn wait_for_write_lock(&self) -> Result<(), Halt> {
        let lock = &self.service.write_lock;
        // Whoever closes it afterwards finds this operation at work, and waits for its end.
        while lock.is_closed() {
            self.refuse_if_long(true)?;
            self.operation.note_held_back(true);
            let outcome = lock.wait(self);
            self.operation.note_held_back(false);
            outcome?;
        }
        Ok(())
    }

    /// When `maxTimeMS` runs out.
    pub fn deadline(&self) -> Option<Instant> {
        let limit = self.options.max_time.or_else(|| self.default_time())?;
        Some(self.started() + limit)
    }

    /// The limit of reads that have none of their own. `maxTimeMS: 0` is one: it says that there is no limit.
    fn default_time(&self) -> Option<Duration> {
        let limit = self.service.parameters.default_read_time()?;
        let is_read = matches!(self.command.name, "find" | "aggregate" | "count" | "distinct" | "dbHash");
        (is_read && self.request.body.get("maxTimeMS").is_none()).then_some(limit)
    }

    /// When the command began.
    pub(crate) fn started(&self) -> Instant {
        self.operation.started()
    }

    /// Rung where the command may have to stop.
    pub(crate) fn stop_bell(&self) -> &Arc<Bell> {
        self.operation.stop_bell()
    }

    /// The command's id in `currentOp`.
    pub(crate) fn opid(&self) -> u32 {
        self.operation.opid()
    }

    /// What whatever works for this command counts its work at: it says `Interrupted` after `killOp` and
    /// `MaxTimeMSExpired` after [`Self::deadline`]. A cursor may keep it: `getMore` makes it its own.
    pub fn operation(&self) -> &Arc<OperationContext> {
        &self.context.get_or_init(|| self.new_context()).operation
    }

    fn new_context(&self) -> Context {
        let interruption = Interruption::of(self.operation, self.deadline());
        let mut limits = self.service.facts.memory_limits.clone();
        self.service.parameters.limit_stages(&mut limits.stages);
        limits.prepaid_bytes = self.connection.prepaid_bytes;
        let operation = OperationContext::within(self.unit_shared(), Arc::clone(&interruption) as _, limits);
        operation.seed(self.service.world.seed ^ (u64::from(self.opid()) << 32));
        operation.enter(self.place(), self.started());
        if self.written.is_some() {
            operation.note_change();
        }
        if self.service.blocks_writes_of(self.connection) {
            operation.keep_from_writing();
        }
        Context { interruption, operation }
    }

    fn place(&self) -> Place {
        match self.run_on {
            RunOn::SharedThread => Place::SharedThread,
            RunOn::SpareThread => Place::SpareThread,
            RunOn::OwnThread => Place::OwnThread,
        }
    }

    /// What expressions of this command see: the time, and for whom they are evaluated. Strings are in the order of their
    /// bytes.
    pub fn scope(&self) -> Arc<QueryScope> {
        Arc::new(self.new_scope())
    }

    /// The same with strings in the order that the command asks for in `fields`, else in that of the collection, and with
    /// what an operator set for commands of its shape.
    /// # Errors
    /// What is wrong with the collation; `QueryRejectedBySettings`.
    pub fn scope_in(&self, fields: &Fields<'_>, namespace: &Namespace) -> Result<Arc<QueryScope>> {
        let scope = self.scope_without_settings(fields, namespace)?;
        match query_settings::applied(self, fields)? {
            None => Ok(scope),
            Some(settings) => Ok(Arc::new(QueryScope { settings: Some(settings), ..QueryScope::clone(&scope) })),
        }
    }

    /// The same, whatever an operator set.
    /// # Errors
    /// What is wrong with the collation.
    pub(crate) fn scope_without_settings(&self, fields: &Fields<'_>, namespace: &Namespace) -> Result<Arc<QueryScope>> {
        let asked = collation_option::asked(fields)?;
        let strings = collation_option::of_command(&self.service.catalog, asked, namespace)?;
        Ok(Arc::new(QueryScope { strings, ..self.new_scope() }))
    }

    /// The same for a command that reads no collection.
    /// # Errors
    /// What is wrong with the collation.
    pub fn scope_without_collection(&self, fields: &Fields<'_>) -> Result<Arc<QueryScope>> {
        let strings = collation_option::asked(fields)?.unwrap_or_default();
        Ok(Arc::new(QueryScope { strings, ..self.new_scope() }))
    }

    fn new_scope(&self) -> QueryScope {
        let mut scope = QueryScope::new(self.service.world.now_ms(), Arc::clone(self.operation()));
        // A server alone has no such time, and tells its own to pipelines that write, as MongoDB does.
        let writes_by_pipelines = matches!(self.command.name, "bulkWrite" | "findAndModify" | "update");
        let seconds = u32::try_from(scope.now_ms / 1000).unwrap_or(u32::MAX);
        let own = || writes_by_pipelines.then_some(Timestamp { seconds, increment: 1 });
        let roles = self.connection.user.as_ref().map(|user| Arc::clone(&user.role_documents));
        let cluster_time = self.service.cluster_time().or_else(own);
        scope.scans = self.service.parameters.collection_scans();
        scope.variables = scope.variables.with_cluster_time(cluster_time).with_user_roles(roles);
        // No script is admitted on another thread.
        if self.run_on == RunOn::OwnThread {
            scope.scripts.offer_stored(SystemFunctions::new(&self.service.catalog, self.request.database));
        }
        scope
    }

    /// The operation with what may interrupt it, for the cursor that keeps it.
    pub(crate) fn context(&self) -> Context {
        self.context.get_or_init(|| self.new_context()).clone()
    }

    /// Goes on with a cursor's operation, which is this command's from now on.
    /// # Errors
    /// Where it has to stop already; `MaxTimeMSExpired` where no time is left for it.
    pub(crate) fn take_over(&self, cursor: &Context, time_left: Option<Duration>) -> Result<()> {
        cursor.interruption.follow(self.operation, time_left.map(|left| self.started() + left));
        // A batch that was begun cannot begin anew elsewhere: what came of the cursor would be lost.
        cursor.operation.enter(Place::OwnThread, self.started());
        // Nothing was asked before: the cursor is looked for first.
        let _ = self.context.set(cursor.clone());
        cursor.operation.check()
    }

    /// The collections that it has made without being told to.
    pub(crate) fn created(&self) -> Vec<String> {
        self.context.get().map(|context| context.operation.take_created()).unwrap_or_default()
    }

    /// Whether the command is to run again on a thread of its own; then whatever came of it is void. The thread leaves
    /// the operation.
    pub(crate) fn leave(&self, given_away_bytes: usize) -> bool {
        self.context.get().is_some_and(|context| {
            context.operation.leave(given_away_bytes);
            context.operation.was_too_long()
        })
    }
}

impl OperationSource for Invocation<'_> {
    fn operation(&self) -> &OperationContext {
        self.operation()
    }

    fn unit(&self) -> Option<&UnitOfWork> {
        let own = self.checked_out.as_ref().and_then(CheckedOut::unit_lent);
        own.or(self.outer_unit.as_deref())
    }
}

impl<'a> Deref for Invocation<'a> {
    type Target = Fields<'a>;

    fn deref(&self) -> &Fields<'a> {
        &self.fields
    }
}
