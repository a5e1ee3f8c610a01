//! Facts about another member, from the answers to this member's messages.

use bunko_bson::{DocumentBuf, ValueRef};
use bunko_replica::MemberId;
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Another member, as this one sees it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its `_id`.
    pub id: MemberId,
    /// When it was first reached without a break; `None` while it cannot be reached.
    pub up_since: Option<Instant>,
    /// When it answered last.
    pub answered: Option<Instant>,
    /// When a message of its own arrived last.
    pub sent: Option<Instant>,
    /// The time between the last message and its answer.
    pub ping: Duration,
    /// Its last answer: see [`crate::Host::status`].
    pub status: DocumentBuf,
    /// Why it cannot be reached or refuses messages.
    pub failure: Option<String>,
}

impl Peer {
    /// A number in its last answer.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.status.as_ref().get(name).and_then(bunko_bson::number::as_i64_exact)
    }

    /// A field of its last answer.
    pub fn field(&self, name: &str) -> Option<ValueRef<'_>> {
        self.status.as_ref().get(name)
    }
}

/// Facts that a link has heard.
pub(crate) struct Heard(Mutex<Peer>);

impl Heard {
    pub(crate) fn new(id: MemberId) -> Self {
        Self(Mutex::new(Peer {
            id,
            up_since: None,
            answered: None,
            sent: None,
            ping: Duration::ZERO,
            status: DocumentBuf::new(),
            failure: None,
        }))
    }

    pub(crate) fn seen(&self) -> Peer {
        self.0.lock().clone()
    }

    pub(crate) fn note_answer(&self, status: DocumentBuf, now: Instant, ping: Duration) {
        let mut peer = self.0.lock();
        let up_since = peer.up_since.unwrap_or(now);
        *peer = Peer {
            up_since: Some(up_since),
            answered: Some(now),
            ping,
            status,
            failure: None,
            id: peer.id,
            sent: peer.sent,
        };
    }

    pub(crate) fn note_message(&self, now: Instant) {
        self.0.lock().sent = Some(now);
    }

    /// Returns whether the failure is news.
    pub(crate) fn note_failure(&self, failure: String) -> bool {
        let mut peer = self.0.lock();
        peer.up_since = None;
        let is_news = peer.failure.as_ref() != Some(&failure);
        peer.failure = Some(failure);
        is_news
    }
}
