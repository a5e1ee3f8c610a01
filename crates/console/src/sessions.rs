//! Sessions of pages: who logged in, and the connections on which their commands run.

use crate::guard::Refusal;
use crate::link::{Link, Received};
use bunko_bson::DocumentRef;
use bunko_command::{Client, Service};
use bunko_server::Doorway;
use hyper::StatusCode;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Maximum number of sessions.
const SESSIONS_MAX: usize = 16;
/// Time without a request after which a session ends.
const IDLE_MAX: Duration = Duration::from_mins(10);
/// Time after which a session ends in any case.
const AGE_MAX: Duration = Duration::from_hours(12);
/// A session that was used within this time is not ended to make room for another.
const IN_USE: Duration = Duration::from_mins(1);
/// Interval of looks for sessions that have ended by time.
const SWEEP: Duration = Duration::from_secs(30);
/// Maximum number of a session's commands that run at once, each on a connection of its own.
const COMMANDS_MAX: usize = 4;
/// Maximum number of connections of a session that stay open without a command.
const IDLE_LINKS_MAX: usize = 2;

/// All sessions.
pub struct Sessions {
    service: Arc<Service>,
    doorway: Doorway,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// By their tokens.
    sessions: HashMap<String, Arc<Session>>,
    has_sweeper: bool,
}

/// One session.
pub struct Session {
    /// The client as it was at the login, from which each connection is made.
    client: Client,
    began: Instant,
    used: Mutex<Instant>,
    idle: Mutex<Vec<Link>>,
    room: Semaphore,
}

impl Sessions {
    pub fn new(service: Arc<Service>, doorway: Doorway) -> Self {
        Self { service, doorway, open: Mutex::default() }
    }

    /// Begins a session of that client and returns its token. Must be called in the port's runtime.
    /// # Errors
    /// If there are too many sessions, all in use.
    pub fn begin(self: &Arc<Self>, client: Client) -> Result<String, Refusal> {
        let now = self.service.world.clock.now();
        let token = secret(&self.service);
        let mut open = self.open();
        open.end_old(now);
        if open.sessions.len() == SESSIONS_MAX {
            let last_used = |session: &Session| *lock(&session.used);
            let oldest = open.sessions.iter().min_by_key(|(_, session)| last_used(session));
            let unused = oldest.filter(|(_, session)| now.duration_since(last_used(session)) >= IN_USE);
            let Some(unused) = unused.map(|(token, _)| token.clone()) else {
                let reason = format!("{SESSIONS_MAX} sessions are in use");
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason));
            };
            open.sessions.remove(&unused);
        }
        let session = Session {
            client,
            began: now,
            used: Mutex::new(now),
            idle: Mutex::default(),
            room: Semaphore::new(COMMANDS_MAX),
        };
        open.sessions.insert(token.clone(), Arc::new(session));
        if !open.has_sweeper {
            open.has_sweeper = true;
            tokio::spawn(Arc::clone(self).sweep());
        }
        Ok(token)
    }

    /// The session with that token; `None` if it has ended.
    pub fn find(&self, token: &str) -> Option<Arc<Session>> {
        let now = self.service.world.clock.now();
        let mut open = self.open();
        open.end_old(now);
        let session = open.sessions.get(token)?;
        *lock(&session.used) = now;
        Some(Arc::clone(session))
    }

    /// Ends a session and closes its connections.
    pub fn end(&self, token: &str) {
        self.open().sessions.remove(token);
    }

    /// Runs a command as the session's user.
    /// # Errors
    /// `Unauthorized` if the user was dropped, or may no longer log in from that address; as [`Link::run`].
    pub async fn run(&self, session: &Session, command: DocumentRef<'_>) -> Result<Received, Refusal> {
        let unavailable = |reason: String| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason);
        let _place = session.room.try_acquire().map_err(|_| {
            let reason = format!("{COMMANDS_MAX} commands of this session run already");
            Refusal::new(StatusCode::TOO_MANY_REQUESTS, reason)
        })?;
        let kept = lock(&session.idle).pop();
        let mut link = match kept {
            Some(link) => link,
            None => {
                let client = session.client.another(&self.service.authority);
                let client = client.map_err(|failure| unavailable(failure.message().to_owned()))?;
                let client = client.ok_or_else(logged_out)?;
                self.doorway.connect(client).and_then(Link::new).map_err(|error| unavailable(error.to_string()))?
            }
        };
        // A request that its client leaves drops the link, which ends the command.
        let received = link.run(command, &self.service.facts.memory_limits.server).await?;
        let mut idle = lock(&session.idle);
        if idle.len() < IDLE_LINKS_MAX {
            idle.push(link);
        }
        Ok(received)
    }

    /// Ends sessions by time, until none is left.
    async fn sweep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(SWEEP).await;
            let mut open = self.open();
            open.end_old(self.service.world.clock.now());
            if open.sessions.is_empty() {
                open.has_sweeper = false;
                return;
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        lock(&self.open)
    }
}

impl Open {
    fn end_old(&mut self, now: Instant) {
        self.sessions.retain(|_, session| {
            let is_idle = session.room.available_permits() == COMMANDS_MAX;
            let unused = now.duration_since(*lock(&session.used));
            now.duration_since(session.began) < AGE_MAX && (unused < IDLE_MAX || !is_idle)
        });
    }
}

/// 256 random bits as hexadecimal text.
pub fn secret(service: &Service) -> String {
    (0..4).fold(String::new(), |mut secret, _| {
        let _ = write!(secret, "{:016x}", (service.world.random)());
        secret
    })
}

/// The refusal of a request without a session.
pub fn logged_out() -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "the session has ended: log in")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_command::Peer;

    fn open(began: Instant, used: Instant) -> (Open, Arc<Session>) {
        let session = Arc::new(Session {
            client: Client::new(0, Peer::Unix),
            began,
            used: Mutex::new(used),
            idle: Mutex::default(),
            room: Semaphore::new(COMMANDS_MAX),
        });
        let sessions = HashMap::from([("token".to_owned(), Arc::clone(&session))]);
        (Open { sessions, has_sweeper: false }, session)
    }

    #[test]
    fn sessions_end_by_time() {
        let began = Instant::now();
        let is_open_after = |used: Duration, now: Duration| {
            let (mut open, _) = open(began, began + used);
            open.end_old(began + now);
            !open.sessions.is_empty()
        };
        let second = Duration::from_secs(1);
        let (nearly_idle, nearly_old) = (IDLE_MAX.saturating_sub(second), AGE_MAX.saturating_sub(second));
        assert!(is_open_after(Duration::ZERO, nearly_idle));
        assert!(!is_open_after(Duration::ZERO, IDLE_MAX));
        assert!(is_open_after(nearly_old, nearly_old));
        assert!(!is_open_after(AGE_MAX, AGE_MAX));
    }

    #[test]
    fn a_session_whose_command_runs_is_not_idle() {
        let began = Instant::now();
        let (mut open, session) = open(began, began);
        let running = session.room.try_acquire().expect("there is room");
        open.end_old(began + IDLE_MAX);
        assert_eq!(open.sessions.len(), 1);
        drop(running);
        open.end_old(began + IDLE_MAX);
        assert_eq!(open.sessions.len(), 0);
    }
}
