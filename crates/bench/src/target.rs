//! What a scenario measures.

use crate::BenchError;

/// A server to measure.
pub enum Target {
    /// One that runs already.
    Uri(String),
    /// One that the caller starts for this scenario.
    Embedded(Box<dyn EmbeddedServer>),
}

/// A server that the lab may start and stop. `cli` implements it: the lab knows no server.
pub trait EmbeddedServer {
    /// Starts an empty server and returns once it accepts connections, or will within the connect timeout.
    /// # Errors
    /// Why it did not start, in words.
    fn start(&mut self) -> Result<Running, String>;

    /// Stops it and removes its data. Called once, also after a failed scenario.
    fn stop(&mut self);
}

/// A started server.
pub struct Running {
    /// Its connection string.
    pub uri: String,
    /// Its process, which must be on this machine.
    pub pid: u32,
}

/// A target that is up; an embedded one is stopped when this is dropped.
pub(crate) struct OpenTarget {
    pub uri: String,
    /// Known only of a server that we started.
    pub pid: Option<u32>,
    embedded: Option<Box<dyn EmbeddedServer>>,
}

impl OpenTarget {
    pub fn open(target: Target) -> Result<Self, BenchError> {
        match target {
            Target::Uri(uri) => Ok(Self { uri, pid: None, embedded: None }),
            Target::Embedded(mut server) => match server.start() {
                Ok(running) => Ok(Self { uri: running.uri, pid: Some(running.pid), embedded: Some(server) }),
                Err(error) => {
                    server.stop();
                    Err(BenchError::EmbeddedServer(error))
                }
            },
        }
    }

    /// What the report calls it.
    pub fn kind(&self) -> &'static str {
        if self.embedded.is_some() { "embedded" } else { "uri" }
    }
}

impl Drop for OpenTarget {
    fn drop(&mut self) {
        if let Some(server) = &mut self.embedded {
            server.stop();
        }
    }
}
