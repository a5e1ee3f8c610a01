//! `bunko serve`: opens the data directory, listens, and closes in order.

use crate::allocator::give_freed_memory_back_when_idle;
use crate::configuration::{self, Configuration, ExistingLog, LogFile, ServeArguments, Settings};
use crate::log_format::LogLayer;
use crate::pid_file::PidFile;
use crate::printed::print;
use bunko_catalog::Catalog;
use bunko_client::percent_encoded;
use bunko_command::{Facts, LogLines, Service, World};
use bunko_host::usable_memory_bytes;
use bunko_operation::MemoryLimits;
use bunko_server::{Server, ServerOptions};
use bunko_store::{LogOptions, Store, StoreOptions, Survival};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::layer::SubscriberExt;

/// What engines hold in memory before they are flushed, in bytes; less where the cache is small.
const UNFLUSHED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The part of the cache that this may be at most.
const UNFLUSHED_CACHE_PART: u64 = 8;
/// Exit status where the configuration is wrong, as mongod's, and as for flags.
const CONFIGURATION_WRONG_STATUS: u8 = 2;
/// The most that one operation may hold of the memory, in bytes.
const OPERATION_BYTES_MAX: u64 = 512 << 20;
/// Exit status after a failed write or sync of the log, as mongod's after an abrupt end.
const LOG_FAILED_STATUS: i32 = 14;

/// Runs a server until it is told to stop.
/// # Errors
/// A sentence that says why it did not start.
pub fn run(arguments: &ServeArguments) -> Result<ExitCode, String> {
    let configuration = Configuration::read(arguments).and_then(|read| Ok((Settings::new(&read)?, read)));
    let (settings, configuration) = match configuration {
        Ok(read) => read,
        Err(message) => {
            eprintln!("bunko: {message}");
            return Ok(ExitCode::from(CONFIGURATION_WRONG_STATUS));
        }
    };
    if arguments.print_config {
        print(format_args!("{}", configuration::print(&configuration, settings.survival)))?;
        return Ok(ExitCode::SUCCESS);
    }
    start(&settings)
}

fn start(settings: &Settings) -> Result<ExitCode, String> {
    let log_lines = Arc::new(LogLines::default());
    start_log(settings, &log_lines)?;
    log_engine(settings);
    give_freed_memory_back_when_idle().map_err(|error| format!("cannot start a thread: {error}"))?;
    let started = Instant::now();
    let store = open_store(settings)?;
    let _pid_file = settings.pid_file.as_deref().map(PidFile::write).transpose()?;
    let catalog = Catalog::open(Arc::clone(&store), Box::new(uuid)).map_err(|failure| failure.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))?;
    let stop = Arc::new(tokio::sync::Notify::new());
    let service = new_service(settings, &catalog, log_lines, {
        let stop = Arc::clone(&stop);
        move || stop.notify_one()
    });
    let (server, signals) = {
        let _context = runtime.enter();
        // Before the first line that says that it listens: whoever reads that may stop the server at once.
        let signals = StopSignals::register().map_err(|error| format!("cannot handle signals: {error}"))?;
        (Server::start(&service, &server_options(settings)).map_err(|error| error.to_string())?, signals)
    };
    resume_index_builds(catalog);
    let socket = server.unix_socket().map(|path| percent_encoded(path.as_os_str().as_encoded_bytes()));
    for host in server.addresses().iter().map(ToString::to_string).chain(socket) {
        tracing::info!(target: "NETWORK", id = 23016, ctx = "listener", uri = format!("mongodb://{host}/"), startupMillis = started.elapsed().as_millis() as u64, "Waiting for connections");
    }
    runtime.block_on(until_told_to_stop(signals, &stop));
    server.stop();
    store.close().map_err(|error| format!("cannot close the data directory: {error}"))?;
    tracing::info!(target: "CONTROL", id = 23138, ctx = "main", "Shutting down: checkpoint written, log closed");
    Ok(ExitCode::SUCCESS)
}

/// Opens a data directory and what runs commands on it, for a tool that is its own server.
/// # Errors
/// A sentence that names the directory.
pub fn open_service(settings: &Settings) -> Result<(Arc<Store>, Arc<Service>), String> {
    let store = open_store(settings)?;
    let catalog = Catalog::open(Arc::clone(&store), Box::new(uuid)).map_err(|failure| failure.to_string())?;
    let service = new_service(settings, &catalog, Arc::default(), || ());
    Ok((store, service))
}

fn new_service(
    settings: &Settings,
    catalog: &Arc<Catalog>,
    log_lines: Arc<LogLines>,
    on_shutdown: impl Fn() + Send + Sync + 'static,
) -> Arc<Service> {
    let world = World::new(Arc::new(now_ms), Arc::new(rand::random::<u64>));
    Arc::new(Service::new(Arc::clone(catalog), world, facts(settings), log_lines, Box::new(on_shutdown)))
}

fn start_log(settings: &Settings, lines: &Arc<LogLines>) -> Result<(), String> {
    let output: Box<dyn Write + Send> = match &settings.log_file {
        None => Box::new(std::io::stderr()),
        Some(file) => Box::new(open_log(file)?),
    };
    let layer = LogLayer {
        format: settings.log_format,
        output: Mutex::new(output),
        lines: Arc::clone(lines),
        clock: || now_ms() as i64,
    };
    let levels = tracing_subscriber::EnvFilter::new("info");
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(levels).with(layer))
        .map_err(|error| error.to_string())
}

fn open_log(file: &LogFile) -> Result<std::fs::File, String> {
    let mut options = OpenOptions::new();
    match file.existing {
        ExistingLog::Append => options.append(true).create(true),
        ExistingLog::Refuse => options.append(true).create_new(true),
    };
    options.open(&file.path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            format!("systemLog.path: {} exists; set systemLog.logAppend: true to append to it", file.path.display())
        }
        _ => format!("systemLog.path: {}: {error}", file.path.display()),
    })
}

fn log_engine(settings: &Settings) {
    let (asked, engine) = (settings.asked_engine.as_str(), settings.engine.name);
    if asked == engine {
        tracing::info!(target: "STORAGE", id = 22315, ctx = "main", "Storage engine {engine}");
    } else {
        tracing::info!(target: "STORAGE", id = 22315, ctx = "main", "storage.engine {asked}: the engine {engine} plays this role");
    }
    if settings.survival == Survival::Volatile {
        tracing::warn!(target: "STORAGE", id = 101, ctx = "main", limitBytes = settings.engines.memory_limit_bytes, "The engine {engine} keeps nothing on disk: data will not survive the end of this process");
    }
    if !settings.idle.is_empty() {
        tracing::warn!(target: "STORAGE", id = 102, ctx = "main", settings = settings.idle.join(", "), "Settings that have no effect on the engine {engine}");
    }
}

fn open_store(settings: &Settings) -> Result<Arc<Store>, String> {
    let options = StoreOptions {
        log: LogOptions {
            commit_interval: settings.commit_interval,
            history_bytes_max: settings.oplog_bytes,
            on_failure: Arc::new(|error| {
                // Nothing may be acknowledged after a failed write or sync: stop at once, recover at the next start.
                tracing::error!(target: "STORAGE", id = 50853, ctx = "log", error = %error, "The log failed: stopping");
                std::process::exit(LOG_FAILED_STATUS);
            }),
        },
        checkpoint_interval: settings.checkpoint_interval,
        unflushed_bytes_max: UNFLUSHED_BYTES_MAX.min(settings.engines.cache_bytes / UNFLUSHED_CACHE_PART),
        clock: Arc::new(now_ms),
        on_background_error: Arc::new(|what, error| {
            tracing::error!(target: "STORAGE", id = 22435, ctx = "background", error = %error, "{what} failed and will be tried again");
        }),
    };
    Store::open(&settings.dbpath, options, bunko_engines::table(settings.engine, &settings.engines))
        .map_err(|error| format!("cannot open the data directory {}: {error}", settings.dbpath.display()))
}

fn server_options(settings: &Settings) -> ServerOptions {
    ServerOptions {
        addresses: settings.addresses.clone(),
        unix_socket: settings.unix_socket.clone(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        connections_max: settings.connections_max,
    }
}

fn facts(settings: &Settings) -> Facts {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let port = settings.addresses.first().map_or(0, std::net::SocketAddr::port);
    Facts {
        host: format!("{host}:{port}"),
        arguments: std::env::args().collect(),
        parsed_options: settings.parsed.clone(),
        connections_max: settings.connections_max as u32,
        memory_limits: memory_limits(),
        journal_commit_interval: settings.commit_interval,
    }
}

/// Operations may hold a quarter of the memory that the process may use, and one of them at most 512 MiB.
fn memory_limits() -> MemoryLimits {
    let server_bytes_max = usable_memory_bytes() / 4;
    MemoryLimits {
        operation_bytes_max: OPERATION_BYTES_MAX.min(server_bytes_max),
        server_bytes_max,
        ..MemoryLimits::none()
    }
}

/// Index builds that a crash interrupted go on beside the first connections.
fn resume_index_builds(catalog: Arc<Catalog>) {
    let spawned = std::thread::Builder::new().name("index-build".into()).spawn(move || {
        if let Err(failure) = catalog.resume_builds() {
            tracing::error!(target: "INDEX", id = 20362, ctx = "index-build", error = %failure, "An interrupted index build could not go on");
        }
    });
    drop(spawned);
}

/// The signals that ask a server to stop. Registered, they no longer end the process by themselves.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn register() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }
}

async fn until_told_to_stop(mut signals: StopSignals, stop: &tokio::sync::Notify) {
    let reason = tokio::select! {
        _ = signals.terminate.recv() => "SIGTERM",
        _ = signals.interrupt.recv() => "SIGINT",
        () = stop.notified() => "the shutdown command",
    };
    tracing::info!(target: "CONTROL", id = 23377, ctx = "main", reason, "Shutting down");
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64)
}

/// A random UUID, version 4.
fn uuid() -> [u8; 16] {
    let mut bytes = rand::random::<u128>().to_le_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}
