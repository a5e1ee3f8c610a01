//! The operation that one connection runs.

use crate::sessions::SessionId;
use bunko_access::Name;
use bunko_access::Owner;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_request::Peer;
use bunko_request::facts::CommandFacts;
use bunko_store::{Bell, Clock};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of bytes of a command that `currentOp` shows, as in MongoDB.
pub(super) const COMMAND_BYTES_MAX: usize = 1024;

/// The operation that one connection runs.
pub(super) struct OperationSlot {
    pub(super) clock: Clock,
    /// The connection's id; 0 for the server's own operations.
    pub(super) connection: i32,
    /// The client; `None` for the server's own operations.
    pub(super) client: Option<Peer>,
    /// The running operation's id; 0 when idle.
    pub(super) running: AtomicU32,
    /// The id of the operation that must stop: an id, not a flag, so that a late kill never hits the next operation.
    pub(super) killed: AtomicU32,
    /// The id of an operation that moves to another thread, from when it leaves one thread until it begins on the
    /// other. It can be killed meanwhile.
    pub(super) moving: AtomicU32,
    pub(super) is_client_gone: AtomicBool,
    pub(super) are_all_interrupted: Arc<AtomicBool>,
    /// Rung when the running operation may have to stop, for an operation that waits without a thread.
    pub(super) stop: Arc<Bell>,
    pub(super) details: Mutex<Details>,
}

pub(super) struct Details {
    /// The entry of the command that runs or ran last.
    pub(super) entry: &'static CommandFacts,
    pub(super) database: String,
    /// An encoded document, see [`keep_command`].
    pub(super) command: Vec<u8>,
    /// Whether the command had more fields than `command` keeps.
    pub(super) is_command_cut: bool,
    /// Whether the command's body makes this a writing operation. Whether the command's name does is derived when
    /// needed.
    pub(super) is_writing_for_body: bool,
    pub(super) started: Instant,
    pub(super) session: Option<SessionId>,
    pub(super) metadata: Option<DocumentBuf>,
    /// The user who is logged in, with their privileges when those were last read.
    pub(super) user: Option<Owner>,
    /// Whether the operation waits for the write lock to open.
    pub(super) is_held_back: bool,
    /// Whether the operation's writes are done, and only its reply waits.
    pub(super) is_done: bool,
    pub(super) slowing: Slowing,
}

/// How flow control slows a write down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slowing {
    /// Not at all.
    #[default]
    None,
    /// The write waits since that moment.
    Since(Instant),
    /// The write has waited so long.
    Over(Duration),
}

/// The facts of an operation when it begins.
pub struct Beginning<'a> {
    /// The entry of its command.
    pub entry: &'static CommandFacts,
    /// The database that the command was sent to.
    pub database: &'a str,
    /// The command without its secrets.
    pub command: DocumentRef<'a>,
    /// The session that the command names.
    pub session: Option<SessionId>,
}

/// One operation, or one idle connection, as `currentOp` saw it.
pub struct Observed {
    /// The operation's id; 0 when the connection is idle.
    pub opid: u32,
    /// Whether the operation must stop.
    pub is_killed: bool,
    /// The connection's id; 0 for the server's own operations.
    pub connection: i32,
    /// The client; `None` for the server's own operations.
    pub client: Option<Peer>,
    /// The entry of the command that runs or ran last.
    pub entry: &'static CommandFacts,
    /// The database that the command was sent to.
    pub database: String,
    /// The command without its secrets.
    pub command: DocumentBuf,
    /// Whether the command had other fields, which were too large to be kept.
    pub is_command_cut: bool,
    /// Time since the command began.
    pub running_for: Duration,
    /// The session that the command names.
    pub session: Option<SessionId>,
    /// The `client` document of the connection's handshake.
    pub metadata: Option<DocumentBuf>,
    /// The user who is logged in.
    pub user: Option<Name>,
    /// Whether the operation waits for the write lock to open.
    pub is_held_back: bool,
    /// How flow control slows it down.
    pub slowing: Slowing,
}

/// Notes that a client has disconnected while its command runs on another thread.
pub struct Absence(pub(super) Arc<OperationSlot>);

impl Absence {
    /// Makes reads for the client stop soon, because their replies could not be delivered.
    pub fn note(&self) {
        self.0.is_client_gone.store(true, Ordering::Relaxed);
    }

    /// Whether the client has disconnected.
    pub fn is_noted(&self) -> bool {
        self.0.is_client_gone.load(Ordering::Relaxed)
    }
}

/// A running operation; the slot is idle when it is dropped.
pub struct RunningOperation {
    pub(super) slot: Arc<OperationSlot>,
    pub(super) entry: &'static CommandFacts,
    pub(super) opid: u32,
    pub(super) started: Instant,
    /// How long the operation has waited without a thread, and since when it waits now.
    pub(super) waited: Duration,
    pub(super) waits_since: Option<Instant>,
}

impl Drop for RunningOperation {
    fn drop(&mut self) {
        if self.slot.moving.load(Ordering::Acquire) != self.opid {
            self.slot.running.store(0, Ordering::Release);
        }
    }
}

/// Keeps a small command whole, and the fields of a large one (usually a batch of documents) that fit into
/// `COMMAND_BYTES_MAX`.
pub(super) fn keep_command(into: &mut Vec<u8>, command: DocumentRef<'_>) {
    into.clear();
    if command.len_bytes() <= COMMAND_BYTES_MAX {
        into.extend_from_slice(command.as_bytes());
        return;
    }
    let mut writer = bunko_bson::Writer::new(into);
    for element in command {
        let is_large = element.value.as_document().is_some_and(|inner| inner.len_bytes() > COMMAND_BYTES_MAX / 4)
            || element.value.as_array().is_some_and(|inner| inner.as_document().len_bytes() > COMMAND_BYTES_MAX / 4)
            || element.value.as_str().is_some_and(|inner| inner.len() > COMMAND_BYTES_MAX / 4);
        if !is_large && writer.len_bytes() < COMMAND_BYTES_MAX {
            writer.append(element.name, element.value);
        }
    }
    writer.end();
}

impl OperationSlot {
    pub(super) fn observe(&self) -> Observed {
        let details = self.details.lock();
        let opid = self.running.load(Ordering::Acquire);
        Observed {
            opid,
            is_killed: opid != 0 && self.killed.load(Ordering::Acquire) == opid,
            connection: self.connection,
            client: self.client,
            entry: details.entry,
            database: details.database.clone(),
            command: DocumentBuf::from_trusted(details.command.clone()),
            is_command_cut: details.is_command_cut,
            running_for: self.clock.since(details.started),
            session: details.session,
            metadata: details.metadata.clone(),
            user: details.user.as_ref().map(|user| user.name.clone()),
            is_held_back: details.is_held_back,
            slowing: details.slowing,
        }
    }
}

impl RunningOperation {
    /// The operation's id.
    #[inline]
    pub fn opid(&self) -> u32 {
        self.opid
    }

    /// The command, without the fields that are too large to be kept.
    pub fn command(&self) -> DocumentBuf {
        DocumentBuf::from_trusted(self.slot.details.lock().command.clone())
    }

    /// Notes whether the operation waits for the write lock to open.
    pub fn note_held_back(&self, is_held_back: bool) {
        self.slot.details.lock().is_held_back = is_held_back;
    }

    /// Notes that the operation writes nothing more, and that its reply waits for other members of the set.
    pub fn note_done(&self) {
        self.slot.details.lock().is_done = true;
    }

    /// Notes that the operation waits for flow control from now on.
    pub fn note_slowing(&self) {
        self.slot.details.lock().slowing = Slowing::Since(self.slot.clock.now());
    }

    /// Notes that the operation waits for flow control no more, if it did.
    pub fn note_end_of_slowing(&self) {
        let mut details = self.slot.details.lock();
        if let Slowing::Since(since) = details.slowing {
            details.slowing = Slowing::Over(self.slot.clock.since(since));
        }
    }

    /// Whether the operation must stop because it or its session was killed.
    pub fn is_killed(&self) -> bool {
        self.slot.killed.load(Ordering::Acquire) == self.opid
    }

    /// Rung when the operation may have to stop.
    #[inline]
    pub fn stop_bell(&self) -> &Arc<Bell> {
        &self.slot.stop
    }

    /// Notes that the operation will end on this thread and begin on another, with its id.
    pub fn note_move(&self) {
        self.slot.moving.store(self.opid, Ordering::Release);
    }

    /// Notes that the operation waits without a thread from now on.
    pub fn note_wait(&mut self) {
        self.waits_since = Some(self.slot.clock.now());
    }

    /// Notes that the operation runs again.
    pub fn note_end_of_wait(&mut self) {
        self.waited += self.waits_since.take().map_or(Duration::ZERO, |since| self.slot.clock.since(since));
    }

    /// How long the operation has waited without a thread.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// When the operation began.
    #[inline]
    pub fn started(&self) -> Instant {
        self.started
    }
}
