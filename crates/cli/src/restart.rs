//! Starting the server again in this process, after it has stopped.

use bunko_server::ListeningSockets;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the server starts again once it has stopped.
pub struct Restart {
    is_asked_for: AtomicBool,
    /// Whether the sockets are a service manager's, which opens them for the process that it starts.
    is_of_manager: bool,
}

impl Restart {
    /// `sockets` are those of the service manager.
    pub fn of(sockets: &ListeningSockets) -> Self {
        Self { is_asked_for: AtomicBool::new(false), is_of_manager: !sockets.is_empty() }
    }

    pub fn ask_for(&self) {
        self.is_asked_for.store(true, Ordering::Release);
    }

    pub fn is_asked_for(&self) -> bool {
        self.is_asked_for.load(Ordering::Acquire)
    }

    /// Runs the program anew in place of this one. Returns why that is impossible.
    pub fn begin(&self) -> String {
        if self.is_of_manager {
            return "the server must start again, which is the service manager's to do".to_owned();
        }
        run_anew()
    }
}

/// Runs the program anew in place of this one, with the handlers of signals that the system has for a new program.
/// Returns why that is impossible.
pub fn run_anew() -> String {
    let error = match std::env::current_exe() {
        // The name may be that of a link, which stands for the command `serve`.
        Ok(program) => {
            let mut arguments = std::env::args_os();
            Command::new(program).arg0(arguments.next().unwrap_or_default()).args(arguments).exec()
        }
        Err(error) => error,
    };
    format!("the server cannot start itself again: {error}")
}
