//! One thread for each server, so that a server that does not answer holds up no other.

use crate::reading::Reading;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection, Uri};
use bunko_host::Clock;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Longest wait for a connection. A server that is gone is asked again at the next interval.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(5);
/// Longest wait for a reply, after which the connection is given up.
const ANSWER_TIMEOUT_MAX: Duration = Duration::from_secs(10);

/// An answer of a server, or the reason why there is none.
pub(crate) struct Answer {
    /// The observer's number.
    pub number: usize,
    pub reading: Result<Reading, ClientError>,
}

/// A thread that reads one server, each time when it is asked to. It ends when the observer is dropped.
pub(crate) struct Observer {
    requests: SyncSender<()>,
    is_asked: bool,
}

impl Observer {
    /// `uri` has one host. Answers come with `number`.
    /// # Errors
    /// If no thread can be started.
    pub fn start(number: usize, uri: Uri, clock: Clock, answers: SyncSender<Answer>) -> io::Result<Self> {
        let (requests, asked) = sync_channel(1);
        let observe = move || observe(number, &patient(uri), &clock, (&asked, &answers));
        std::thread::Builder::new().name("observer".to_owned()).spawn(observe)?;
        Ok(Self { requests, is_asked: false })
    }

    /// Asks for a reading, unless the last one has not come yet.
    pub fn ask(&mut self) {
        self.is_asked = self.is_asked || self.requests.try_send(()).is_ok();
    }

    /// Notes that the reading has come.
    pub fn note_answer(&mut self) {
        self.is_asked = false;
    }

    /// Whether a reading is under way.
    pub fn is_asked(&self) -> bool {
        self.is_asked
    }
}

/// The connection string with waits that end.
pub(crate) fn patient(mut uri: Uri) -> Uri {
    uri.connect_timeout = uri.connect_timeout.min(CONNECT_TIMEOUT_MAX);
    uri.server_selection_timeout = uri.server_selection_timeout.min(CONNECT_TIMEOUT_MAX);
    uri.socket_timeout = Some(uri.socket_timeout.map_or(ANSWER_TIMEOUT_MAX, |given| given.min(ANSWER_TIMEOUT_MAX)));
    uri
}

fn observe(number: usize, uri: &Uri, clock: &Clock, (asked, answers): (&Receiver<()>, &SyncSender<Answer>)) {
    let mut connection = None;
    while asked.recv().is_ok() {
        let reading = read(uri, &mut connection, clock);
        if reading.is_err() {
            connection = None;
        }
        if answers.send(Answer { number, reading }).is_err() {
            return;
        }
    }
}

fn read(uri: &Uri, connection: &mut Option<Connection>, clock: &Clock) -> Result<Reading, ClientError> {
    let open = match connection {
        Some(open) => open,
        none => none.insert(Connection::dial(uri)?),
    };
    let mut ask = |command: &str| open.run_command("admin", DocumentBuf::new().with(command, 1_i32).as_ref());
    let status = ask("serverStatus")?;
    let (at, date_ms) = (clock.now(), clock.now_ms());
    let is_in_set = status.as_ref().get("repl").and_then(ValueRef::as_document).is_some();
    let set = match is_in_set.then(|| ask("replSetGetStatus")).transpose() {
        Ok(set) => set,
        // The user may not ask, or the server leaves its set at this moment.
        Err(ClientError::Command(_)) => None,
        Err(error) => return Err(error),
    };
    Ok(Reading { at, date_ms, status, set })
}
