//! The search for a server: one thread per host asks, one loop decides.

use super::introduction::Introduction;
use super::member::{Fit, Role, listed_hosts, set_name};
use crate::error::ClientError;
use crate::settings::Settings;
use crate::uri::{Host, ReadPreference};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Pause before a host that refused is asked again: a server may just be starting.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);
/// Pause before a host that answered but did not suit is asked again: an election takes seconds.
/// Source: MongoDB server discovery specification, `minHeartbeatFrequencyMS`.
const UNSUITABLE_PAUSE: Duration = Duration::from_millis(500);
/// Longest wait for a better role once an acceptable one is found.
const BETTER_ROLE_WAIT: Duration = Duration::from_secs(1);
/// Maximum number of hosts that are asked: MongoDB's largest replica set has 50 members.
const HOSTS_MAX: usize = 64;

/// The state of one host in the search.
enum HostState {
    /// A thread is asking it; holds its previous answer, if there was one.
    Asked(Option<Finding>),
    /// The host will be asked again at this time.
    Due(Instant, Finding),
    /// The host is not asked again, because its answer would not change.
    GivenUp(ClientError),
}

/// An answer that may change.
enum Finding {
    Refused(io::Error),
    Unsuitable(Role),
}

type Answer = (Host, Result<Introduction, ClientError>);

pub(super) struct Search<'s> {
    settings: &'s Arc<Settings>,
    started_at: Instant,
    hosts: BTreeMap<Host, HostState>,
    /// The first replica set found; members of other sets are refused.
    set_name: Option<String>,
    /// Whether any server has answered.
    answered: bool,
    second_best: Option<(Introduction, Instant)>,
    answers: Receiver<Answer>,
    sender: Sender<Answer>,
}

impl<'s> Search<'s> {
    pub fn new(settings: &'s Arc<Settings>) -> Self {
        let (sender, answers) = channel();
        Self {
            settings,
            started_at: settings.clock.now(),
            hosts: BTreeMap::new(),
            set_name: settings.uri.replica_set.clone(),
            answered: false,
            second_best: None,
            answers,
            sender,
        }
    }

    /// Asks hosts until one suits or time is up.
    pub fn run(mut self) -> Result<Introduction, ClientError> {
        for host in &self.settings.uri.hosts {
            self.add(host.clone());
        }
        loop {
            self.ask_again();
            let now = self.settings.clock.now();
            if now >= self.started_at + self.timeout() || self.is_settled(now) {
                return match self.second_best.take() {
                    Some((introduction, _)) => Ok(introduction),
                    None => Err(self.failure()),
                };
            }
            let answer = self.answers.recv_timeout(self.next_event().saturating_duration_since(now));
            match answer {
                Ok((host, Ok(introduction))) => {
                    if let Some(found) = self.judge(host, introduction) {
                        return Ok(found);
                    }
                }
                Ok((host, Err(error))) => self.note_error(host, error),
                // `self` keeps a sender, so the channel is never disconnected.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    /// Time limit of the whole search.
    fn timeout(&self) -> Duration {
        let uri = &self.settings.uri;
        let unreachable = uri.connect_timeout.min(uri.server_selection_timeout);
        if self.answered { uri.server_selection_timeout } else { unreachable }
    }

    /// Whether no better server can be expected.
    fn is_settled(&self, now: Instant) -> bool {
        let asking = self.hosts.values().any(|state| matches!(state, HostState::Asked(_)));
        match &self.second_best {
            Some((_, since)) => !asking || now >= *since + BETTER_ROLE_WAIT,
            None => self.hosts.values().all(|state| matches!(state, HostState::GivenUp(_))),
        }
    }

    /// Time of the next step if no answer arrives.
    fn next_event(&self) -> Instant {
        let due = self.hosts.values().filter_map(|state| match state {
            HostState::Due(at, _) => Some(*at),
            HostState::Asked(_) | HostState::GivenUp(_) => None,
        });
        let wait_ends = self.second_best.as_ref().map(|(_, since)| *since + BETTER_ROLE_WAIT);
        let end = self.started_at + self.timeout();
        due.chain(wait_ends).min().map_or(end, |event| event.min(end))
    }

    fn add(&mut self, host: Host) {
        if self.hosts.len() < HOSTS_MAX && !self.hosts.contains_key(&host) {
            self.ask(&host);
            self.hosts.insert(host, HostState::Asked(None));
        }
    }

    fn ask_again(&mut self) {
        let now = self.settings.clock.now();
        let due = |state: &HostState| matches!(state, HostState::Due(at, _) if *at <= now);
        let due: Vec<_> = self.hosts.iter().filter(|(_, state)| due(state)).map(|(host, _)| host.clone()).collect();
        for host in due {
            self.ask(&host);
            if let Some(state @ HostState::Due(..)) = self.hosts.get_mut(&host) {
                let HostState::Due(_, finding) = std::mem::replace(state, HostState::Asked(None)) else { continue };
                *state = HostState::Asked(Some(finding));
            }
        }
    }

    /// Asks a host in a thread that is never joined: a name lookup cannot be interrupted.
    fn ask(&self, host: &Host) {
        let (settings, host, sender) = (Arc::clone(self.settings), host.clone(), self.sender.clone());
        // A little before the search ends, so that the error of a late step becomes part of the search's error.
        let end = self.started_at + self.timeout().mul_f64(0.95);
        let deadline = end.min(settings.clock.now() + settings.uri.connect_timeout);
        thread::spawn(move || {
            let outcome = Introduction::make(&settings, &host, deadline);
            // The receiver is gone if the search has ended.
            let _ = sender.send((host, outcome));
        });
    }

    fn note_error(&mut self, host: Host, error: ClientError) {
        let state = match error {
            ClientError::Unreachable { cause, .. } if may_be_starting(&cause) => {
                HostState::Due(self.settings.clock.now() + REFUSED_PAUSE, Finding::Refused(cause))
            }
            other => HostState::GivenUp(other),
        };
        self.hosts.insert(host, state);
    }

    /// Returns the introduction if its server suits.
    fn judge(&mut self, host: Host, introduction: Introduction) -> Option<Introduction> {
        self.answered = true;
        let uri = &self.settings.uri;
        let role = introduction.connection.role();
        let found = set_name(introduction.connection.hello()).map(str::to_owned);
        if role != Role::Uninitiated && self.is_foreign(found.as_deref()) {
            let (address, expected) = (host.to_string(), self.set_name.clone().unwrap_or_default());
            let error = ClientError::WrongReplicaSet { address, expected, found };
            self.hosts.insert(host, HostState::GivenUp(error));
            return None;
        }
        if uri.direct_connection {
            return Some(introduction);
        }
        self.set_name = self.set_name.take().or(found);
        for listed in listed_hosts(introduction.connection.hello()) {
            self.add(listed);
        }
        // Several servers without a set are several databases: there is no way to know which one is meant.
        let alone = role == Role::Standalone && uri.hosts.len() > 1;
        match role.fit(uri.read_preference) {
            Fit::Best if !alone => return Some(introduction),
            Fit::SecondBest if self.second_best.is_none() => {
                self.second_best = Some((introduction, self.settings.clock.now()));
            }
            Fit::Best | Fit::SecondBest | Fit::None => {}
        }
        self.hosts
            .insert(host, HostState::Due(self.settings.clock.now() + UNSUITABLE_PAUSE, Finding::Unsuitable(role)));
        None
    }

    /// Whether a server belongs to another set than the one looked for, or the one found first.
    fn is_foreign(&self, found: Option<&str>) -> bool {
        let required = self.settings.uri.replica_set.is_some();
        match (&self.set_name, found) {
            (Some(expected), Some(found)) => expected != found,
            (Some(_), None) => required,
            (None, _) => false,
        }
    }

    /// One error that covers all hosts.
    fn failure(self) -> ClientError {
        let uri = &self.settings.uri;
        let (address, timeout) = (uri.address(), self.timeout());
        let (mut findings, mut unreachable, mut unsuitable) = (Vec::new(), None, false);
        for (host, state) in self.hosts {
            let (finding, cause) = match state {
                HostState::Asked(None) => {
                    ("no answer".into(), Some(io::Error::new(io::ErrorKind::TimedOut, "no answer")))
                }
                HostState::Asked(Some(Finding::Refused(cause))) | HostState::Due(_, Finding::Refused(cause)) => {
                    (cause.to_string(), Some(cause))
                }
                HostState::Asked(Some(Finding::Unsuitable(role))) | HostState::Due(_, Finding::Unsuitable(role)) => {
                    unsuitable = true;
                    (format!("is {role}"), None)
                }
                HostState::GivenUp(ClientError::Unreachable { cause, .. }) => (cause.to_string(), Some(cause)),
                // Such an error, about a certificate or a set's name, says more than that other hosts did not answer.
                HostState::GivenUp(error) => return error,
            };
            findings.push(format!("{host}: {finding}"));
            unreachable = unreachable.or(cause);
        }
        let found = findings.join("; ");
        match unreachable {
            Some(cause) if findings.len() == 1 => ClientError::Unreachable { address, timeout, cause },
            Some(cause) if !unsuitable => {
                ClientError::Unreachable { address, timeout, cause: io::Error::new(cause.kind(), found) }
            }
            _ => ClientError::NoSuitableServer { address, timeout, wanted: wanted(uri.read_preference), found },
        }
    }
}

fn wanted(preference: ReadPreference) -> &'static str {
    match preference {
        ReadPreference::Primary => "primary",
        ReadPreference::Secondary => "secondary",
        ReadPreference::PrimaryPreferred | ReadPreference::SecondaryPreferred | ReadPreference::Nearest => {
            "primary or secondary"
        }
    }
}

/// Whether the port has no listener, or the socket does not exist yet.
fn may_be_starting(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}
