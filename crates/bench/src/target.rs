//! What a scenario measures.

use crate::BenchError;
use crate::scenario::TransportSetting;
use std::path::PathBuf;

/// A server to measure.
pub struct Target {
    /// What tables call it; empty where there is only one.
    pub label: String,
    /// Where it is.
    pub server: TargetServer,
}

/// Where a server is.
pub enum TargetServer {
    /// It runs already.
    Uri(String),
    /// The caller starts it for the scenario.
    Embedded(Box<dyn EmbeddedServer>),
}

/// A server that the lab may start and stop. `cli` implements it: the lab knows no server.
pub trait EmbeddedServer {
    /// Starts it, to be reached by that, and returns once it accepts connections, or will within the connect timeout.
    /// # Errors
    /// Why it did not start, in words.
    fn start(&mut self, data: Data, transport: TransportSetting) -> Result<Running, String>;

    /// Stops it in an orderly way; its data stays.
    fn stop(&mut self);
}

/// What a server starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Nothing: what was there is removed.
    Empty,
    /// What it had when it was stopped.
    AsLeft,
}

/// A started server.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its connection string.
    pub uri: String,
    /// Its process, which must be on this machine.
    pub pid: u32,
    /// Where its data is.
    pub data_directory: PathBuf,
    /// What it was told beyond its defaults: setting, value.
    pub settings: Vec<(String, String)>,
}

/// A target that is up; an embedded one is stopped when this is dropped.
pub(crate) struct OpenTarget<'t> {
    pub uri: String,
    /// Known only of a server that we started.
    pub running: Option<Running>,
    transport: TransportSetting,
    server: &'t mut TargetServer,
}

impl<'t> OpenTarget<'t> {
    /// Starts a server that is to be reached by that; one that runs already is reached as its URI says.
    pub fn open(server: &'t mut TargetServer, transport: TransportSetting) -> Result<Self, BenchError> {
        let running = match server {
            TargetServer::Uri(uri) => return Ok(Self { uri: uri.clone(), running: None, transport, server }),
            TargetServer::Embedded(embedded) => embedded.start(Data::Empty, transport),
        };
        let running = running.map_err(BenchError::EmbeddedServer)?;
        Ok(Self { uri: running.uri.clone(), running: Some(running), transport, server })
    }

    /// Stops an embedded server, lets the kernel forget its files and starts it again.
    /// # Errors
    /// The server does not come back.
    pub fn chill(&mut self) -> Result<Chilled, BenchError> {
        let TargetServer::Embedded(embedded) = &mut *self.server else { return Ok(Chilled::NotOurs) };
        embedded.stop();
        let forgotten = self.running.as_ref().map(|running| bunko_host::forget_cached_pages(&running.data_directory));
        let running = embedded.start(Data::AsLeft, self.transport).map_err(BenchError::EmbeddedServer)?;
        self.uri.clone_from(&running.uri);
        self.running = Some(running);
        Ok(match forgotten {
            Some(Err(error)) => Chilled::PagesKept(error.to_string()),
            _ => Chilled::Cold,
        })
    }
}

/// What came of an attempt to make caches cold.
pub(crate) enum Chilled {
    /// The server was restarted and the kernel has forgotten its files.
    Cold,
    /// The server was restarted; why the kernel keeps the files' pages.
    PagesKept(String),
    /// Nothing was done: the lab did not start this server, so it does not stop it.
    NotOurs,
}

impl Drop for OpenTarget<'_> {
    fn drop(&mut self) {
        if let TargetServer::Embedded(embedded) = &mut *self.server {
            embedded.stop();
        }
    }
}
