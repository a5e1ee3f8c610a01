//! The server's state for one client connection.

use crate::held_back::HeldBack;
use crate::unacknowledged::Unacknowledged;
use bunko_authority::{Authority, Client};
use bunko_bson::DocumentBuf;
use bunko_catalog::{Haste, Turn};
use bunko_errors::Result;
use bunko_members::Inbound;
use bunko_operation::Draw;
use bunko_request::Peer;
use bunko_session::Halt;
use bunko_session::awaiting::{Await, Heartbeat, Parked, ParkedCursor};
use bunko_session::operations::{Absence, Beginning, Operations, Registration, RunningOperation};
use bunko_session::sessions::Session;
use bunko_session::transactions::Transactions;
use bunko_wire::Compressor;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;

/// State of one connection, changed by its commands.
#[derive(Debug)]
pub struct ClientConnection {
    /// The client, and the user that it is logged in as.
    client: Client,
    /// The name by which the client addressed the server in its TLS handshake (SNI).
    pub server_name: Option<Box<str>>,
    /// The `client` document of the handshake. A client may send it once.
    pub metadata: Option<DocumentBuf>,
    /// Compressors agreed on in the handshake, most preferred first.
    pub compressors: Vec<Compressor>,
    /// The session that its last command named.
    pub(crate) session: Option<Arc<Session>>,
    /// The connection's entry for `currentOp`, from its first command on.
    registration: Option<Registration>,
    /// The command that waits, if there is one.
    parked: Option<Parked>,
    /// The turn of a transaction's first statement that waits for another operation and then runs again.
    pub(crate) turn: Option<Turn>,
    /// The wait that must end before the last reply is sent.
    pub(crate) hold: Option<Await>,
    /// A write that is done, and whose reply waits for other members.
    pub(crate) unacknowledged: Option<Box<Unacknowledged>>,
    /// The operation that waits before it begins: flow control slows it down, or it reads at a time to come.
    held_back: Option<HeldBack>,
    /// Whether flow control has let the command wait that is running. It may run again, on another thread.
    pub(crate) has_waited: bool,
    /// The other member that sends messages on this connection.
    pub(crate) inbound: Option<Inbound>,
    /// Whether the server itself runs commands on it, and no client.
    is_own: bool,
    /// Whether requests of this connection are served before those of others.
    pub(crate) haste: Arc<Haste>,
    /// Progress of the heartbeat whose request runs next.
    pub(crate) heartbeat: Heartbeat,
    /// The counter in the topology version of its last `hello`.
    pub(crate) topology_told: i64,
    /// Bytes of the server's memory that were drawn for the next command, in addition to its message.
    pub prepaid_bytes: u64,
    /// The memory draw for replies that have not been sent.
    reply_draw: Option<Draw>,
}

impl ClientConnection {
    /// The state of a new connection, whose client has not sent `hello`.
    pub fn new(id: i32, peer: Peer) -> Self {
        Self::of(Client::new(id, peer))
    }

    /// As [`Self::new`], for a client that may be logged in already.
    pub fn of(client: Client) -> Self {
        Self {
            client,
            server_name: None,
            metadata: None,
            compressors: Vec::new(),
            session: None,
            registration: None,
            parked: None,
            turn: None,
            hold: None,
            unacknowledged: None,
            held_back: None,
            has_waited: false,
            inbound: None,
            is_own: false,
            haste: Arc::default(),
            heartbeat: Heartbeat::default(),
            topology_told: 0,
            prepaid_bytes: 0,
            reply_draw: None,
        }
    }

    /// The state for a command of the server itself.
    pub(crate) fn of_server() -> Self {
        Self { is_own: true, ..Self::new(0, Peer::Unix) }
    }

    /// Whether the server itself runs commands on this connection, and no client.
    pub(crate) fn is_own(&self) -> bool {
        self.is_own
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

    /// Sets the subject of the verified certificate that the client showed in its TLS handshake.
    pub fn set_certificate_subject(&mut self, subject: Option<String>) {
        self.client.certificate_subject = subject;
    }

    /// The client, for checks of its privileges.
    pub(crate) fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Logs the client in or out, by a function that may do so. `currentOp` then shows the new user.
    pub(crate) fn change_login<T>(&mut self, change: impl FnOnce(&mut Client) -> T) -> T {
        let outcome = change(&mut self.client);
        if let Some(registration) = &self.registration {
            registration.note_user(self.client.owner());
        }
        outcome
    }

    /// Reads the user's privileges again if users or roles may have changed. A user who no longer exists is logged out.
    /// # Errors
    /// If the user cannot be read; the connection is logged out then.
    pub(crate) fn renew_user(&mut self, authority: &Authority, transactions: &Transactions) -> Result<()> {
        if self.client.has_outdated_user(authority)
            && let Some(owner) = self.change_login(|client| client.renew_user(authority))?
        {
            transactions.renew_owner(&owner);
        }
        Ok(())
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

    /// Registers a command that begins, so that `currentOp` shows it and `killOp` ends it.
    pub(crate) fn begin_operation(&mut self, operations: &Operations, beginning: &Beginning<'_>) -> RunningOperation {
        let (id, client) = (self.client.id, self.client.peer);
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

    /// Keeps an operation that waits before it begins.
    pub(crate) fn hold_back(&mut self, mut operation: RunningOperation, wait: Await) -> Halt {
        operation.note_wait();
        self.held_back = Some(HeldBack(operation));
        Halt::Awaits(Box::new(wait))
    }

    /// Takes the operation that has waited before it begins, and ends the wait.
    pub(crate) fn take_held_back(&mut self) -> Option<RunningOperation> {
        let HeldBack(mut operation) = self.held_back.take()?;
        operation.note_end_of_wait();
        operation.note_end_of_slowing();
        Some(operation)
    }

    /// Keeps a command that waits.
    pub(crate) fn park(&mut self, mut operation: RunningOperation, cursor: Option<ParkedCursor>) {
        operation.note_wait();
        self.parked = cursor.map(|cursor| Parked { operation, cursor: Mutex::new(cursor) });
    }
}

impl Deref for ClientConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
