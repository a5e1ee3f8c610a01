//! Servers that a scenario measures.

use crate::BenchError;
use crate::scenario::ServerSettings;
use std::path::PathBuf;

/// A server to measure.
pub struct Target {
    /// Label in tables; empty if there is only one target.
    pub label: String,
    /// Address or starter of the server.
    pub server: TargetServer,
}

/// How to reach or start a server.
pub enum TargetServer {
    /// The server is already running.
    Uri(String),
    /// The caller starts it for the scenario.
    Embedded(Box<dyn EmbeddedServer>),
}

/// A server that the lab may start and stop. `cli` implements it, because the lab knows no server's code.
pub trait EmbeddedServer {
    /// Starts it with those settings. Returns once it accepts connections, or will do so within the connect timeout; a
    /// replica set, once its first member is the primary and all others follow it. A set starts without data.
    /// # Errors
    /// A sentence that says why it did not start.
    fn start(&mut self, data: Data, settings: &ServerSettings) -> Result<Running, String>;

    /// Shuts it down; its data stays.
    fn stop(&mut self);
}

/// Data with which a server starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// No data: existing data is removed.
    Empty,
    /// The data that it had when it was stopped.
    AsLeft,
}

/// A started server.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its connection string.
    pub uri: String,
    /// Id of its process, which must be on this machine; of a replica set, the primary's, as the directory.
    pub pid: u32,
    /// Directory of its data.
    pub data_directory: PathBuf,
    /// Settings that differ from its defaults: setting, value.
    pub settings: Vec<(String, String)>,
}

/// A running target; an embedded server is stopped when this is dropped.
pub(crate) struct OpenTarget<'t> {
    pub uri: String,
    /// Only for a server that the lab started.
    pub running: Option<Running>,
    settings: ServerSettings,
    server: &'t mut TargetServer,
}

impl<'t> OpenTarget<'t> {
    /// Starts an embedded server with those settings. A server that is already running is reached by its URI.
    pub fn open(server: &'t mut TargetServer, settings: &ServerSettings) -> Result<Self, BenchError> {
        let settings = settings.clone();
        let running = match server {
            TargetServer::Uri(uri) => return Ok(Self { uri: uri.clone(), running: None, settings, server }),
            TargetServer::Embedded(embedded) => embedded.start(Data::Empty, &settings),
        };
        let running = running.map_err(BenchError::EmbeddedServer)?;
        Ok(Self { uri: running.uri.clone(), running: Some(running), settings, server })
    }

    /// Stops an embedded server, drops its files from the kernel's cache and starts it again.
    /// # Errors
    /// The server does not start again.
    pub fn chill(&mut self) -> Result<Chilled, BenchError> {
        let TargetServer::Embedded(embedded) = &mut *self.server else { return Ok(Chilled::NotOurs) };
        embedded.stop();
        let forgotten = self.running.as_ref().map(|running| bunko_host::forget_cached_pages(&running.data_directory));
        let running = embedded.start(Data::AsLeft, &self.settings).map_err(BenchError::EmbeddedServer)?;
        self.uri.clone_from(&running.uri);
        self.running = Some(running);
        Ok(match forgotten {
            Some(Err(error)) => Chilled::PagesKept(error.to_string()),
            _ => Chilled::Cold,
        })
    }
}

/// Result of an attempt to make caches cold.
pub(crate) enum Chilled {
    /// The server was restarted and the kernel has dropped its files' pages.
    Cold,
    /// The server was restarted, but the kernel keeps its files' pages; the text says why.
    PagesKept(String),
    /// Nothing was done: the lab did not start this server, so it must not stop it.
    NotOurs,
}

impl Drop for OpenTarget<'_> {
    fn drop(&mut self) {
        if let TargetServer::Embedded(embedded) = &mut *self.server {
            embedded.stop();
        }
    }
}
