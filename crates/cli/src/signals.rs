//! What signals ask of a server.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// The signals that do not end a server. Registered before the data directory is opened, which may take long.
pub struct Requests {
    rotate_log: Signal,
    /// mongod takes it without ending, so scripts send it.
    ignored: Signal,
}

/// The signals that ask a server to stop. Registered, they no longer end the process by themselves.
pub struct Stops {
    terminate: Signal,
    interrupt: Signal,
    /// The terminal that started it is gone.
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

/// Does what signals ask for, until one of them or `shutdown` asks to stop; why.
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
