//! Connections to a server.

use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_client::{ClientError, Connection, Pipeline, Uri, check_reply};

/// A command to send.
#[derive(Clone, Copy)]
pub struct Command<'a> {
    /// The database that the command is for.
    pub database: &'a str,
    /// The command without `$db`.
    pub body: DocumentRef<'a>,
    /// The name of an array field, and the encoded documents that are its elements, one after another.
    pub documents: Option<(&'a str, &'a [u8])>,
}

/// One connection: commands go out, replies come back in their order.
pub trait Link: Send {
    /// Sends a command without waiting for its reply. Commands with long replies must be sent one at a time.
    /// # Errors
    /// The error of the connection.
    fn send(&mut self, command: Command<'_>) -> Result<(), ClientError>;

    /// Waits for the next reply, and returns it even if it reports an error.
    /// # Errors
    /// The error of the connection.
    fn receive(&mut self) -> Result<DocumentRef<'_>, ClientError>;

    /// Commands whose replies have not been received.
    fn in_flight(&self) -> usize;

    /// The `$readPreference` that lets the server serve reads in any role; `None` if none is needed. Reads that need
    /// the newest data leave it out.
    fn read_preference(&self) -> Option<&DocumentBuf> {
        None
    }

    /// Runs one command while nothing is in flight.
    /// # Errors
    /// `Command` if the server refuses the command or reports write errors; otherwise the error of the connection.
    fn run(&mut self, database: &str, body: &DocumentBuf) -> Result<DocumentBuf, ClientError> {
        self.send(Command { database, body: body.as_ref(), documents: None })?;
        let reply = self.receive()?;
        check_reply(reply).map_err(ClientError::Command)?;
        Ok(reply.to_owned())
    }
}

/// A server that links can be opened to, from any thread.
pub trait Server: Send + Sync {
    /// Opens one more link.
    /// # Errors
    /// As [`Connection::connect`].
    fn connect(&self) -> Result<Box<dyn Link>, ClientError>;

    /// Name of the server in messages: `host:port`, or the data directory.
    fn name(&self) -> &str;
}

/// Stands for a server in runs that need none.
pub struct Absent;

impl Server for Absent {
    fn connect(&self) -> Result<Box<dyn Link>, ClientError> {
        Err(ClientError::Protocol { address: self.name().into(), detail: "there is none".into() })
    }

    fn name(&self) -> &'static str {
        "no server"
    }
}

/// A server at the other end of a socket.
pub struct Remote {
    uri: Uri,
    name: String,
}

impl Remote {
    /// Connects once, so that a wrong address is reported at once.
    /// # Errors
    /// As [`Connection::connect`].
    pub fn new(uri: Uri) -> Result<Self, ClientError> {
        let name = Connection::connect(&uri)?.address().to_owned();
        Ok(Self { uri, name })
    }
}

impl Server for Remote {
    fn connect(&self) -> Result<Box<dyn Link>, ClientError> {
        let connection = Connection::connect(&self.uri)?;
        let read_preference = connection.read_preference();
        Ok(Box::new(Socket { pipeline: Pipeline::new(connection), read_preference, body: DocumentBuf::new() }))
    }

    fn name(&self) -> &str {
        &self.name
    }
}

struct Socket {
    pipeline: Pipeline,
    /// Belongs to this connection and not to the server: after an election, the server there has another role.
    read_preference: Option<DocumentBuf>,
    body: DocumentBuf,
}

impl Link for Socket {
    fn send(&mut self, command: Command<'_>) -> Result<(), ClientError> {
        self.body = command.body.to_owned().with("$db", command.database);
        self.pipeline.send(self.body.as_ref(), command.documents)
    }

    fn receive(&mut self) -> Result<DocumentRef<'_>, ClientError> {
        self.pipeline.receive()
    }

    fn in_flight(&self) -> usize {
        self.pipeline.in_flight()
    }

    fn read_preference(&self) -> Option<&DocumentBuf> {
        self.read_preference.as_ref()
    }
}
