//! The server as a service of systemd or another manager: readiness, long starts, and sockets that the manager opens.

use bunko_host::{LongStep, ServiceManager, take_inherited_sockets};
use bunko_server::ListeningSockets;

/// The manager, and the sockets that it has opened.
pub struct ManagedService {
    pub manager: Manager,
    pub sockets: ListeningSockets,
}

/// The manager that hears what the server does; without one, nothing is told.
pub struct Manager(Option<ServiceManager>);

/// A step of the server that may take longer than the manager would wait.
#[derive(Clone, Copy)]
pub enum Step {
    Start,
    End,
}

impl ManagedService {
    /// Reads the variables that a manager sets.
    /// # Errors
    /// A sentence that names the variable or the socket that cannot be used.
    pub fn of_environment() -> Result<Self, String> {
        let address = std::env::var_os("NOTIFY_SOCKET");
        let wrong = |error| format!("NOTIFY_SOCKET={}: {error}", address.as_deref().unwrap_or_default().display());
        let manager = Manager(ServiceManager::at(address.clone()).map_err(wrong)?);
        let descriptors = take_inherited_sockets(|name| std::env::var(name).ok())?;
        Ok(Self { manager, sockets: ListeningSockets::of_manager(descriptors)? })
    }
}

impl Manager {
    /// Tells the step. Until the result is dropped, the manager waits for longer as long as the step proceeds.
    pub fn begin(&self, step: Step) -> Option<LongStep> {
        self.tell(match step {
            Step::Start => "STATUS=Opening the data directory",
            Step::End => "STOPPING=1\nSTATUS=Writing a checkpoint",
        });
        let begun = self.0.as_ref()?.begin_long_step();
        begun.inspect_err(log_failure).ok()
    }

    /// Tells that clients can connect.
    pub fn tell_ready(&self) {
        self.tell("READY=1\nSTATUS=Waiting for connections");
    }

    fn tell(&self, assignments: &str) {
        if let Some(Err(error)) = self.0.as_ref().map(|manager| manager.tell(assignments)) {
            log_failure(&error);
        }
    }
}

fn log_failure(error: &std::io::Error) {
    tracing::warn!(target: "CONTROL", id = 161, ctx = "main", %error, "The service manager cannot be told of the start or the end (NOTIFY_SOCKET)");
}
