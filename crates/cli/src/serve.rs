//! `bunko serve`: opens the data directory, listens, and closes in order.

use crate::access::Access;
use crate::allocator::give_freed_memory_back;
use crate::audit_log;
use crate::configuration::{
    self, Configuration, ReplicaSetSettings, ServeArguments, Settings, TestCommands, shown_arguments,
};
use crate::disk_reserve;
use crate::exit_status;
use crate::file_modes::{cannot_open, warn_of_open_files};
use crate::http_ports;
use crate::init_scripts::{InitScripts, Ran, own_socket};
use crate::log_file::LogOutput;
use crate::log_format::LogLayer;
use crate::managed_service::{ManagedService, Step, listen};
use crate::member_connections::with_connections;
use crate::member_file;
use crate::memory_budget::{budget, unflushed_bytes};
use crate::memory_pressure::PressureGauge;
use crate::open_files;
use crate::own_threads::{delete_expired, has_ended, resume_index_builds};
use crate::panics::log_panics;
use crate::pid_file::PidFile;
use crate::printed::print;
use crate::restart::{Restart, run_anew};
use crate::script_workers;
use crate::signals;
use crate::span_export;
use crate::start_report::{log_certificate, log_engine, log_process, log_recovery, log_without_effect, warn};
use bunko_catalog::Catalog;
use bunko_certificates::Details;
use bunko_client::percent_encoded;
use bunko_command::{Facts, Kept, OwnCertificate, OwnSubject, Process, Service, World};
use bunko_host::{Clock, usable_memory_bytes};
use bunko_javascript::Workers;
use bunko_observe::LogLines;
use bunko_operation::{Helpers, MemoryLimits, ScratchSpace, ServerMemory, StageLimits};
use bunko_scratch::ScratchDirectory;
use bunko_server::{AdmissionOptions, ListeningSockets, Server, ServerOptions, Stopped, Tls};
use bunko_settings::set_at_startup;
use bunko_store::{LogOptions, Lsn, Replays, Store, StoreOptions, Survival, check_place};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;
use tracing_subscriber::layer::SubscriberExt;

/// Maximum memory that one operation may hold, in bytes.
const OPERATION_BYTES_MAX: u64 = 512 << 20;

/// Runs a server until it is told to stop.
/// # Errors
/// A sentence that says why it did not start.
pub fn run(arguments: &ServeArguments) -> Result<ExitCode, String> {
    let configuration = Configuration::read(arguments).and_then(|read| Ok((Settings::new(&read)?, read)));
    let (settings, configuration) = match configuration {
        Ok(read) => read,
        Err(message) => {
            eprintln!("bunko: {message}");
            return Ok(ExitCode::from(exit_status::WRONG_CONFIGURATION.number));
        }
    };
    if arguments.print_config {
        print(format_args!("{}", configuration::print(&configuration, settings.survival)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let checked = Access::of(&settings).and_then(|access| {
        http_ports::check(&settings, &access)?;
        Ok((InitScripts::find(&settings)?, access))
    });
    match checked {
        Ok((scripts, access)) => {
            if scripts.run(access.first_user())? == Ran::All {
                return Err(run_anew());
            }
            start(settings, &access)
        }
        Err(message) => {
            eprintln!("bunko: {message}");
            Ok(ExitCode::from(exit_status::WRONG_CONFIGURATION.number))
        }
    }
}

fn start(mut settings: Settings, access: &Access) -> Result<ExitCode, String> {
    let mut managed = ManagedService::of_environment()?;
    if let Some(socket) = own_socket()? {
        managed.sockets = socket;
        settings.monitor_addresses.clear();
        settings.console = None;
        settings.trace_endpoint = None;
    } else if !managed.sockets.is_empty() {
        settings.addresses = managed.sockets.addresses().to_vec();
    }
    let settings = &Arc::new(settings);
    let log_lines = Arc::new(LogLines::default());
    let log = start_log(settings, &log_lines)?;
    let place = match settings.survival {
        Survival::Durable => check_place(&settings.dbpath).map_err(|error| error.to_string()),
        Survival::Volatile => Ok(()),
    };
    let is_missing = place.is_err();
    let restart = Arc::new(Restart::of(&managed.sockets));
    let outcome =
        place.and_then(|()| serve(settings, access, &log, (log_lines, &restart), managed)).inspect_err(|message| {
            // The terminal shows this message, but a reader of the log file would miss it.
            if log.is_file() {
                tracing::error!(target: "CONTROL", id = 119, ctx = "main", error = message, "The server ends");
            }
        });
    log.flush();
    match outcome {
        Ok(_) if restart.is_asked_for() => Err(restart.begin()),
        Err(message) if is_missing => {
            eprintln!("bunko: {message}");
            Ok(ExitCode::from(exit_status::MISSING_PATH.number))
        }
        outcome => outcome,
    }
}

fn serve(
    settings: &Arc<Settings>,
    access: &Access,
    log: &Arc<LogOutput>,
    (log_lines, restart): (Arc<LogLines>, &Arc<Restart>),
    ManagedService { manager, sockets }: ManagedService,
) -> Result<ExitCode, String> {
    let files = open_files::raise_limit()?;
    let connections_max = open_files::connections_max(settings.admission.connections_max, files);
    log_process(settings);
    log_engine(settings);
    log_without_effect(settings);
    let tls = load_tls(settings)?;
    warn(settings, access, files, connections_max);
    let runtime = runtime()?;
    let _context = runtime.enter();
    let cannot_handle = |error| format!("cannot handle signals: {error}");
    let requests = signals::Requests::register().map_err(cannot_handle)?;
    let memory = budget(usable_memory_bytes(), settings.engine.name, &settings.engines);
    let workers = script_workers::of_server(&memory);
    let opened = watch_memory(&memory, &workers)?;
    let started = Instant::now();
    let start = manager.begin(Step::Start);
    let member = member_file::read(settings)?;
    member_file::check_access(member.as_ref(), access)?;
    let store = open_store(settings, member.as_ref())?;
    opened.set(Arc::downgrade(&store)).expect("one store is opened");
    log_recovery(store.recovery());
    warn_of_open_files(&settings.dbpath);
    let _pid_file = settings.pid_file.as_deref().map(PidFile::write).transpose()?;
    let catalog = Catalog::open(Arc::clone(&store), Box::new(uuid)).map_err(|failure| failure.to_string())?;
    let stop = Arc::new(tokio::sync::Notify::new());
    let limits = memory_limits(settings, memory, open_scratch(settings)?, workers);
    let facts = Facts { connections_max: connections_max as u32, ..facts(settings, limits) };
    let process = with_connections(settings, access, process(settings, log, tls.as_ref(), &stop, restart));
    let service = new_service(settings, facts, (&catalog, member.as_ref()), log_lines, process)?;
    service.begin_membership(member).map_err(|failure| failure.message().to_owned())?;
    service.authority.audit_start(settings.in_force.as_ref());
    access.admit_members(&service, own_subject(tls.as_ref()))?;
    access.begin(&service, &catalog, settings.addresses.first().map_or(0, std::net::SocketAddr::port))?;
    service.note_start();
    // Registered before the log says that the server listens: a program that reads that may stop the server at once.
    let stops = signals::Stops::register().map_err(cannot_handle)?;
    let admission = AdmissionOptions { connections_max, ..settings.admission.clone() };
    let (doorway, entrance) = http_ports::console_doorway(settings);
    let options = ServerOptions { admission, tls: tls.clone(), threads: processors(), entrance };
    let sockets = listen(settings, sockets)?;
    let server = Server::start(&service, sockets, options).map_err(|error| error.to_string())?;
    let http_ports = http_ports::start(&service, settings, tls.as_ref(), doorway)?;
    let exporter = span_export::start(&service, settings, server.sockets())?;
    let builds = resume_index_builds(Arc::clone(&service))?;
    let expiry = delete_expired(Arc::clone(&service))?;
    log_listening(server.sockets(), started);
    drop(start);
    manager.tell_ready();
    let rotate = || rotate_logs(settings, log, &service);
    let reason = runtime.block_on(signals::until_told_to_stop(requests, stops, &stop, rotate));
    tracing::info!(target: "CONTROL", id = 23377, ctx = "main", reason, "Shutting down");
    let _end = manager.begin(Step::End);
    service.end_membership();
    service.authority.audit_end();
    // The next start resumes these builds.
    catalog.stop_builds();
    store.end_waiting();
    if server.stop() == Stopped::StillWorking || !has_ended(&builds) || !has_ended(&expiry) {
        end_abruptly(log, restart);
    }
    drop((http_ports, exporter));
    close(&store)
}

/// Ends the process although threads still work, or starts the server again.
fn end_abruptly(log: &LogOutput, restart: &Restart) -> ! {
    tracing::error!(target: "CONTROL", id = 23139, ctx = "main", "Operations or threads do not end: stopping without a checkpoint; the next start recovers");
    log.flush();
    if restart.is_asked_for() {
        eprintln!("bunko: {}", restart.begin());
    }
    std::process::exit(exit_status::ABRUPT.number.into())
}

fn close(store: &Store) -> Result<ExitCode, String> {
    store.close().map_err(|error| format!("cannot close the data directory: {error}"))?;
    tracing::info!(target: "CONTROL", id = 23138, ctx = "main", "Shutting down: checkpoint written, log closed");
    Ok(ExitCode::SUCCESS)
}

fn load_tls(settings: &Settings) -> Result<Option<Arc<Tls>>, String> {
    let tls = settings.tls.clone().map(Tls::load).transpose()?.map(Arc::new);
    if let Some(tls) = &tls {
        log_certificate(&tls.certificate(), Clock::machine().now_ms() as i64);
    }
    Ok(tls)
}

/// The runtime that waits for signals and sockets, on this thread.
fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))
}

/// The actions of commands on the process: to stop it, and to rotate its log and its certificates.
fn process(
    settings: &Arc<Settings>,
    log: &Arc<LogOutput>,
    tls: Option<&Arc<Tls>>,
    stop: &Arc<tokio::sync::Notify>,
    restart: &Arc<Restart>,
) -> Process {
    Process {
        restart: Box::new({
            let (stop, restart) = (Arc::clone(stop), Arc::clone(restart));
            move || {
                restart.ask_for();
                stop.notify_one();
            }
        }),
        shut_down: Box::new({
            let stop = Arc::clone(stop);
            move || stop.notify_one()
        }),
        rotate_log: Box::new({
            let (settings, log) = (Arc::clone(settings), Arc::clone(log));
            move || rotate_log(&settings, &log)
        }),
        rotate_certificates: Box::new({
            let tls = tls.cloned();
            move || tls.as_ref().map_or(Ok(()), |tls| tls.rotate())
        }),
        tls_mode: settings.tls_mode.clone(),
        trace_endpoint: settings.trace_endpoint.clone().unwrap_or_default(),
        certificate: Box::new({
            let tls = tls.cloned();
            move || tls.as_ref().map(|tls| own_certificate(tls))
        }),
        ..Process::default()
    }
}

fn log_listening(sockets: &ListeningSockets, started: Instant) {
    let socket = sockets.unix_socket().map(|path| percent_encoded(path.as_os_str().as_encoded_bytes()));
    for host in sockets.addresses().iter().map(ToString::to_string).chain(socket) {
        tracing::info!(target: "NETWORK", id = 23016, ctx = "listener", uri = format!("mongodb://{host}/"), startupMillis = started.elapsed().as_millis() as u64, "Waiting for connections");
    }
}

/// Rotates the log and the audit log. Errors are reported in the log.
fn rotate_logs(settings: &Settings, log: &LogOutput, service: &Service) {
    let _ = rotate_log(settings, log);
    if let Err(error) = service.authority.rotate_audit() {
        tracing::error!(target: "CONTROL", id = 23168, ctx = "main", error, "Rotation of the audit log failed");
    }
}

/// Continues in a new log file, which begins as the first one did.
fn rotate_log(settings: &Settings, log: &LogOutput) -> Result<(), String> {
    tracing::info!(target: "CONTROL", id = 23166, ctx = "main", "Log rotation initiated");
    log.rotate(Clock::machine().now_ms() as i64).inspect_err(|error| {
        tracing::error!(target: "CONTROL", id = 23168, ctx = "main", error, "Log rotation failed");
    })?;
    if log.is_file() {
        log_process(settings);
    }
    Ok(())
}

/// Opens a data directory and the service that runs commands on it, for a tool that is its own server.
/// # Errors
/// A sentence that names the directory.
pub fn open_service(settings: &Settings) -> Result<(Arc<Store>, Arc<Service>), String> {
    let member = member_file::read(settings)?;
    let store = open_store(settings, member.as_ref())?;
    let catalog = Catalog::open(Arc::clone(&store), Box::new(uuid)).map_err(|failure| failure.to_string())?;
    let memory = budget(usable_memory_bytes(), settings.engine.name, &settings.engines);
    let workers = script_workers::of_server(&memory);
    let facts = facts(settings, memory_limits(settings, memory, open_scratch(settings)?, workers));
    let service = new_service(settings, facts, (&catalog, member.as_ref()), Arc::default(), Process::default())?;
    Ok((store, service))
}

fn new_service(
    settings: &Settings,
    facts: Facts,
    (catalog, member): (&Arc<Catalog>, Option<&Kept>),
    log_lines: Arc<LogLines>,
    process: Process,
) -> Result<Arc<Service>, String> {
    let world = World::new(Clock::machine(), Arc::new(rand::random::<u64>));
    let mut service = Service::new(Arc::clone(catalog), world, facts, log_lines, process);
    if let Some(ReplicaSetSettings { name, host }) = &settings.replica_set {
        service.join_replica_set(name, host, member).map_err(|failure| failure.message().to_owned())?;
        if let Some(member) = member {
            tracing::info!(target: "REPL", id = 313, ctx = "main", set = name, member = member.id.0, "This server is a member of the replica set");
        } else {
            tracing::info!(target: "REPL", id = 21_392, ctx = "main", set = name, "This server is the only member of the replica set, and its primary");
        }
    }
    if let Some(seconds) = settings.transaction_lifetime {
        service.parameters.set_transaction_lifetime(seconds);
    }
    let transactions = catalog.transaction_memory();
    transactions.set_all_bytes_max(service.facts.memory_limits.server.bytes_max() / 2);
    transactions.count_in(&service.facts.memory_limits.server);
    if let Some(bytes_max) = settings.transaction_memory {
        transactions.set_one_bytes_max(bytes_max);
    }
    if settings.test_commands == TestCommands::Taken {
        service.enable_test_commands();
        tracing::warn!(target: "CONTROL", id = 22_120, ctx = "main", "Test commands are enabled: any client may make commands fail and connections close");
    }
    if let Some(audit) = &settings.audit {
        audit_log::begin(audit, &mut service)?;
    }
    service.profiler.set_defaults(settings.profiling_level, settings.slow_sample_rate);
    for (name, value) in &settings.parameters {
        let set = set_at_startup(&service, name, value.as_bson());
        set.map_err(|failure| format!("setParameter.{name}: {failure}"))?;
    }
    Ok(Arc::new(service))
}

fn start_log(settings: &Settings, lines: &Arc<LogLines>) -> Result<Arc<LogOutput>, String> {
    let output = Arc::new(LogOutput::open(settings.log_file.as_ref())?);
    lines.set_redacted(settings.is_log_redacted);
    let layer = LogLayer {
        format: settings.log_format,
        output: Arc::clone(&output),
        lines: Arc::clone(lines),
        clock: || Clock::machine().now_ms() as i64,
    };
    let levels = tracing_subscriber::EnvFilter::new("info");
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(levels).with(layer))
        .map_err(|error| error.to_string())?;
    log_panics();
    Ok(output)
}

/// Starts the thread that watches the process's memory. It takes the store into account from the moment at which the
/// caller puts it into the result.
fn watch_memory(memory: &Arc<ServerMemory>, workers: &Arc<Workers>) -> Result<Arc<OnceLock<Weak<Store>>>, String> {
    let opened: Arc<OnceLock<Weak<Store>>> = Arc::default();
    let (workers, store) = (Arc::clone(workers), Arc::clone(&opened));
    let pinned = move || store.get().and_then(Weak::upgrade).map_or(0, |store| store.pinned_bytes());
    let gauge = PressureGauge::new(memory, usable_memory_bytes());
    give_freed_memory_back(gauge, move || workers.held_bytes(), pinned)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(opened)
}

fn open_store(settings: &Settings, member: Option<&Kept>) -> Result<Arc<Store>, String> {
    let options = StoreOptions {
        log: LogOptions {
            commit_interval: settings.commit_interval,
            history_bytes_max: settings.oplog_bytes,
            on_failure: Arc::new(|error| {
                // Nothing may be acknowledged after a failed write or sync: stop at once and recover at the next start.
                tracing::error!(target: "STORAGE", id = 50853, ctx = "log", error = %error, "The log failed: stopping");
                std::process::exit(exit_status::ABRUPT.number.into());
            }),
        },
        checkpoint_interval: settings.checkpoint_interval,
        unflushed_bytes_max: unflushed_bytes(&settings.engines),
        clock: Clock::machine(),
        on_background_error: Arc::new(|what, error| {
            tracing::error!(target: "STORAGE", id = 22435, ctx = "background", error = %error, "{what} failed and will be tried again");
        }),
        on_commit_passed: Arc::new(|committed, checkpoint| {
            tracing::warn!(target: "STORAGE", id = 153, ctx = "checkpoint", committed = committed.0, checkpoint = checkpoint.0, "A checkpoint passes the commit point: to roll back the writes in between, the member would have to copy all data again");
        }),
        reserve: disk_reserve::options(&settings.dbpath),
    };
    let table = bunko_engines::table(settings.engine, &settings.engines);
    let opened = match member {
        // The log with which the set began is committed.
        Some(member) => {
            let replays = if member.is_delayed() { Replays::Checkpoint } else { Replays::Committed };
            Store::open_member_and_replay(&settings.dbpath, options, table, (Lsn(member.base), replays))
        }
        None => Store::open(&settings.dbpath, options, table),
    };
    let store = opened.map_err(|error| cannot_open(&settings.dbpath, &error))?;
    match (member, &settings.replica_set) {
        // A member of a set writes nothing before it is elected.
        (None, Some(_)) => store.step_down(),
        // A backup of a member has the commit point of its set, which nothing moves any more.
        (None, None) => store.commit_what_is_visible(),
        (Some(_), _) => {}
    }
    if let (Some(asked), Some(bytes_max)) = (settings.oplog_bytes, store.history_bytes_max())
        && asked != bytes_max
    {
        let (asked_mb, size_mb) = (asked >> 20, bytes_max >> 20);
        tracing::info!(
            target: "REPL", id = 106, ctx = "main", sizeMB = size_mb, askedMB = asked_mb,
            "The oplog keeps the size that it has; replSetResizeOplog changes it"
        );
    }
    Ok(store)
}

/// Opens the directory for data that does not fit into memory, once the data directory is locked. A server that keeps
/// all data in memory has none.
fn open_scratch(settings: &Settings) -> Result<Option<Arc<dyn ScratchSpace>>, String> {
    if settings.survival == Survival::Volatile {
        return Ok(None);
    }
    let path = settings.dbpath.join("scratch");
    let scratch = ScratchDirectory::open(&path);
    let scratch = scratch.map_err(|error| format!("cannot make the directory {}: {error}", path.display()))?;
    Ok(Some(Arc::new(scratch)))
}

/// Returns the subject of the certificate in force.
fn own_subject(tls: Option<&Arc<Tls>>) -> OwnSubject {
    let tls = tls.cloned();
    Box::new(move || tls.as_ref().map(|tls| tls.certificate().subject))
}

fn own_certificate(tls: &Tls) -> OwnCertificate {
    let Details { subject, not_after_ms } = tls.certificate();
    OwnCertificate { subject, not_after_ms }
}

fn facts(settings: &Settings, memory_limits: MemoryLimits) -> Facts {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let port = settings.addresses.first().map_or(0, std::net::SocketAddr::port);
    Facts {
        host: format!("{host}:{port}").into(),
        arguments: shown_arguments(std::env::args()),
        parsed_options: settings.parsed.clone(),
        connections_max: settings.admission.connections_max as u32,
        memory_limits,
        journal_commit_interval: settings.commit_interval,
        slow_operation: settings.slow_operation,
        compressors: settings.compressors.clone(),
    }
}

/// Number of processors that the process may use.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One operation may hold half of the memory budget for clients, and at most 512 MiB.
fn memory_limits(
    settings: &Settings,
    server: Arc<ServerMemory>,
    scratch: Option<Arc<dyn ScratchSpace>>,
    workers: Arc<Workers>,
) -> MemoryLimits {
    MemoryLimits {
        operation_bytes_max: OPERATION_BYTES_MAX.min(server.bytes_max() / 2),
        server,
        stages: StageLimits::in_memory()
            .with_scratch(scratch)
            .with_scripting(settings.scripting)
            .with_script_host(workers)
            .with_helpers(Helpers::new(processors() - 1)),
        ..MemoryLimits::none()
    }
}

/// A random UUID, version 4.
fn uuid() -> [u8; 16] {
    let mut bytes = rand::random::<u128>().to_le_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}
