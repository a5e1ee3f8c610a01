//! The stored forms of a write history: a value that the store remembers, or a document.
//!
//! ```text
//! "s" session -> own, number, statements
//! {s: session, n: number, i: statements, o: outcome}
//! ```
//! The session is its UUID, followed by the digest of its user if it has one. `own` and the number have 8 bytes each.
//! `own` tells the session from a later one with the same UUID. Statements are pairs of 32-bit integers: the first and
//! the last number of a range. `o` is missing for [`Outcome::One`].

use super::{NOBODY, Outcome, SessionName};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::Batch;

/// Consecutive statements: the first and the last.
pub(super) type Range = (i32, i32);

pub(super) struct WriteRecord {
    pub session: SessionName,
    pub number: i64,
    pub ranges: Vec<Range>,
    pub outcome: Outcome,
}

/// Subtypes of binary values. Source: BSON specification.
const GENERIC: u8 = 0;
const UUID: u8 = 4;

/// Length of a record with one range and the usual outcome, for a session without a user.
const BYTES_USUAL: usize = 56;

/// Maximum number of ranges of a remembered value, which every checkpoint writes.
pub(super) const RANGES_REMEMBERED_MAX: usize = 4;
/// First byte of the key of a remembered value.
const KEY_START: u8 = b's';
const RANGE_BYTES: usize = size_of::<Range>();

/// The key by which a session's value is remembered.
struct SessionKey {
    bytes: [u8; 1 + size_of::<SessionName>()],
    length: usize,
}

impl SessionKey {
    pub fn of(session: SessionName) -> Self {
        let mut bytes = [KEY_START; _];
        let mut length = 1;
        // A session without a user omits the digest.
        for part in [&session.id[..], if session.user == NOBODY { &[] } else { &session.user }] {
            bytes[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        Self { bytes, length }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A session's remembered value.
#[derive(Debug, PartialEq)]
pub(super) struct SessionValue {
    pub session: SessionName,
    pub own: u64,
    pub number: i64,
    pub ranges: Vec<Range>,
}

/// Has the store remember that statements were done, each with the usual outcome, in at most [`RANGES_REMEMBERED_MAX`]
/// ranges.
pub(super) fn remember(
    batch: &mut Batch<'_>,
    (session, own): (SessionName, u64),
    number: i64,
    ranges: impl Iterator<Item = Range>,
) {
    let mut value = [0; 16 + RANGES_REMEMBERED_MAX * RANGE_BYTES];
    value[..8].copy_from_slice(&own.to_le_bytes());
    value[8..16].copy_from_slice(&number.to_le_bytes());
    let mut length = 16;
    for (first, last) in ranges {
        value[length..length + 4].copy_from_slice(&first.to_le_bytes());
        value[length + 4..length + 8].copy_from_slice(&last.to_le_bytes());
        length += RANGE_BYTES;
    }
    batch.remember(SessionKey::of(session).as_bytes(), &value[..length]);
}

/// Has the store forget a session's value, unless the value belongs to another session with the same name.
pub(super) fn forget(batch: &mut Batch<'_>, (session, own): (SessionName, u64)) {
    batch.forget(SessionKey::of(session).as_bytes(), &own.to_le_bytes());
}

/// Reads a value that [`remember`] wrote; `None` for any other key or value.
pub(super) fn remembered(key: &[u8], value: &[u8]) -> Option<SessionValue> {
    let (&KEY_START, session) = key.split_first()? else { return None };
    let (own, rest) = value.split_first_chunk()?;
    let (number, ranges) = rest.split_first_chunk()?;
    let (own, number) = (u64::from_le_bytes(*own), i64::from_le_bytes(*number));
    Some(SessionValue { session: session_of(session)?, own, number, ranges: ranges_of(ranges) })
}

fn ranges_of(bytes: &[u8]) -> Vec<Range> {
    let (pairs, _) = bytes.as_chunks::<RANGE_BYTES>();
    let range = |pair: &[u8; RANGE_BYTES]| {
        let pair = u64::from_le_bytes(*pair);
        (pair as i32, (pair >> 32) as i32)
    };
    pairs.iter().map(range).collect()
}

pub(super) fn encode(session: SessionName, number: i64, ranges: &Ranges, outcome: &Outcome) -> DocumentBuf {
    let outcome = outcome.encode();
    // A session without a user omits the digest.
    let user = if session.user == NOBODY { &[][..] } else { &session.user };
    let more = (ranges.len().saturating_sub(1)) * 8
        + user.len()
        + outcome.as_ref().map_or(0, |outcome| 3 + outcome.len_bytes());
    // The record is assembled in one allocation of its final size.
    let mut bytes = Vec::with_capacity(BYTES_USUAL + more);
    bytes.extend_from_slice(&((BYTES_USUAL + more) as i32).to_le_bytes());
    bytes.extend_from_slice(b"\x05s\0");
    bytes.extend_from_slice(&((session.id.len() + user.len()) as i32).to_le_bytes());
    bytes.push(if user.is_empty() { UUID } else { GENERIC });
    bytes.extend_from_slice(&session.id);
    bytes.extend_from_slice(user);
    bytes.extend_from_slice(b"\x12n\0");
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(b"\x05i\0");
    bytes.extend_from_slice(&((ranges.len() * 8) as i32).to_le_bytes());
    bytes.push(0);
    for (first, last) in ranges.iter() {
        bytes.extend_from_slice(&first.to_le_bytes());
        bytes.extend_from_slice(&last.to_le_bytes());
    }
    if let Some(outcome) = outcome {
        bytes.extend_from_slice(b"\x03o\0");
        bytes.extend_from_slice(outcome.as_ref().as_bytes());
    }
    bytes.push(0);
    debug_assert_eq!(bytes.len(), BYTES_USUAL + more);
    DocumentBuf::from_trusted(bytes)
}

impl WriteRecord {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let document = DocumentRef::trusted(bytes);
        let session = match document.get("s") {
            Some(ValueRef::Binary { bytes, .. }) => session_of(bytes),
            _ => None,
        };
        let (Some(session), Some(ValueRef::Int64(number)), Some(ValueRef::Binary { bytes, .. })) =
            (session, document.get("n"), document.get("i"))
        else {
            let message = "a record of the write histories lacks 's', 'n' or 'i'";
            return Err(Failure::new(ErrorCode::INTERNAL_ERROR, message));
        };
        let outcome = Outcome::decode(document.get("o").and_then(ValueRef::as_document));
        Ok(Self { session, number, ranges: ranges_of(bytes), outcome })
    }
}

fn session_of(bytes: &[u8]) -> Option<SessionName> {
    let (id, user) = bytes.split_first_chunk()?;
    let user = if user.is_empty() { NOBODY } else { user.try_into().ok()? };
    Some(SessionName { id: *id, user })
}

/// Statements in the order in which they were done, with consecutive ones as a range. A single range, the usual case,
/// needs no allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    first: Option<Range>,
    more: Vec<Range>,
}

impl Ranges {
    /// One statement.
    pub fn one(statement: i32) -> Self {
        Self { first: Some((statement, statement)), more: Vec::new() }
    }

    /// Adds the statement that was done next.
    pub fn add(&mut self, statement: i32) {
        match self.more.last_mut().or(self.first.as_mut()) {
            Some((_, last)) if last.checked_add(1) == Some(statement) => *last = statement,
            Some(_) => self.more.push((statement, statement)),
            None => self.first = Some((statement, statement)),
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.first = None;
        self.more.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        self.first.into_iter().chain(self.more.iter().copied())
    }
}

impl FromIterator<i32> for Ranges {
    fn from_iter<T: IntoIterator<Item = i32>>(statements: T) -> Self {
        let mut ranges = Self::default();
        statements.into_iter().for_each(|statement| ranges.add(statement));
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Did, Image};
    use super::*;
    use bunko_bson::Value;
    use bunko_store::Statement;

    #[test]
    fn a_record_comes_back() {
        let returned = DocumentBuf::new().with("_id", 5);
        for (outcome, user) in [
            (Outcome::One, NOBODY),
            (Outcome::Upserted(Value::Int32(7)), NOBODY),
            (Outcome::Returned { value: Some(returned), upserted: None, did: Some(Did::Removed) }, [7; 32]),
            (Outcome::Returned { value: None, upserted: None, did: Some(Did::Updated(Image::Before)) }, NOBODY),
            (Outcome::Returned { value: None, upserted: None, did: Some(Did::Updated(Image::After)) }, NOBODY),
            (Outcome::Returned { value: None, upserted: Some(Value::Int32(7)), did: None }, [8; 32]),
        ] {
            let session = SessionName { id: [9; 16], user };
            let ranges: Ranges = [0, 1, 2, 7, i32::MAX].into_iter().collect();
            let document = encode(session, 1 << 40, &ranges, &outcome);
            let document = DocumentBuf::parse(document.into_bytes()).expect("well formed");
            let record = WriteRecord::decode(document.as_ref().as_bytes()).expect("a record");
            assert_eq!((record.session, record.number), (session, 1 << 40));
            assert_eq!(record.ranges, [(0, 2), (7, 7), (i32::MAX, i32::MAX)]);
            assert_eq!(
                record.outcome.encode().map(DocumentBuf::into_bytes),
                outcome.encode().map(DocumentBuf::into_bytes)
            );
        }
    }

    #[test]
    fn remembered_statements_are_read_back() {
        for user in [NOBODY, [7; 32]] {
            let session = SessionName { id: [9; 16], user };
            let ranges: Ranges = [0, 1, 2, 7, i32::MAX, i32::MIN].into_iter().collect();
            assert_eq!(ranges.len(), RANGES_REMEMBERED_MAX);
            let mut batch = Batch::new();
            remember(&mut batch, (session, 77), 1 << 40, ranges.iter());
            forget(&mut batch, (session, 77));
            let said: Vec<_> = batch.noted().collect();
            let [Statement::Remember { key, value }, Statement::Forget { key: again, start }] = said[..] else {
                panic!("{said:?}")
            };
            assert_eq!(again, key);
            assert!(value.starts_with(start));
            let ranges: Vec<_> = ranges.iter().collect();
            assert_eq!(remembered(key, value), Some(SessionValue { session, own: 77, number: 1 << 40, ranges }));
            assert_eq!((remembered(b"other", value), remembered(key, b"cut")), (None, None));
        }
    }

    #[test]
    fn consecutive_statements_are_one_range() {
        let mut ranges: Ranges = [0, 1, 2, 5, 6, 4, i32::MAX].into_iter().collect();
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(0, 2), (5, 6), (4, 4), (i32::MAX, i32::MAX)]);
        ranges.clear();
        ranges.add(3);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(3, 3)]);
    }
}
