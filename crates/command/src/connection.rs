//! The server's state for one client connection.

use crate::access_control::{LoggedIn, Login};
use crate::service::Service;
use bunko_bson::DocumentBuf;
use bunko_catalog::{Haste, Turn};
use bunko_errors::Result;
use bunko_operation::Draw;
use bunko_session::Peer;
use bunko_session::awaiting::{Await, Heartbeat, Parked, ParkedCursor};
use bunko_session::operations::{Absence, Beginning, Operations, Registration, RunningOperation};
use bunko_session::sessions::Session;
use bunko_session::sessions::id::random_uuid;
use bunko_wire::Compressor;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// The server's end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalEnd {
    /// An address.
    Tcp(SocketAddr),
    /// The path of a Unix domain socket.
    Unix(String),
}

/// State of one connection, changed by its commands.
#[derive(Debug)]
pub struct ClientConnection {
    /// Counted from 1.
    pub id: i32,
    /// The client's end.
    pub peer: Peer,
    /// Subject of the verified certificate that the client showed in its TLS handshake.
    pub certificate_subject: Option<String>,
    /// The server's end, if events are audited.
    pub local: Option<LocalEnd>,
    /// The `client` document of the handshake. A client may send it once.
    pub metadata: Option<DocumentBuf>,
    /// Compressors agreed on in the handshake, most preferred first.
    pub compressors: Vec<Compressor>,
    /// The user who is logged in.
    pub(crate) user: Option<LoggedIn>,
    /// A login that has begun.
    pub(crate) login: Option<Login>,
    /// The session that its last command named.
    pub(crate) session: Option<Arc<Session>>,
    /// The connection's entry for `currentOp`, from its first command on.
    registration: Option<Registration>,
    /// Generated when it is first needed.
    uuid: OnceLock<[u8; 16]>,
    /// The command that waits, if there is one.
    parked: Option<Parked>,
    /// The turn of a transaction's first statement that waits for another operation and then runs again.
    pub(crate) turn: Option<Turn>,
    /// The wait that must end before the last reply is sent.
    pub(crate) hold: Option<Await>,
    /// Whether requests of this connection are served before those of others.
    pub(crate) haste: Arc<Haste>,
    /// Progress of the heartbeat whose request runs next.
    pub(crate) heartbeat: Heartbeat,
    /// Bytes of the server's memory that were drawn for the next command, in addition to its message.
    pub prepaid_bytes: u64,
    /// The memory draw for replies that have not been sent.
    reply_draw: Option<Draw>,
}

impl ClientConnection {
    /// A connection that has not sent `hello`.
    pub fn new(id: i32, peer: Peer) -> Self {
        Self {
            id,
            peer,
            certificate_subject: None,
            local: None,
            metadata: None,
            compressors: Vec::new(),
            user: None,
            login: None,
            session: None,
            registration: None,
            uuid: OnceLock::new(),
            parked: None,
            turn: None,
            hold: None,
            haste: Arc::default(),
            heartbeat: Heartbeat::default(),
            prepaid_bytes: 0,
            reply_draw: None,
        }
    }

    /// Keeps the memory draw for a reply until the reply is sent.
    pub fn keep_reply_draw(&mut self, draw: Draw) {
        match &mut self.reply_draw {
            Some(kept) => kept.join(draw),
            none => *none = Some(draw),
        }
    }

    /// Takes the memory draw for the replies that are about to be sent.
    pub fn take_reply_draw(&mut self) -> Option<Draw> {
        self.reply_draw.take()
    }

    /// Takes the wait that must end before the reply is sent ([`crate::Answer::is_held`]).
    pub fn take_hold(&mut self) -> Option<Await> {
        self.hold.take()
    }

    /// Whether requests of this connection are served before those of others.
    pub fn haste(&self) -> &Arc<Haste> {
        &self.haste
    }

    /// Notes that the last request runs again, for a reply that the client did not ask for
    /// ([`crate::Answer::follow_up`]).
    pub fn note_follow_up(&mut self) {
        self.heartbeat = Heartbeat::Follows;
    }

    /// The connection's UUID in `connectionStatus`.
    pub(crate) fn uuid(&self, random: &dyn Fn() -> u64) -> [u8; 16] {
        *self.uuid.get_or_init(|| random_uuid(random))
    }

    /// Reads the user's privileges again if users or roles may have changed. A user who no longer exists is logged out.
    /// # Errors
    /// If the user cannot be read; the connection is logged out then.
    pub(crate) fn renew_user(&mut self, service: &Service) -> Result<()> {
        if self.user.as_ref().is_some_and(|user| !user.is_current(service)) {
            let source = self.peer.ip();
            let before = self.user.as_ref().map(|user| user.as_owner(source));
            let user = self.user.take().map(|user| user.renewed(service, source)).transpose()?.flatten();
            if let (Some(before), Some(now)) = (before, &user)
                && now.is_still_owner(&before)
            {
                service.transactions.renew_owner(&now.as_owner(source));
            }
            self.set_user(user);
        }
        Ok(())
    }

    /// Sets the user who is logged in; `None` logs out.
    pub(crate) fn set_user(&mut self, user: Option<LoggedIn>) {
        if let Some(registration) = &self.registration {
            registration.note_user(user.as_ref().map(|user| user.as_owner(self.peer.ip())));
        }
        self.user = user;
    }

    /// Whether a login has begun and not ended.
    pub fn is_logging_in(&self) -> bool {
        self.login.is_some()
    }

    /// The application name from the client's handshake.
    pub(crate) fn application(&self) -> Option<&str> {
        let application = self.metadata.as_ref()?.as_ref().get("application")?.as_document()?;
        application.get("name")?.as_str()
    }

    /// A handle for noting that the client has disconnected; `None` before its first command.
    pub fn absence(&self) -> Option<Absence> {
        self.registration.as_ref().map(Registration::absence)
    }

    /// Notes that a command begins.
    pub(crate) fn begin_operation(&mut self, operations: &Operations, beginning: &Beginning<'_>) -> RunningOperation {
        let (id, client) = (self.id, self.peer);
        let registration = self.registration.get_or_insert_with(|| operations.register(id, client));
        registration.begin(beginning, self.metadata.as_ref())
    }

    /// Notes that the command has failed. If it was about to move to another thread, it does not.
    pub(crate) fn end_move(&self) {
        self.registration.as_ref().into_iter().for_each(Registration::end_move);
    }

    /// Takes the command that waited, if there is one.
    pub(crate) fn unpark(&mut self) -> Option<(RunningOperation, ParkedCursor)> {
        let Parked { mut operation, cursor } = self.parked.take()?;
        operation.note_end_of_wait();
        Some((operation, cursor.into_inner()))
    }

    /// Keeps a command that waits.
    pub(crate) fn park(&mut self, mut operation: RunningOperation, cursor: Option<ParkedCursor>) {
        operation.note_wait();
        self.parked = cursor.map(|cursor| Parked { operation, cursor: Mutex::new(cursor) });
    }
}
