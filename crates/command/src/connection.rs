//! What the server remembers about one client.

use crate::access_control::{LoggedIn, Login};
use crate::authorization::cursors::Owner;
use crate::awaiting::{Await, Heartbeat, Parked, ParkedCursor};
use crate::operations::{Absence, Beginning, Operations, Registration, RunningOperation};
use crate::service::Service;
use crate::sessions::Session;
use crate::sessions::id::random_uuid;
use bunko_bson::DocumentBuf;
use bunko_catalog::{Haste, Turn};
use bunko_errors::Result;
use bunko_operation::Draw;
use bunko_wire::Compressor;
use parking_lot::Mutex;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A client with an address.
    Tcp(SocketAddr),
    /// A client on a Unix domain socket: its end has no name.
    Unix,
}

/// The server's end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalEnd {
    /// An address.
    Tcp(SocketAddr),
    /// The path of a Unix domain socket.
    Unix(String),
}

/// Bits of an address of IPv6 that its holder can choose, as a rule.
const IPV6_HOST_BITS: u32 = 64;

impl Peer {
    /// The client's address; `None` at a Unix domain socket.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Tcp(address) => Some(address.ip()),
            Self::Unix => None,
        }
    }

    /// What counts as one address where something is limited by address: of IPv6 a network of 64 bits. `None` for all who
    /// come by a Unix domain socket.
    pub fn network(self) -> Option<IpAddr> {
        Some(match self.ip()?.to_canonical() {
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> IPV6_HOST_BITS << IPV6_HOST_BITS))
            }
            IpAddr::V4(address) => IpAddr::V4(address),
        })
    }
}

impl fmt::Display for Peer {
    /// As mongod prints it in its log, in `currentOp` and in `whatsmyuri`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("anonymous unix socket"),
        }
    }
}

/// State of one connection, changed by its commands.
#[derive(Debug)]
pub struct ClientConnection {
    /// Counted from 1.
    pub id: i32,
    /// Who is at the other end.
    pub peer: Peer,
    /// Whom the certificate names that it showed, verified, in its TLS handshake.
    pub certificate_subject: Option<String>,
    /// The server's end, where events are audited.
    pub local: Option<LocalEnd>,
    /// The `client` document of the handshake; may be given once.
    pub metadata: Option<DocumentBuf>,
    /// Compressors agreed on in the handshake, most wanted first.
    pub compressors: Vec<Compressor>,
    /// Who is logged in.
    pub(crate) user: Option<LoggedIn>,
    /// A login that has begun.
    pub(crate) login: Option<Login>,
    /// The session that its last command named.
    pub(crate) session: Option<Arc<Session>>,
    /// Its entry for `currentOp`, from the first command on.
    registration: Option<Registration>,
    /// Made when it is first asked for.
    uuid: OnceLock<[u8; 16]>,
    /// The command that waits, if one does.
    parked: Option<Parked>,
    /// The turn of the first statement of a transaction that waits for others, and is run again then.
    pub(crate) turn: Option<Turn>,
    /// What the last reply waits for.
    pub(crate) hold: Option<Await>,
    /// Whether its requests are served before those of others.
    pub(crate) haste: Arc<Haste>,
    /// How far the heartbeat is whose request is run next.
    pub(crate) heartbeat: Heartbeat,
    /// Bytes of the server's memory that were drawn for the next command, beside its message.
    pub prepaid_bytes: u64,
    /// The draw for replies that have not been sent.
    reply_draw: Option<Draw>,
}

impl ClientConnection {
    /// A connection that has not said hello.
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

    /// Keeps the draw for a reply until the reply is sent.
    pub fn keep_reply_draw(&mut self, draw: Draw) {
        match &mut self.reply_draw {
            Some(kept) => kept.join(draw),
            none => *none = Some(draw),
        }
    }

    /// The draw for the replies that are to be sent.
    pub fn take_reply_draw(&mut self) -> Option<Draw> {
        self.reply_draw.take()
    }

    /// What a reply waits for before it is sent ([`crate::Answer::is_held`]).
    pub fn take_hold(&mut self) -> Option<Await> {
        self.hold.take()
    }

    /// Whether its requests are to be served before those of others.
    pub fn haste(&self) -> &Arc<Haste> {
        &self.haste
    }

    /// Notes that the last request is run again, for the reply that follows unasked ([`crate::Answer::follow_up`]).
    pub fn note_follow_up(&mut self) {
        self.heartbeat = Heartbeat::Follows;
    }

    /// What `connectionStatus` calls the connection.
    pub(crate) fn uuid(&self, random: &dyn Fn() -> u64) -> [u8; 16] {
        *self.uuid.get_or_init(|| random_uuid(random))
    }

    /// Reads anew what the user may do, where users or roles may have changed. A user who is gone is logged out.
    /// # Errors
    /// Where it cannot be read; then nobody is logged in.
    pub(crate) fn renew_user(&mut self, service: &Service) -> Result<()> {
        if self.user.as_ref().is_some_and(|user| !user.is_current(service)) {
            let source = self.peer.ip();
            let before = self.user.as_ref().map(|user| Owner::of_user(user, source));
            let user = self.user.take().map(|user| user.renewed(service, source)).transpose()?.flatten();
            if let (Some(before), Some(now)) = (before, &user)
                && before.is_still(now)
            {
                service.transactions.renew_owner(&Owner::of_user(now, source));
            }
            self.set_user(user);
        }
        Ok(())
    }

    /// Logs somebody in, or whoever is logged in out.
    pub(crate) fn set_user(&mut self, user: Option<LoggedIn>) {
        if let Some(registration) = &self.registration {
            registration.note_user(user.as_ref().map(|user| Owner::of_user(user, self.peer.ip())));
        }
        self.user = user;
    }

    /// Whether a login has begun that has not come to its end.
    pub fn is_logging_in(&self) -> bool {
        self.login.is_some()
    }

    /// What the client calls itself in its handshake.
    pub(crate) fn application(&self) -> Option<&str> {
        let application = self.metadata.as_ref()?.as_ref().get("application")?.as_document()?;
        application.get("name")?.as_str()
    }

    /// Where to note that the client has gone away; `None` before its first command.
    pub fn absence(&self) -> Option<Absence> {
        self.registration.as_ref().map(Registration::absence)
    }

    /// Notes that a command begins.
    pub(crate) fn begin_operation(&mut self, operations: &Operations, beginning: &Beginning<'_>) -> RunningOperation {
        let (id, client) = (self.id, self.peer);
        let registration = self.registration.get_or_insert_with(|| operations.register(id, client));
        registration.begin(beginning, self.metadata.as_ref())
    }

    /// Notes that the command has failed: if it was to begin again on another thread, it did not.
    pub(crate) fn end_move(&self) {
        self.registration.as_ref().into_iter().for_each(Registration::end_move);
    }

    /// The command that waited, if one did.
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
