//! Requests in sessions, as drivers send them: each takes one that no other request has at the moment, and a retryable write
//! the next number of it.

use super::{Answer, Requests};
use bunko_bson::{BinarySubtype, DocumentBuf, ValueRef};
use bunko_client::frame::{COMMAND_START, ReplyMode, append_to_command};
use bunko_client::{CommandError, Reply};
use rand::Rng;
use rand::rngs::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use slab::Slab;

/// In what sessions requests are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionUse {
    /// In none.
    #[default]
    None,
    /// Each names one, as drivers have it.
    Named,
    /// Besides, writes are retryable, as drivers have them with a replica set.
    Retryable,
}

impl SessionUse {
    /// The same requests in such sessions.
    /// # Errors
    /// Requests that are not answered are in none.
    pub(crate) fn around(self, requests: Box<dyn Requests>, mode: ReplyMode) -> Result<Box<dyn Requests>, String> {
        if self == Self::None {
            return Ok(requests);
        }
        if mode == ReplyMode::Silent {
            return Err("load.sessions: drivers name none in writes that are not acknowledged".to_owned());
        }
        Ok(Box::new(InSessions {
            requests,
            are_retryable: self == Self::Retryable,
            sessions: SessionPool::default(),
            open: Slab::new(),
        }))
    }
}

/// Bytes of a session's id.
pub(super) const SESSION_BYTES: usize = 16;

/// A session, which one request or transaction has at a time.
pub(super) struct Session {
    pub id: [u8; SESSION_BYTES],
    /// Of its last retryable write or transaction.
    pub number: i64,
}

/// Sessions that nobody has at the moment.
pub(super) struct SessionPool {
    random: Xoshiro256PlusPlus,
    idle: Vec<Session>,
}

impl Default for SessionPool {
    fn default() -> Self {
        // Sessions of other runs on the same server have numbers of their own.
        Self { random: rand::make_rng(), idle: Vec::new() }
    }
}

impl SessionPool {
    /// The one that came back last, or a new one.
    pub fn take(&mut self) -> Session {
        self.idle.pop().unwrap_or_else(|| {
            let mut id = [0; SESSION_BYTES];
            self.random.fill_bytes(&mut id);
            Session { id, number: 0 }
        })
    }

    /// Takes one back; not one that may be in any state after a failure.
    pub fn give_back(&mut self, session: Session) {
        self.idle.push(session);
    }
}

/// A request that is under way, or asked for.
struct Open {
    session: Session,
    /// The tag or step that the request has among those without sessions.
    own: u64,
}

struct InSessions {
    requests: Box<dyn Requests>,
    are_retryable: bool,
    sessions: SessionPool,
    /// A place here is the tag or step.
    open: Slab<Open>,
}

/// Where the first field's name begins in a document: behind its length and the field's type.
const NAME_START: usize = 4 + 1;

impl InSessions {
    /// Puts the session into the request that begins at `start`, and the next number of it where the request writes.
    fn put(&self, session: &mut Session, out: &mut Vec<u8>, start: usize) {
        let id = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &session.id };
        let mut fields = DocumentBuf::new().with("lsid", &DocumentBuf::new().with("id", id));
        let name = &out[start + COMMAND_START + NAME_START..];
        if self.are_retryable && (name.starts_with(b"insert\0") || name.starts_with(b"update\0")) {
            session.number += 1;
            fields.append("txnNumber", session.number);
        }
        let fields = fields.as_ref().as_bytes();
        append_to_command(out, start, &fields[4..fields.len() - 1]).expect("room is left for a few fields");
    }
}

impl Requests for InSessions {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let start = out.len();
        let own = self.requests.next(request_id, out)?;
        let mut session = self.sessions.take();
        self.put(&mut session, out, start);
        Some(self.open.insert(Open { session, own }) as u64)
    }

    fn on_reply(&mut self, tag: u64, reply: Reply<'_>) -> Result<Answer, String> {
        let Open { session, own } = self.open.remove(tag as usize);
        Ok(match self.requests.on_reply(own, reply)? {
            Answer::More { documents, step } => {
                // A cursor belongs to the session that opened it.
                Answer::More { documents, step: self.open.insert(Open { session, own: step }) as u64 }
            }
            done @ Answer::Done { .. } => {
                self.sessions.give_back(session);
                done
            }
        })
    }

    fn follow(&mut self, step: u64, request_id: i32, out: &mut Vec<u8>) -> u64 {
        let Open { mut session, own } = self.open.remove(step as usize);
        let start = out.len();
        let own = self.requests.follow(own, request_id, out);
        self.put(&mut session, out, start);
        self.open.insert(Open { session, own }) as u64
    }

    fn part(&self, tag: u64) -> usize {
        self.requests.part(self.open[tag as usize].own)
    }

    fn sent(&mut self, _tag: u64) -> u64 {
        unreachable!("unacknowledged writes are in no session")
    }

    fn again(&mut self, tag: u64, error: &CommandError) -> Option<u64> {
        let open = &mut self.open[tag as usize];
        open.own = self.requests.again(open.own, error)?;
        Some(tag)
    }

    fn on_failure(&mut self, tag: u64) {
        // Its session may be in any state: the next request has another one.
        let Open { own, .. } = self.open.remove(tag as usize);
        self.requests.on_failure(own);
    }
}
