//! Ctrl-C: it stops the running script, and has the server kill the operation that runs for it. If the server does not
//! hear, the connection is shut down, which ends the wait for its reply.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_client::{Connection, Uri};
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::net::{Shutdown, shutdown};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a server may take to hear that an operation is to be killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// The effect of a Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// The script is told to stop.
    First,
    /// The script was told before, and has not stopped: the process has to end.
    Again,
}

/// Shared by the thread that runs scripts and the thread that receives signals.
#[derive(Default)]
pub struct Interruption {
    is_rung: AtomicBool,
    waited_for: Arc<Mutex<Option<Running>>>,
}

/// The command whose reply is waited for.
#[derive(Clone)]
struct Running {
    uri: Uri,
    /// The `lsid` of the command.
    session: Option<DocumentBuf>,
    /// The connection's socket; `None` if the process has no descriptor left for it.
    socket: Option<Arc<OwnedFd>>,
}

impl Interruption {
    /// Tells the script to stop, and the server to kill its operation. Called by the thread of signals.
    pub fn ring(&self) -> Rung {
        if self.is_rung.swap(true, Ordering::AcqRel) {
            return Rung::Again;
        }
        let running = self.waited_for.lock().clone();
        if let Some(running) = running {
            let waited_for = Arc::clone(&self.waited_for);
            std::thread::spawn(move || {
                if !running.kill() {
                    running.hang_up(&waited_for);
                }
            });
        }
        Rung::First
    }

    /// Whether the script was told to stop.
    pub fn is_rung(&self) -> bool {
        self.is_rung.load(Ordering::Acquire)
    }

    /// Lets the next script run.
    pub(crate) fn reset(&self) {
        self.is_rung.store(false, Ordering::Release);
    }

    /// Runs `exchange`, which sends a command to a server and waits for its reply.
    pub(crate) fn while_waiting<T>(
        &self,
        uri: &Uri,
        command: &DocumentBuf,
        socket: Option<OwnedFd>,
        exchange: impl FnOnce() -> T,
    ) -> T {
        let session = command.as_ref().get("lsid").and_then(ValueRef::as_document).map(DocumentRef::to_owned);
        *self.waited_for.lock() = Some(Running { uri: uri.clone(), session, socket: socket.map(Arc::new) });
        let outcome = exchange();
        *self.waited_for.lock() = None;
        outcome
    }
}

impl Running {
    /// Tells the server to end the operation. Returns whether it has heard.
    fn kill(&self) -> bool {
        let Some(session) = &self.session else { return false };
        let mut uri = self.uri.clone();
        uri.connect_timeout = PATIENCE;
        uri.server_selection_timeout = PATIENCE;
        uri.socket_timeout = Some(PATIENCE);
        let sessions: ArrayBuf = [session].into_iter().collect();
        let command = DocumentBuf::new().with("killSessions", &sessions);
        Connection::connect(&uri).and_then(|mut other| other.run_command("admin", command.as_ref())).is_ok()
    }

    /// Ends the wait for the reply of a server that has vanished, or cannot be told. A server that lives ends the
    /// operation when it finds the connection closed.
    fn hang_up(&self, waited_for: &Mutex<Option<Self>>) {
        let Some(socket) = &self.socket else { return };
        let now = waited_for.lock();
        let waits = now.as_ref().and_then(|now| now.socket.as_ref()).is_some_and(|now| Arc::ptr_eq(now, socket));
        if waits {
            // A connection that cannot be shut down is lost already.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}
