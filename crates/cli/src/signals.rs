//! Signals that a server handles.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// The signals that do not end a server. They are registered before the data directory is opened, which may take long.
pub struct Requests {
    rotate_log: Signal,
    /// mongod ignores this signal, so scripts may send it.
    ignored: Signal,
}

/// The signals that ask a server to stop. Once registered, they no longer end the process by themselves.
pub struct Stops {
    terminate: Signal,
    interrupt: Signal,
    /// Sent when the terminal that started the server is closed.
    hang_up: Signal,
}

impl Requests {
    pub fn register() -> std::io::Result<Self> {
        let (rotate_log, ignored) = (signal(SignalKind::user_defined1())?, signal(SignalKind::user_defined2())?);
        Ok(Self { rotate_log, ignored })
    }
}

impl Stops {
    pub fn register() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }
}

/// Handles signals until one of them or `shutdown` asks to stop; returns the reason.
pub async fn until_told_to_stop(
    mut requests: Requests,
    mut stops: Stops,
    shutdown: &Notify,
    rotate_log: impl Fn(),
) -> &'static str {
    loop {
        tokio::select! {
            _ = stops.terminate.recv() => return "SIGTERM",
            _ = stops.interrupt.recv() => return "SIGINT",
            _ = stops.hang_up.recv() => return "SIGHUP",
            () = shutdown.notified() => return "the shutdown command",
            _ = requests.rotate_log.recv() => rotate_log(),
            _ = requests.ignored.recv() => {}
        }
    }
}
