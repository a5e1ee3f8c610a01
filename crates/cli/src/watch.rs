//! Gives up on a server that is gone or stopped.
//!
//! A client that waits for a reply cannot tell a long command from a stopped server. So another connection pings the
//! server every now and then: as long as it gets answers, the other connections may wait.

use bunko_bson::DocumentBuf;
use bunko_client::{ClientError, Connection, Uri};
use std::time::{Duration, Instant};

/// Attempts within the time after which a server is given up.
const ATTEMPTS: u32 = 6;
/// Longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Ends the process with failure and `advice` once the server has not answered for `silence_max`. Pauses of this
/// process do not count: an attempt counts for no longer than its own time limit.
/// # Errors
/// A sentence, if no thread can be started.
pub fn start(mut uri: Uri, silence_max: Duration, advice: &'static str) -> Result<(), String> {
    let attempt_max = silence_max / ATTEMPTS;
    uri.connect_timeout = uri.connect_timeout.min(attempt_max);
    uri.server_selection_timeout = uri.server_selection_timeout.min(attempt_max);
    uri.socket_timeout = Some(attempt_max);
    let pause = attempt_max.min(PAUSE_MAX);
    let watch = move || {
        let mut connection = None;
        let mut silence = Duration::ZERO;
        while silence < silence_max {
            std::thread::sleep(pause);
            let asked = Instant::now();
            if is_answered(&uri, &mut connection) {
                silence = Duration::ZERO;
            } else {
                connection = None;
                silence += pause + asked.elapsed().min(attempt_max);
            }
        }
        eprintln!(
            "bunko: {}: no answer for {} s: the server is gone or stopped{advice}",
            uri.address(),
            silence_max.as_secs_f64()
        );
        std::process::exit(1);
    };
    let spawned = std::thread::Builder::new().name("watch".to_owned()).spawn(watch);
    spawned.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Whether the server answers; an error reply is an answer, too.
fn is_answered(uri: &Uri, connection: &mut Option<Connection>) -> bool {
    !matches!(ping(uri, connection), Err(ClientError::Unreachable { .. } | ClientError::Disconnected { .. }))
}

fn ping(uri: &Uri, connection: &mut Option<Connection>) -> Result<(), ClientError> {
    let open = match connection {
        Some(open) => open,
        none => none.insert(Connection::connect(uri)?),
    };
    open.run_command("admin", DocumentBuf::new().with("ping", 1_i32).as_ref()).map(drop)
}
