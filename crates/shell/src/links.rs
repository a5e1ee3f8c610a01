//! Connections of scripts: each `Mongo` has one, which is opened again when it is lost.

use crate::address::Address;
use crate::interruption::Interruption;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection, Pipeline, WriteConcern};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// Codes of a member that is not primary any more, or not yet: the deployment has to be searched again.
/// Source: MongoDB's server discovery specification, "not writable primary and node is recovering".
const NOT_PRIMARY: [i32; 8] = [91, 189, 10_058, 10_107, 11_600, 11_602, 13_435, 13_436];
/// Connections of one shell.
const LINKS_MAX: usize = 64;

/// The connections, by their numbers.
pub(crate) struct Links {
    links: Vec<Link>,
    interruption: Arc<Interruption>,
}

/// One connection, or a lost one that the next command opens again.
pub(crate) struct Link {
    pub address: Address,
    pub hello: DocumentBuf,
    /// Counts how often the connection was opened.
    pub generation: u32,
    pipeline: Option<Pipeline>,
}

/// Whether a command may be sent again if its reply is lost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repetition {
    Allowed,
    Forbidden,
}

impl Links {
    pub fn new(interruption: &Arc<Interruption>) -> Self {
        Self { links: Vec::new(), interruption: Arc::clone(interruption) }
    }

    /// Connects; returns the connection's number.
    /// # Errors
    /// As the client's.
    pub fn connect(&mut self, address: Address) -> Result<usize, ClientError> {
        if self.links.len() >= LINKS_MAX {
            let detail = format!("a shell has at most {LINKS_MAX} connections");
            return Err(ClientError::Protocol { address: address.uri.address(), detail });
        }
        let mut link = Link { address, hello: DocumentBuf::new(), generation: 0, pipeline: None };
        link.open()?;
        self.links.push(link);
        Ok(self.links.len() - 1)
    }

    /// The connection with that number.
    pub fn get(&mut self, number: usize) -> Option<&mut Link> {
        self.links.get_mut(number)
    }

    /// Runs a command and returns the reply, whatever it says.
    /// # Errors
    /// As the client's.
    pub fn run(
        &mut self,
        number: usize,
        command: &DocumentBuf,
        repetition: Repetition,
    ) -> Result<DocumentBuf, ClientError> {
        let interruption = Arc::clone(&self.interruption);
        let Some(link) = self.links.get_mut(number) else {
            let detail = "there is no such connection".to_owned();
            return Err(ClientError::Protocol { address: String::new(), detail });
        };
        let may_repeat = repetition == Repetition::Allowed;
        match link.exchange(command, &interruption) {
            Err(ClientError::Disconnected { .. }) if may_repeat && !interruption.is_rung() => {
                link.exchange(command, &interruption)
            }
            Ok(reply) if is_from_no_primary(&reply) => {
                link.close();
                if may_repeat { link.exchange(command, &interruption) } else { Ok(reply) }
            }
            outcome => outcome,
        }
    }
}

impl Link {
    fn open(&mut self) -> Result<(), ClientError> {
        let connection = Connection::connect(&self.address.uri)?;
        self.hello = connection.hello().to_owned();
        self.generation += 1;
        self.pipeline = Some(Pipeline::new(connection));
        Ok(())
    }

    /// Closes the connection; the next command opens it again.
    pub fn close(&mut self) {
        self.pipeline = None;
    }

    /// Limits the waits for all later replies on the connection. Returns whether it is open.
    pub fn limit_waits(&mut self, limit: Duration) -> bool {
        self.pipeline.as_mut().is_some_and(|pipeline| pipeline.connection().set_timeouts(Some(limit)).is_ok())
    }

    /// Logs in as another user. If that fails, the connection is as it was.
    /// # Errors
    /// As the client's.
    pub fn log_in(&mut self, address: Address) -> Result<(), ClientError> {
        let before = std::mem::replace(&mut self.address, address);
        self.open().inspect_err(|_| self.address = before)
    }

    /// The `$readPreference` of reads, if they need one.
    pub fn read_preference(&mut self) -> Option<DocumentBuf> {
        self.pipeline.as_mut().and_then(|pipeline| pipeline.connection().read_preference())
    }

    /// The write concern of the connection string.
    pub fn write_concern(&self) -> Option<DocumentBuf> {
        self.address.uri.write_concern.as_ref().map(WriteConcern::to_document)
    }

    fn exchange(&mut self, command: &DocumentBuf, interruption: &Interruption) -> Result<DocumentBuf, ClientError> {
        if self.pipeline.is_none() {
            self.open()?;
        }
        let Some(pipeline) = self.pipeline.as_mut() else {
            return Err(ClientError::Protocol { address: self.address.uri.address(), detail: "no connection".into() });
        };
        let socket = pipeline.connection().socket_copy();
        let exchanged = interruption.while_waiting(&self.address.uri, command, socket, || {
            // A Ctrl-C that came just before this wait could not end it.
            if interruption.is_rung() {
                let (address, cause) = (self.address.uri.address(), ErrorKind::Interrupted.into());
                return Err(ClientError::Disconnected { address, cause });
            }
            pipeline.send(command.as_ref(), None)?;
            let reply = pipeline.receive()?.as_bytes().to_vec();
            DocumentBuf::parse(reply).map_err(|error| ClientError::Protocol {
                address: self.address.uri.address(),
                detail: format!("a reply that is not BSON: {error}"),
            })
        });
        // A later reply on a broken connection would answer another command.
        if exchanged.is_err() {
            self.pipeline = None;
        }
        exchanged
    }
}

fn is_from_no_primary(reply: &DocumentBuf) -> bool {
    let code = |document: bunko_bson::DocumentRef<'_>| match document.get("code") {
        Some(ValueRef::Int32(code)) => NOT_PRIMARY.contains(&code),
        _ => false,
    };
    let reply = reply.as_ref();
    let has_failed = !matches!(reply.get("ok"), Some(ValueRef::Double(1.0) | ValueRef::Int32(1)));
    has_failed && code(reply)
}
