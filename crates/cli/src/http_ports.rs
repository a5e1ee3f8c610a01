//! The ports for HTTP: the monitor and the console. Without their settings there are neither sockets nor threads.

use crate::access::Access;
use crate::configuration::Settings;
use bunko_command::Service;
use bunko_console::ConsoleSite;
use bunko_http_port::{Port, PortOptions};
use bunko_monitor::MonitorSite;
use bunko_server::{Doorway, Entrance, Tls, doorway};
use std::sync::Arc;

/// Checks that only clients on this machine reach a console without TLS or without logins.
/// # Errors
/// A sentence that names the address, and the setting that is missing.
pub fn check(settings: &Settings, access: &Access) -> Result<(), String> {
    let addresses = settings.console.iter().flat_map(|console| &console.addresses);
    let Some(open) = addresses.into_iter().find(|address| !address.ip().to_canonical().is_loopback()) else {
        return Ok(());
    };
    let missing = match (settings.tls.is_some(), access.is_enforced()) {
        (true, true) => return Ok(()),
        (false, _) => "net.tls.mode",
        (true, false) => "security.authorization",
    };
    Err(format!("net.console: {open} can be reached from other machines, which needs {missing}"))
}

/// The two ends of the console's way to the server, if there is a console.
pub fn console_doorway(settings: &Settings) -> (Option<Doorway>, Option<Entrance>) {
    settings.console.as_ref().map(|_| doorway()).unzip()
}

/// Starts the ports that the settings ask for. They end when they are dropped.
/// # Errors
/// If an address cannot be bound; the error names it.
pub fn start(
    service: &Arc<Service>,
    settings: &Settings,
    tls: Option<&Arc<Tls>>,
    doorway: Option<Doorway>,
) -> Result<Vec<Port>, String> {
    let mut ports = Vec::new();
    if !settings.monitor_addresses.is_empty() {
        let options = PortOptions {
            thread: "monitor",
            addresses: settings.monitor_addresses.clone(),
            tls: tls.cloned(),
            connections_max: bunko_monitor::CONNECTIONS_MAX,
        };
        let site = MonitorSite::new(Arc::clone(service));
        let port = Port::start(site, &options).map_err(|error| format!("the monitor: {error}"))?;
        for address in port.addresses() {
            tracing::info!(target: "NETWORK", id = 152, ctx = "main", %address, "The monitor serves /metrics, /healthz and /readyz");
        }
        ports.push(port);
    }
    if let (Some(console), Some(doorway)) = (&settings.console, doorway) {
        let options = PortOptions {
            thread: "console-page",
            addresses: console.addresses.clone(),
            tls: tls.cloned(),
            connections_max: bunko_console::CONNECTIONS_MAX,
        };
        let site = ConsoleSite::new(Arc::clone(service), doorway, &console.host, console.reports.clone());
        let port = Port::start(site, &options).map_err(|error| format!("the console: {error}"))?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        for address in port.addresses() {
            let url = format!("{scheme}://{address}/");
            tracing::info!(target: "NETWORK", id = 155, ctx = "main", url, "The console is a page for browsers");
        }
        ports.push(port);
    }
    Ok(ports)
}
