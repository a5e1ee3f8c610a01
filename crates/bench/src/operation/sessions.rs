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
            fields: Fields::new(),
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
    fields: Fields,
    /// A place here is the tag or step.
    open: Slab<Open>,
}

/// What a request says of its session, encoded once and patched for each.
struct Fields {
    bytes: Vec<u8>,
    id_at: usize,
    /// Where the field with the number begins, and the number itself.
    number_field_at: usize,
    number_at: usize,
}

impl Fields {
    fn new() -> Self {
        let id = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &[0; SESSION_BYTES] };
        let named = DocumentBuf::new().with("lsid", &DocumentBuf::new().with("id", id));
        // Without the length in front and the byte at the end.
        let number_field_at = named.len_bytes() - 4 - 1;
        let numbered = named.with("txnNumber", 0i64).into_bytes();
        let bytes = numbered[4..numbered.len() - 1].to_vec();
        // Behind the id is the end of its document.
        let id_at = number_field_at - 1 - SESSION_BYTES;
        let number_at = bytes.len() - size_of::<i64>();
        Self { bytes, id_at, number_field_at, number_at }
    }

    /// Those of a session, encoded without a document around them; with its number, where the request has one.
    fn of(&mut self, session: &Session, has_number: bool) -> &[u8] {
        self.bytes[self.id_at..self.id_at + SESSION_BYTES].copy_from_slice(&session.id);
        self.bytes[self.number_at..].copy_from_slice(&session.number.to_le_bytes());
        if has_number { &self.bytes } else { &self.bytes[..self.number_field_at] }
    }
}

/// Where the first field's name begins in a document: behind its length and the field's type.
const NAME_START: usize = 4 + 1;

impl InSessions {
    /// Puts the session into the request that begins at `start`, and the next number of it where the request writes.
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
        // Its session may be in any state: the next request has another one.
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
