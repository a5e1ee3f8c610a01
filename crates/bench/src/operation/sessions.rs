//! Requests in sessions, as drivers send them: each request takes a session that no other request is using, and a
//! retryable write takes the session's next transaction number.

use super::{Answer, Requests};
use bunko_bson::{BinarySubtype, DocumentBuf, ValueRef};
use bunko_client::frame::{COMMAND_START, ReplyMode, append_to_command};
use bunko_client::{CommandError, Reply};
use rand::Rng;
use rand::rngs::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use slab::Slab;

/// Use of sessions in requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionUse {
    /// Requests have no session.
    #[default]
    None,
    /// Each request names a session, as drivers do.
    Named,
    /// In addition, writes are retryable, as with drivers and a replica set.
    Retryable,
}

impl SessionUse {
    /// Puts requests into such sessions.
    /// # Errors
    /// Requests that are not answered cannot have sessions.
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
            fields: Fields::new(),
            open: Slab::new(),
        }))
    }
}

/// Length of a session's id, in bytes.
pub(super) const SESSION_BYTES: usize = 16;

/// A session, used by one request or transaction at a time.
pub(super) struct Session {
    pub id: [u8; SESSION_BYTES],
    /// Number of its last retryable write or transaction.
    pub number: i64,
}

/// Sessions that no request is using.
pub(super) struct SessionPool {
    random: Xoshiro256PlusPlus,
    idle: Vec<Session>,
}

impl Default for SessionPool {
    fn default() -> Self {
        // Random ids keep the sessions apart from those of other runs on the same server.
        Self { random: rand::make_rng(), idle: Vec::new() }
    }
}

impl SessionPool {
    /// Takes the session that was returned last, or a new one.
    pub fn take(&mut self) -> Session {
        self.idle.pop().unwrap_or_else(|| {
            let mut id = [0; SESSION_BYTES];
            self.random.fill_bytes(&mut id);
            Session { id, number: 0 }
        })
    }

    /// Returns a session. After a failure it may be in any state, and must not be returned.
    pub fn give_back(&mut self, session: Session) {
        self.idle.push(session);
    }
}

/// A request that is in flight or requested by [`Answer::More`].
struct Open {
    session: Session,
    /// Tag or step of the request in `requests`.
    own: u64,
}

struct InSessions {
    requests: Box<dyn Requests>,
    are_retryable: bool,
    sessions: SessionPool,
    fields: Fields,
    /// The keys are tags or steps.
    open: Slab<Open>,
}

/// A request's session fields, encoded once and patched for each request.
struct Fields {
    bytes: Vec<u8>,
    id_at: usize,
    /// Offset of the field with the number, and of the number itself.
    number_field_at: usize,
    number_at: usize,
}

impl Fields {
    fn new() -> Self {
        let id = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &[0; SESSION_BYTES] };
        let named = DocumentBuf::new().with("lsid", &DocumentBuf::new().with("id", id));
        // Without the length at the beginning and the byte at the end.
        let number_field_at = named.len_bytes() - 4 - 1;
        let numbered = named.with("txnNumber", 0i64).into_bytes();
        let bytes = numbered[4..numbered.len() - 1].to_vec();
        // The end of the id's document follows the id.
        let id_at = number_field_at - 1 - SESSION_BYTES;
        let number_at = bytes.len() - size_of::<i64>();
        Self { bytes, id_at, number_field_at, number_at }
    }

    /// Encodes a session's fields, without a document around them. The number is left out unless `has_number`.
    fn of(&mut self, session: &Session, has_number: bool) -> &[u8] {
        self.bytes[self.id_at..self.id_at + SESSION_BYTES].copy_from_slice(&session.id);
        self.bytes[self.number_at..].copy_from_slice(&session.number.to_le_bytes());
        if has_number { &self.bytes } else { &self.bytes[..self.number_field_at] }
    }
}

/// Offset of the first field's name in a document, after the document's length and the field's type.
const NAME_START: usize = 4 + 1;

impl InSessions {
    /// Adds the session to the request that begins at `start`, and its next number if the request is a retryable write.
    fn put(&mut self, session: &mut Session, out: &mut Vec<u8>, start: usize) {
        let name = &out[start + COMMAND_START + NAME_START..];
        let has_number = self.are_retryable && (name.starts_with(b"insert\0") || name.starts_with(b"update\0"));
        session.number += i64::from(has_number);
        let fields = self.fields.of(session, has_number);
        append_to_command(out, start, fields).expect("room is left for a few fields");
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
        // The failed request's session may be in any state and is not used again.
        let Open { own, .. } = self.open.remove(tag as usize);
        self.requests.on_failure(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_session() {
        let session = Session { id: [7; SESSION_BYTES], number: 1 << 40 };
        let id = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &[7; SESSION_BYTES] };
        let named = DocumentBuf::new().with("lsid", &DocumentBuf::new().with("id", id));
        let encoded = |document: DocumentBuf| {
            let bytes = document.into_bytes();
            bytes[4..bytes.len() - 1].to_vec()
        };
        let mut fields = Fields::new();
        assert_eq!(fields.of(&session, false), encoded(named.clone()));
        assert_eq!(fields.of(&session, true), encoded(named.with("txnNumber", session.number)));
    }
}
