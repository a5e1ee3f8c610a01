//! The server as a service of systemd or another manager: readiness, long starts, and sockets that the manager opens.

use crate::configuration::Settings;
use bunko_host::{LongStep, ServiceManager, take_inherited_sockets};
use bunko_server::ListeningSockets;

/// The manager, and the sockets that it has opened.
pub struct ManagedService {
    pub manager: Manager,
    pub sockets: ListeningSockets,
}

/// The service manager that the server notifies, if there is one.
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

/// The sockets of the manager, or else sockets that are bound to the addresses of the settings.
/// # Errors
/// A sentence that names the address that cannot be bound.
pub fn listen(settings: &Settings, of_manager: ListeningSockets) -> Result<ListeningSockets, String> {
    if of_manager.is_empty() {
        let bound = ListeningSockets::bind(&settings.addresses, settings.unix_socket.as_ref());
        return bound.map_err(|error| error.to_string());
    }
    tracing::info!(target: "NETWORK", id = 160, ctx = "main", "The service manager's sockets stand in for net.bindIp, net.port and net.unixDomainSocket");
    Ok(of_manager)
}

impl Manager {
    /// Tells the service manager which step begins. Until the result is dropped, the manager extends its time limit
    /// while the step makes progress.
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
    tracing::warn!(target: "CONTROL", id = 161, ctx = "main", %error, "The service manager cannot be notified of the start or the end (NOTIFY_SOCKET)");
}
