//! `bunko serve`: opens the data directory, listens, and closes in order.

use crate::arguments::ServeArguments;
use crate::log_format::LogLayer;
use crate::settings::Settings;
use bunko_catalog::Catalog;
use bunko_command::{Facts, LogLines, Service, World};
use bunko_lsm::{LsmEngine, LsmOptions};
use bunko_server::{Server, ServerOptions};
use bunko_store::{LogOptions, Store, StoreOptions};
use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::layer::SubscriberExt;

/// Keys and locations held in memory before the engine is flushed, in bytes.
const UNFLUSHED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Exit status after a failed write or sync of the log, as mongod's after an abrupt end.
const LOG_FAILED_STATUS: i32 = 14;

/// Runs a server until it is told to stop.
/// # Errors
/// A sentence that says why it did not start.
pub fn run(arguments: &ServeArguments) -> Result<ExitCode, String> {
    let settings = Settings::new(arguments)?;
    let log_lines = Arc::new(LogLines::default());
    start_log(&settings, &log_lines)?;
    let started = Instant::now();
    let store = open_store(&settings)?;
    let catalog = Catalog::open(Arc::clone(&store), Box::new(uuid)).map_err(|failure| failure.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))?;
    let stop = Arc::new(tokio::sync::Notify::new());
    let service = Arc::new(Service::new(
        Arc::clone(&catalog),
        World::new(Arc::new(now_ms), Arc::new(rand::random::<u64>)),
        facts(&settings),
        log_lines,
        Box::new({
            let stop = Arc::clone(&stop);
            move || stop.notify_one()
        }),
    ));
    let server = {
        let _context = runtime.enter();
        Server::start(&service, &server_options(&settings)).map_err(|error| error.to_string())?
    };
    resume_index_builds(catalog);
    for address in server.addresses() {
        tracing::info!(target: "NETWORK", id = 23016, ctx = "listener", uri = format!("mongodb://{address}/"), startupMillis = started.elapsed().as_millis() as u64, "Waiting for connections");
    }
    runtime.block_on(until_told_to_stop(&stop));
    server.stop();
    store.close().map_err(|error| format!("cannot close the data directory: {error}"))?;
    tracing::info!(target: "CONTROL", id = 23138, ctx = "main", "Shutting down: checkpoint written, log closed");
    Ok(ExitCode::SUCCESS)
}

fn start_log(settings: &Settings, lines: &Arc<LogLines>) -> Result<(), String> {
    let output: Box<dyn Write + Send> = match &settings.log_path {
        None => Box::new(std::io::stderr()),
        Some(path) => Box::new(
            std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map_err(|error| format!("systemLog.path: {}: {error}", path.display()))?,
        ),
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

fn open_store(settings: &Settings) -> Result<Arc<Store>, String> {
    let options = StoreOptions {
        log: LogOptions {
            commit_interval: settings.commit_interval,
            on_failure: Arc::new(|error| {
                // Nothing may be acknowledged after a failed write or sync: stop at once, recover at the next start.
                tracing::error!(target: "STORAGE", id = 50853, ctx = "log", error = %error, "The log failed: stopping");
                std::process::exit(LOG_FAILED_STATUS);
            }),
        },
        checkpoint_interval: settings.checkpoint_interval,
        unflushed_bytes_max: UNFLUSHED_BYTES_MAX,
        clock: Arc::new(now_ms),
        on_background_error: Arc::new(|what, error| {
            tracing::error!(target: "STORAGE", id = 22435, ctx = "background", error = %error, "{what} failed and will be tried again");
        }),
    };
    let lsm = LsmOptions { cache_bytes: settings.cache_bytes };
    Store::open(&settings.dbpath, options, Box::new(move |path, log| Ok(LsmEngine::open(path, log, lsm)?)))
        .map_err(|error| format!("cannot open the data directory {}: {error}", settings.dbpath.display()))
}

fn server_options(settings: &Settings) -> ServerOptions {
    ServerOptions {
        addresses: settings.addresses.clone(),
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
        journal_commit_interval: settings.commit_interval,
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

async fn until_told_to_stop(stop: &tokio::sync::Notify) {
    let mut terminate = signal(SignalKind::terminate()).expect("SIGTERM can be handled");
    let mut interrupt = signal(SignalKind::interrupt()).expect("SIGINT can be handled");
    let reason = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
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
