//! Where the console is served, and what it shows beside the server.

use super::addresses::{self, Families};
use super::host_port;
use super::in_force::Configuration;
use super::table::{CONSOLE, CONSOLE_REPORTS, IPV6};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where the console is served, and what it shows beside the server.
pub struct ConsoleSettings {
    /// The name or the address of the host, as it was given; empty if none was.
    pub host: String,
    pub addresses: Vec<SocketAddr>,
    /// Directory of the lab's reports; `None` if none are shown.
    pub reports: Option<PathBuf>,
}

/// The host of a setting that gives a port alone.
const DEFAULT_HOST: &str = "127.0.0.1";

/// The console's settings; `None` if it is off.
/// # Errors
/// If the host has no address, or there is no directory of reports, or no console for them.
pub fn options(configuration: &Configuration) -> Result<Option<ConsoleSettings>, String> {
    let reports = configuration.text(&CONSOLE_REPORTS).map(PathBuf::from);
    let Some(text) = configuration.text(&CONSOLE) else {
        let needs = || format!("{} needs {}", configuration.name_of(&CONSOLE_REPORTS), CONSOLE.key());
        return reports.map_or(Ok(None), |_| Err(needs()));
    };
    if let Some(missing) = reports.as_ref().filter(|directory| !directory.is_dir()) {
        let setting = configuration.name_of(&CONSOLE_REPORTS);
        return Err(format!("{setting}: {} is not a directory", missing.display()));
    }
    let (host, port) = host_port::parse(&text)?;
    let families = if configuration.is_on(&IPV6) { Families::Both } else { Families::V4 };
    let named = addresses::parse(host.unwrap_or(DEFAULT_HOST), families)
        .map_err(|error| format!("{}: {error}", configuration.name_of(&CONSOLE)))?;
    let addresses = named.into_iter().map(|address| SocketAddr::new(address, port)).collect();
    Ok(Some(ConsoleSettings { host: host.unwrap_or_default().to_owned(), addresses, reports }))
}
