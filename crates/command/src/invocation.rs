//! One running command: its request, its options, and what it may use.

mod failpoints;
mod observing;
mod pipelines;
mod transaction;

pub(crate) use transaction::Conflict;

use crate::collation_option::Collation;
use crate::collection_uuid;
use crate::connection::ClientConnection;
use crate::query_settings;
use crate::scope_options::ScopeOptions;
use crate::service::Service;
use bunko_access::Action;
use bunko_authority::Asker;
use bunko_bson::{Timestamp, ValueRef};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_fail_points::InjectedError;
use bunko_observe::machine;
use bunko_observe::observation::Observation;
use bunko_operation::{Examined, OperationContext, OperationSource, RunOn, UnitOfWork};
use bunko_pipelines::unstored;
use bunko_query::{QueryScope, SystemFunctions};
use bunko_request::Request;
use bunko_request::facts::{CommandFacts, OwnTime, TimeLimit};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_series::SeriesWrites;
use bunko_session::Halt;
use bunko_session::awaiting::{FollowUp, Heartbeat, ParkedCursor};
use bunko_session::cursors::QueryTally;
use bunko_session::operations::{Context, Interruption, RunningOperation};
use bunko_session::options::GenericOptions;
use bunko_session::sessions::CheckedOut;
use bunko_store::{Bell, Lsn};
use bunko_traces::OperationTrace;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A query with more bytes than this takes longer to plan than it takes to hand it to another thread.
const LARGE_QUERY_BYTES: usize = 4 * 1024;
/// From this many statements on, one command uses a lot of memory before its first statement is done.
const MANY_STATEMENTS: usize = 1_000;
/// Memory that a parsed statement takes, in bytes.
const STATEMENT_BYTES: usize = 512;
/// A large query over a collection with more documents than this may take long.
const LARGE_COLLECTION: u64 = 2_000;
/// Documents longer than this are read only by threads of their own, each of which draws memory for one document: 60
/// connection threads that read 16 MB each would take a gigabyte.
const LONG_DOCUMENT_BYTES: u64 = 256 * 1024;

/// A running command.
pub struct Invocation<'a> {
    /// State shared by all connections.
    pub service: &'a Service,
    /// The client's connection.
    pub connection: &'a mut ClientConnection,
    /// The request.
    pub request: Request<'a>,
    fields: Fields<'a>,
    /// The facts in the command's entry of the table.
    pub command: &'static CommandFacts,
    /// `writeConcern`, `maxTimeMS`, `lsid`, `comment`.
    pub options: GenericOptions,
    /// How long to hold the reply back. Only a refused login sets it.
    pub delay: Option<Duration>,
    /// Whether `ok` is an integer, as MongoDB sends it in replies that come from a pipeline.
    pub has_integer_ok: bool,
    /// The follow-up of the reply: of a `getMore` that left its cursor open, or of a heartbeat.
    pub(crate) follow_up: Option<FollowUp>,
    /// The cursor that the command leaves open, which from now on waits for its client.
    pub(crate) cursor_left: Option<i64>,
    /// Progress of a heartbeat.
    pub(crate) heartbeat: Heartbeat,
    /// The cursor of a command that waits: set when the command resumes, and when it is about to wait.
    pub(crate) parked: Option<ParkedCursor>,
    /// The error that a failpoint adds to the reply.
    pub(crate) injected: Option<InjectedError>,
    pub(crate) run_on: RunOn,
    operation: &'a RunningOperation,
    /// The session, if the command is a retryable write or part of a transaction.
    checked_out: Option<CheckedOut<'a>>,
    /// The unit of work of the outer command, if this command is part of another.
    outer_unit: Option<Arc<UnitOfWork>>,
    /// The time of the state that the command reads, if its reply reports that time.
    state_at: Option<Timestamp>,
    context: OnceCell<Context>,
    written: Option<Lsn>,
    collection: Option<Cow<'a, str>>,
    /// Whether the command has dropped its collection.
    is_collection_gone: bool,
    /// The command's effects and its plan, for the profiler and the log.
    pub(crate) observation: Observation,
    /// Index keys and documents that the command's statements examined. They are counted, but not shown in the
    /// command's own entry.
    examined_by_statements: Examined,
    /// Whether the command is counted for `$queryStats`.
    pub(crate) is_counted: bool,
    /// The tally of the query whose next batch the command reads.
    pub(crate) tally: Option<Box<dyn QueryTally>>,
    /// The cursor that stays open after the command.
    pub(crate) cursor_open: Option<i64>,
    /// Processor time of the thread when the command began, if it is measured.
    processor_time_before: Option<Duration>,
    /// Ids of the command's trace, chosen when the first span of the command is made.
    trace: OnceCell<OperationTrace>,
}

impl<'a> Invocation<'a> {
    #[allow(clippy::inline_always, reason = "a call would copy the arguments, and then the invocation")]
    #[inline(always)]
    pub(crate) fn new(
        service: &'a Service,
        connection: &'a mut ClientConnection,
        request: Request<'a>,
        command: &'static CommandFacts,
        options: GenericOptions,
        run_on: RunOn,
        operation: &'a RunningOperation,
    ) -> Self {
        Self {
            service,
            connection,
            request,
            fields: Fields::of_walked(command.name, request.body, options.met).with_sequences(request.message),
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
            is_counted: false,
            tally: None,
            cursor_open: None,
            processor_time_before: service.profiler.is_any_on().then(machine::thread_time).flatten(),
            trace: OnceCell::new(),
        }
    }

    /// The client's identity, if the server checks privileges.
    pub(crate) fn asker(&self) -> Option<Asker<'_>> {
        self.service.authority.asker(self.connection)
    }

    /// A command that runs as part of this one: for the same client, and interrupted together with it. The caller must
    /// note what it wrote.
    /// # Errors
    /// As [`GenericOptions::parse`]: unknown fields are refused inside as they are outside.
    pub(crate) fn inner<'b>(
        &'b mut self,
        command: &'static CommandFacts,
        request: Request<'b>,
    ) -> Result<Invocation<'b>> {
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

    /// The command's first value, which must be of that kind.
    /// # Errors
    /// As [`Field::check_value`](bunko_request::field_kinds::Field::check_value); 40414 where it is null.
    pub fn argument_of(&self, kind: Kind) -> Result<ValueRef<'a>> {
        let (name, argument) = (self.command.name, self.argument());
        field(name, kind).check_value(name, argument)?;
        if argument.is_nullish() {
            return Err(Failure::missing_field(format_args!("{name}.{name}")));
        }
        Ok(argument)
    }

    /// The collection that the command's first value names.
    /// # Errors
    /// `InvalidNamespace`, also if the value is not a string; `CommandNotSupported` for the oplog and the collections
    /// of sessions, unless the command may read them.
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
        unstored::check(&self.service.catalog, self.service.deployment(), &namespace, self.command)?;
        self.note_collection(name);
        Ok(namespace)
    }

    /// The collection that the command works on, for commands to which MongoDB lets clients give a UUID instead of a
    /// name.
    /// # Errors
    /// As [`Self::namespace`]; `NamespaceNotFound` if no collection of the database has the UUID; `InvalidUUID`;
    /// `CommandNotSupported` for the UUID of a `system.` collection, which privileges on the database do not cover.
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

    /// As [`Self::collection`], for a command that does not work on views.
    /// # Errors
    /// `CommandNotSupportedOnView` if a view has the name.
    pub fn collection_not_view(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        let collection = self.collection(namespace);
        if collection.is_none() {
            self.service.catalog.refuse_view(namespace)?;
        }
        Ok(collection)
    }

    /// Asks for memory before many statements of one command are read. For a few statements it does not ask, and starts
    /// no operation.
    /// # Errors
    /// As [`OperationContext::check`].
    pub fn will_read_statements(&self, count: usize) -> Result<()> {
        if count < MANY_STATEMENTS { Ok(()) } else { self.operation().will_take(count * STATEMENT_BYTES) }
    }

    /// Notes the log position of a write that the reply will acknowledge.
    pub fn note_written(&mut self, lsn: Option<Lsn>) {
        self.written = self.written.max(lsn);
        if let (Some(_), Some(context)) = (lsn, self.context.get()) {
            context.operation().note_change();
        }
    }

    pub(crate) fn written(&self) -> Option<Lsn> {
        self.written
    }

    /// Lets `write` write into a time series, and notes what it wrote.
    pub(crate) fn write_series<T>(&mut self, write: impl FnOnce(&mut SeriesWrites<'_>) -> T) -> T {
        let service = self.service;
        let mut writes = SeriesWrites::new(&service.catalog, &service.open_buckets, &service.world, self);
        let outcome = write(&mut writes);
        let written = writes.written();
        self.note_written(written);
        outcome
    }

    /// Halts a long command on a shared or spare thread, where it would make other connections wait. Call it before
    /// anything is done.
    pub fn refuse_if_long(&self, is_long: bool) -> Result<(), Halt> {
        if is_long && self.run_on != RunOn::OwnThread { Err(Halt::TooLong) } else { Ok(()) }
    }

    /// Halts, as [`Self::refuse_if_long`], in two cases: the query is so large that planning it takes long, over a
    /// collection in which it may find much; or the collection's documents are so long that a thread of its own should
    /// wait for memory. A caller that asks before it parses the query avoids parsing it twice.
    pub fn refuse_if_large(&self, namespace: &Namespace) -> Result<(), Halt> {
        if self.run_on == RunOn::OwnThread {
            return Ok(());
        }
        let Some(collection) = self.collection(namespace) else { return Ok(()) };
        let is_query_large = self.request.body.len_bytes() > LARGE_QUERY_BYTES;
        let is_large = is_query_large && collection.count() > LARGE_COLLECTION;
        self.refuse_if_long(is_large || collection.usual_document_bytes() > LONG_DOCUMENT_BYTES)
    }

    /// Waits while the write lock holds writes back, before anything is done.
    pub(crate) fn wait_for_write_lock(&self) -> Result<(), Halt> {
        let lock = &self.service.write_lock;
        // If the lock is closed after this check, its holder finds this operation running and waits for its end.
        while lock.is_closed() {
            self.refuse_if_long(true)?;
            self.operation.note_held_back(true);
            let outcome = lock.wait(self.operation());
            self.operation.note_held_back(false);
            outcome?;
        }
        Ok(())
    }

    /// The instant at which `maxTimeMS` or the default limit of reads runs out; `None` without a limit.
    pub fn deadline(&self) -> Option<Instant> {
        let limit = self.options.max_time.or_else(|| self.default_time())?;
        Some(self.started() + limit)
    }

    /// The default limit of reads without their own `maxTimeMS`. `maxTimeMS: 0` counts as their own: it means no limit.
    fn default_time(&self) -> Option<Duration> {
        let limit = self.service.parameters.default_read_time()?;
        let is_read = self.command.time_limit == TimeLimit::OfReads;
        (is_read && self.request.body.get("maxTimeMS").is_none()).then_some(limit)
    }

    /// When the command began.
    pub(crate) fn started(&self) -> Instant {
        self.operation.started()
    }

    /// The present time on the server's clock.
    pub(crate) fn now(&self) -> Instant {
        self.service.world.clock.now()
    }

    /// Time since the command began.
    pub(crate) fn running_for(&self) -> Duration {
        self.service.world.clock.since(self.started())
    }

    /// The bell that rings when the command may have to stop.
    pub(crate) fn stop_bell(&self) -> &Arc<Bell> {
        self.operation.stop_bell()
    }

    /// The command's id in `currentOp`.
    pub(crate) fn opid(&self) -> u32 {
        self.operation.opid()
    }

    /// The operation in which all work for this command is counted. Its check fails with `Interrupted` after `killOp`
    /// and with `MaxTimeMSExpired` after [`Self::deadline`]. A cursor may keep it, and `getMore` then takes it over.
    pub fn operation(&self) -> &Arc<OperationContext> {
        self.context.get_or_init(|| self.new_context()).operation()
    }

    fn new_context(&self) -> Context {
        let interruption = Interruption::of(self.operation, self.deadline());
        let mut limits = self.service.facts.memory_limits.clone();
        self.service.parameters.limit_stages(&mut limits.stages);
        limits.prepaid_bytes = self.connection.prepaid_bytes;
        let operation = OperationContext::within(self.unit_shared(), Arc::clone(&interruption) as _, limits);
        operation.seed(self.service.world.seed ^ (u64::from(self.opid()) << 32));
        operation.enter(self.run_on, self.started());
        if self.written.is_some() {
            operation.note_change();
        }
        if self.are_writes_blocked() {
            operation.keep_from_writing();
        }
        Context::new(interruption, operation)
    }

    /// Whether the client's writes are blocked. Without privilege checks, no client may bypass the block.
    fn are_writes_blocked(&self) -> bool {
        let may_bypass = || self.asker().is_some_and(|asker| asker.on_cluster(Action::BypassWriteBlockingMode));
        self.service.user_write_block.reason().is_some() && !may_bypass()
    }

    /// Values that expressions of this command see: the time, the user and the variables. Strings are compared by
    /// their bytes.
    pub fn scope(&self) -> Arc<QueryScope> {
        Arc::new(self.new_scope())
    }

    /// As [`Self::scope`], but strings are compared by the command's collation, or else by the collection's. It
    /// includes the query settings for the command's shape.
    /// # Errors
    /// Errors of the collation; `QueryRejectedBySettings`.
    pub(crate) fn scope_in(&self, options: &ScopeOptions<'_>, namespace: &Namespace) -> Result<Arc<QueryScope>> {
        let scope = self.scope_without_settings(options.collation, namespace)?;
        match query_settings::applied(&self.service.query_settings, self.command, self.request.database, options)? {
            None => Ok(scope),
            Some(settings) => Ok(Arc::new(QueryScope { settings: Some(settings), ..QueryScope::clone(&scope) })),
        }
    }

    /// As [`Self::scope_in`], without query settings.
    /// # Errors
    /// Errors of the collation.
    pub(crate) fn scope_without_settings(
        &self,
        collation: Collation<'_>,
        namespace: &Namespace,
    ) -> Result<Arc<QueryScope>> {
        let strings = collation.order_over(&self.service.catalog, namespace)?;
        Ok(Arc::new(QueryScope { strings, ..self.new_scope() }))
    }

    /// As `scope_without_settings`, for a command that reads no collection.
    /// # Errors
    /// Errors of the collation.
    pub(crate) fn scope_without_collection(&self, collation: Collation<'_>) -> Result<Arc<QueryScope>> {
        let strings = collation.order()?.unwrap_or_default();
        Ok(Arc::new(QueryScope { strings, ..self.new_scope() }))
    }

    fn new_scope(&self) -> QueryScope {
        let mut scope = QueryScope::new(self.service.world.now_ms(), Arc::clone(self.operation()));
        // A standalone server has no cluster time. It shows its own time to pipelines that write, as MongoDB does.
        let seconds = u32::try_from(scope.now_ms / 1000).unwrap_or(u32::MAX);
        let own = || (self.command.own_time == OwnTime::Shown).then_some(Timestamp { seconds, increment: 1 });
        let roles = self.connection.user().map(|user| Arc::clone(&user.role_documents));
        let cluster_time = self.service.cluster_time().or_else(own);
        scope.scans = self.service.parameters.collection_scans();
        scope.variables = scope.variables.with_cluster_time(cluster_time).with_user_roles(roles);
        // Scripts run only on a thread of the command's own.
        if self.run_on == RunOn::OwnThread {
            scope.scripts.offer_stored(SystemFunctions::new(&self.service.catalog, self.request.database));
        }
        scope
    }

    /// The operation and its interruption, for the cursor that keeps them.
    pub(crate) fn context(&self) -> Context {
        self.context.get_or_init(|| self.new_context()).clone()
    }

    /// Takes over a cursor's operation, which is this command's from now on.
    /// # Errors
    /// If the operation must stop already; `MaxTimeMSExpired` if no time is left.
    pub(crate) fn take_over(&self, cursor: &Context, time_left: Option<Duration>) -> Result<()> {
        cursor.follow(self.operation, time_left.map(|left| self.started() + left));
        // A batch cannot start again on another thread: documents already taken from the cursor would be lost.
        cursor.operation().enter(RunOn::OwnThread, self.started());
        // The context is still unset, because a `getMore` looks for its cursor first.
        let _ = self.context.set(cursor.clone());
        cursor.operation().check()
    }

    /// Takes the names of the collections that the command created implicitly.
    pub(crate) fn created(&self) -> Vec<String> {
        self.context.get().map(|context| context.operation().take_created()).unwrap_or_default()
    }

    /// Detaches the operation from this thread. Returns whether the command must run again on a thread of its own; its
    /// outcome is void then.
    pub(crate) fn leave(&self, given_away_bytes: usize) -> bool {
        self.context.get().is_some_and(|context| {
            context.operation().leave(given_away_bytes);
            context.operation().was_too_long()
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

    fn is_kept_from_writing(&self) -> bool {
        let begun = self.context.get().map(|context| context.operation().is_kept_from_writing());
        begun.unwrap_or_else(|| self.are_writes_blocked())
    }
}

impl<'a> Deref for Invocation<'a> {
    type Target = Fields<'a>;

    fn deref(&self) -> &Fields<'a> {
        &self.fields
    }
}
