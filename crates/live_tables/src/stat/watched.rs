//! The servers of a table, and their last two readings.

use super::{Members, StatOptions, sentence};
use crate::columns::Shown;
use crate::observer::{Answer, Observer};
use crate::reading::{Interval, Reading};
use bunko_client::{ClientError, Uri};
use bunko_host::Clock;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Maximum number of servers of a table: the members of a set (50), and as many again.
const SERVERS_MAX: usize = 100;
/// Longest wait of a table for its slowest server. Later answers count for the next rows.
const PATIENCE_MAX: Duration = Duration::from_secs(2);

/// The outcome of asking all servers once.
#[derive(Default)]
pub(super) struct Round {
    /// Sentences about servers that no longer answer, or answer again.
    pub notes: Vec<String>,
    /// The first error, if no server answered.
    pub error: Option<ClientError>,
}

/// A server of the table.
pub(super) struct Server {
    /// `host:port`.
    pub host: String,
    /// Why it does not answer.
    pub trouble: Option<String>,
    observer: Observer,
    before: Option<Reading>,
    now: Option<Reading>,
    /// Whether `now` belongs to this interval.
    is_fresh: bool,
}

impl Server {
    /// The interval that ends now, if the server answered at both of its ends.
    pub fn interval(&self) -> Option<Interval<'_>> {
        let (before, now) = (self.before.as_ref()?, self.now.as_ref()?);
        self.is_fresh.then_some(Interval { host: &self.host, before, now })
    }

    fn take(&mut self, answer: Result<Reading, ClientError>, round: &mut Round) {
        self.observer.note_answer();
        match answer {
            Ok(reading) => {
                if self.trouble.take().is_some() {
                    round.notes.push(format!("{} answers again", self.host));
                }
                self.before = self.now.replace(reading);
                self.is_fresh = true;
            }
            Err(error) => {
                (self.before, self.now) = (None, None);
                self.note_trouble(sentence(&self.host, &error), round);
                round.error.get_or_insert(error);
            }
        }
    }

    /// Notes why the server does not answer, and says so once for each time that it goes away.
    fn note_trouble(&mut self, trouble: String, round: &mut Round) {
        if self.trouble.is_none() {
            round.notes.push(format!("{trouble}; waiting for it"));
        }
        self.trouble = Some(trouble);
    }
}

/// All servers of a table.
pub(super) struct Watched {
    /// In the order in which they were named or found.
    pub servers: Vec<Server>,
    uri: Uri,
    members: Members,
    patience: Duration,
    clock: Clock,
    sender: SyncSender<Answer>,
    answers: Receiver<Answer>,
}

impl Watched {
    /// # Errors
    /// If no thread can be started.
    pub fn start(options: &StatOptions, clock: &Clock) -> io::Result<Self> {
        // Each server has at most one answer on its way.
        let (sender, answers) = sync_channel(SERVERS_MAX);
        let mut watched = Self {
            servers: Vec::new(),
            uri: options.uri.clone(),
            members: options.members,
            patience: options.interval.min(PATIENCE_MAX),
            clock: clock.clone(),
            sender,
            answers,
        };
        for host in options.uri.hosts.clone() {
            watched.add(host.to_string(), |uri| uri.hosts = vec![host])?;
        }
        Ok(watched)
    }

    fn add(&mut self, host: String, set_host: impl FnOnce(&mut Uri)) -> io::Result<()> {
        if self.servers.len() == SERVERS_MAX || self.servers.iter().any(|server| server.host == host) {
            return Ok(());
        }
        let mut uri = self.uri.clone();
        set_host(&mut uri);
        (uri.direct_connection, uri.replica_set) = (true, None);
        let observer = Observer::start(self.servers.len(), uri, self.clock.clone(), self.sender.clone())?;
        self.servers.push(Server { host, trouble: None, observer, before: None, now: None, is_fresh: false });
        Ok(())
    }

    /// Reads all servers.
    /// # Errors
    /// If no thread can be started for a member that was found.
    pub fn read(&mut self) -> io::Result<Round> {
        for server in &mut self.servers {
            server.is_fresh = false;
            server.observer.ask();
        }
        let (began, mut round) = (self.clock.now(), Round::default());
        while self.servers.iter().any(|server| server.observer.is_asked()) {
            // At the start there is nothing to show before an answer or an error.
            let is_start = self.servers.iter().all(|server| server.now.is_none() && server.trouble.is_none());
            let wait = if is_start { Duration::MAX } else { self.patience.saturating_sub(self.clock.since(began)) };
            match self.answers.recv_timeout(wait) {
                Ok(Answer { number, reading }) => self.servers[number].take(reading, &mut round),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        for server in self.servers.iter_mut().filter(|server| server.observer.is_asked() && server.trouble.is_none()) {
            let trouble = format!("{} does not answer", server.host);
            server.note_trouble(trouble, &mut round);
        }
        if self.members == Members::Discovered {
            self.discover()?;
        }
        round.error = round.error.filter(|_| self.servers.iter().all(|server| server.now.is_none()));
        Ok(round)
    }

    /// Adds the members that the servers name. A server that was named otherwise takes the name that its set gives it.
    fn discover(&mut self) -> io::Result<()> {
        for number in 0..self.servers.len() {
            let Some(reading) = &self.servers[number].now else { continue };
            let own = reading.text("repl.me").map(str::to_owned);
            let members: Vec<String> = reading.members().map(str::to_owned).collect();
            if let Some(own) = own.filter(|own| self.servers.iter().all(|server| server.host != *own)) {
                self.servers[number].host = own;
            }
            for member in members {
                // A member's name is a host of a connection string; a name that is none cannot be reached.
                let Ok(uri) = format!("mongodb://{member}/").parse::<Uri>() else { continue };
                self.add(member, |own| own.hosts = uri.hosts)?;
            }
        }
        Ok(())
    }

    /// Whether any server has a row.
    pub fn has_rows(&self) -> bool {
        self.servers.iter().any(|server| server.interval().is_some())
    }

    /// Whether a column concerns these servers.
    pub fn concerns(&self, shown: Shown, members: Members) -> bool {
        let any_has = |path: &str| {
            self.servers.iter().any(|server| server.now.as_ref().is_some_and(|now| now.value(path).is_some()))
        };
        match shown {
            Shown::Always => true,
            Shown::OfSeveral => self.servers.len() > 1 || members == Members::Discovered,
            Shown::InSet => any_has("repl.setName"),
            Shown::OfBunko => any_has("bunko.memory.limitBytes"),
            Shown::OnRequest => false,
        }
    }
}
