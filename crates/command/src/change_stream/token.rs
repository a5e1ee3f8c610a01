//! Resume tokens: a place in the log, as MongoDB's tokens have it.
//!
//! A token is a string of hexadecimal digits, the bytes of a key, so that tokens compare as their events came: the time,
//! the version of the format, the kind of token, the number within a transaction, whether it follows an invalidation, the
//! collection's UUID and what identifies the event. One of no event, a *high-water mark*, sorts before all events of its time.
//! Source: the tokens that MongoDB 8.0 gives to clients.

use bunko_bson::key_string::{Direction, append};
use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef, Writer, hexadecimal};
use bunko_errors::{ErrorCode, Failure, Result};

/// Begins a timestamp.
const TIMESTAMP: u8 = 0x82;
/// Version 2 of tokens.
const VERSION: [u8; 2] = [0x2b, 0x04];
/// A number 0: of high-water marks, and of what is in no transaction.
const ZERO: u8 = 0x29;
/// The kind of token that events have, 128.
const EVENT: [u8; 3] = [0x2c, 0x01, 0x00];
const FALSE: u8 = 0x6e;
const TRUE: u8 = 0x6f;
const NULL: u8 = 0x14;
const BINARY: u8 = 0x5a;
const OBJECT: u8 = 0x46;
const STRING: u8 = 0x3c;
const OBJECT_ID: u8 = 0x64;
const END: u8 = 0x04;
/// [`END`] as a client sees it.
const END_DIGITS: &str = "04";
/// What follows the version in a high-water mark: no number, no invalidation, no collection.
const HIGH_WATER: [u8; 4] = [ZERO, ZERO, FALSE, NULL];
/// Begins a number from 1 to 63, whose double follows in one byte; each one more begins one with a byte more.
const SMALL_NUMBER: u8 = 0x2b;
/// Most bytes of a number within a transaction.
const NUMBER_BYTES_MAX: usize = 4;
/// What most keys of events take at most.
const KEY_BYTES: usize = 160;
/// Most fragments of an event: those whose numbers take a byte.
pub(super) const FRAGMENTS_MAX: u8 = 64;
/// The name under which a client sees the digits.
const DATA: &str = "_data";

/// A token that a client brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub at: Timestamp,
    pub is_high_water: bool,
    /// Whether it is that of an invalidation.
    pub is_invalidate: bool,
    /// Which fragment of a large event it is that of, from 0.
    pub fragment: Option<u8>,
    /// As it came, but for the fragment. Behind the end there may be anything, and the end itself may be missing.
    data: String,
}

/// What identifies an event besides its time.
#[derive(Clone, Copy)]
pub(super) struct Identity<'e> {
    /// The number within its transaction.
    pub number: u64,
    pub uuid: Option<&'e [u8]>,
    pub operation: &'e str,
    /// The `_id` that makes up `documentKey`, where the event is one of a document.
    pub id: Option<ValueRef<'e>>,
}

/// The mark that says that all before a time has been told.
pub(super) fn high_water(at: Timestamp) -> DocumentBuf {
    let mut bytes = Vec::with_capacity(32);
    put_beginning(&mut bytes, at);
    bytes.extend(HIGH_WATER);
    bytes.push(END);
    encoded(&bytes)
}

/// That of an event, or of the invalidation behind it.
pub(super) fn of_event(at: Timestamp, identity: Identity<'_>, is_invalidate: bool) -> DocumentBuf {
    encoded(&key_of_event(at, identity, is_invalidate))
}

/// Writes that of an event as its `_id`.
pub(super) fn put_event_token(at: Timestamp, identity: Identity<'_>, event: &mut Writer<'_>) {
    let digits = hexadecimal::capital(&key_of_event(at, identity, false));
    event.begin_document("_id").append(DATA, digits.as_str()).end();
}

fn key_of_event(at: Timestamp, identity: Identity<'_>, is_invalidate: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(KEY_BYTES);
    put_beginning(&mut bytes, at);
    bytes.extend(EVENT);
    put_number(&mut bytes, identity.number);
    bytes.push(if is_invalidate { TRUE } else { FALSE });
    match identity.uuid {
        None => bytes.push(NULL),
        Some(uuid) => {
            bytes.extend([BINARY, uuid.len() as u8, bunko_bson::BinarySubtype::UUID]);
            bytes.extend_from_slice(uuid);
        }
    }
    bytes.push(OBJECT);
    put_name(&mut bytes, STRING, "operationType");
    bytes.push(STRING);
    bytes.extend_from_slice(identity.operation.as_bytes());
    bytes.push(0);
    if let Some(id) = identity.id {
        put_name(&mut bytes, OBJECT, "documentKey");
        bytes.push(OBJECT);
        match id {
            ValueRef::ObjectId(id) => {
                put_name(&mut bytes, OBJECT_ID, "_id");
                bytes.push(OBJECT_ID);
                bytes.extend_from_slice(&id.0);
            }
            other => append(&mut bytes, other, Direction::Ascending),
        }
        bytes.push(0);
    }
    bytes.extend([0, END]);
    bytes
}

/// That of a fragment of an event, from the event's own.
pub(super) fn of_fragment(event: DocumentRef<'_>, number: u8) -> DocumentBuf {
    let mut bytes = event.get(DATA).and_then(ValueRef::as_str).and_then(decoded).unwrap_or_default();
    bytes.pop();
    match number {
        0 => bytes.push(ZERO),
        number => bytes.extend([SMALL_NUMBER, 2 * number]),
    }
    bytes.push(END);
    encoded(&bytes)
}

fn put_beginning(bytes: &mut Vec<u8>, at: Timestamp) {
    bytes.push(TIMESTAMP);
    bytes.extend(at.seconds.to_be_bytes());
    bytes.extend(at.increment.to_be_bytes());
    bytes.extend(VERSION);
}

fn put_number(bytes: &mut Vec<u8>, number: u64) {
    let double = (2 * number).to_be_bytes();
    let digits = &double[double.iter().take_while(|byte| **byte == 0).count()..];
    match digits.len() {
        0 => bytes.push(ZERO),
        length => bytes.push(SMALL_NUMBER + length as u8 - 1),
    }
    bytes.extend_from_slice(digits);
}

/// What follows a number; `None` where none stands there.
fn behind_number(bytes: &[u8]) -> Option<&[u8]> {
    let (&kind, rest) = bytes.split_first()?;
    let length = match kind {
        ZERO => return Some(rest),
        kind => 1 + usize::from(kind.checked_sub(SMALL_NUMBER)?),
    };
    let (digits, rest) = rest.split_at_checked(length).filter(|_| length <= NUMBER_BYTES_MAX)?;
    let is_shortest = digits[0] != 0 && digits[length - 1].is_multiple_of(2);
    is_shortest.then_some(rest)
}

fn put_name(bytes: &mut Vec<u8>, kind: u8, name: &str) {
    bytes.push(kind);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(0);
}

fn encoded(bytes: &[u8]) -> DocumentBuf {
    let digits = hexadecimal::capital(bytes);
    DocumentBuf::with_capacity(digits.len() + 24).with(DATA, digits.as_str())
}

impl Token {
    /// # Errors
    /// `InvalidResumeToken` for what no server has given.
    pub fn parse(token: DocumentRef<'_>) -> Result<Self> {
        // Other fields say nothing.
        let Some(ValueRef::String(data)) = token.get(DATA) else {
            return Err(invalid("Bad resume token: _data of missing or of wrong type"));
        };
        let bytes = decoded(data).ok_or_else(|| invalid("resume token string was not a valid hex string"))?;
        Self::of_bytes(&bytes, data)
    }

    /// What identifies the event is left to [`Self::is`], but for its beginning.
    fn of_bytes(bytes: &[u8], data: &str) -> Result<Self> {
        let (time, rest) = behind(bytes, &[TIMESTAMP])?.split_first_chunk::<8>().ok_or_else(cut)?;
        let time = u64::from_be_bytes(*time);
        let at = Timestamp { seconds: (time >> 32) as u32, increment: time as u32 };
        let rest = behind(rest, &VERSION)?;
        let mut data = data.to_ascii_uppercase();
        if rest.first() == Some(&ZERO) {
            behind(rest, &HIGH_WATER)?;
            return Ok(Self { at, is_high_water: true, is_invalidate: false, fragment: None, data });
        }
        let rest = behind(rest, &EVENT)?;
        let rest = behind_number(rest).ok_or_else(|| if rest.len() <= NUMBER_BYTES_MAX { cut() } else { changed() })?;
        let (&flag, rest) = rest.split_first().ok_or_else(cut)?;
        if !matches!(flag, TRUE | FALSE) {
            return Err(changed());
        }
        if rest.is_empty() {
            return Err(cut());
        }
        // What identifies the event ends with a zero; doubles of numbers are none.
        let (fragment, number_bytes) = match rest {
            [.., 0, ZERO, END] => (Some(0), 1),
            [.., 0, SMALL_NUMBER, double, END] if double.is_multiple_of(2) && *double <= 126 => (Some(double / 2), 2),
            _ => (None, 0),
        };
        // Without the digits of the number, and before those of the end.
        let number_at = data.len() - 2 * (1 + number_bytes);
        data.replace_range(number_at..number_at + 2 * number_bytes, "");
        Ok(Self { at, is_high_water: false, is_invalidate: flag == TRUE, fragment, data })
    }

    /// Whether it is that token of an event, or that of a fragment of it.
    pub fn is(&self, token: DocumentRef<'_>) -> bool {
        let rest = identity(token).and_then(|identity| self.data.strip_prefix(identity));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(END_DIGITS))
    }

    /// Whether it is only the beginning of that token.
    pub fn is_cut_from(&self, token: DocumentRef<'_>) -> bool {
        identity(token).is_some_and(|identity| identity.len() > self.data.len() && identity.starts_with(&self.data))
    }

    /// As the client gave it, but for the fragment.
    pub fn to_document(&self) -> DocumentBuf {
        DocumentBuf::new().with(DATA, self.data.as_str())
    }
}

/// The digits of an event's own token up to its end. None begins with another's: the objects inside end with a zero.
fn identity(token: DocumentRef<'_>) -> Option<&str> {
    token.get(DATA)?.as_str()?.strip_suffix(END_DIGITS)
}

/// What follows `expected`.
/// # Errors
/// `Overflow` where the bytes end within it, `InvalidResumeToken` where there are others.
fn behind<'b>(bytes: &'b [u8], expected: &[u8]) -> Result<&'b [u8]> {
    bytes.strip_prefix(expected).ok_or_else(|| if expected.starts_with(bytes) { cut() } else { changed() })
}

/// # Errors
/// Source: MongoDB's answers to tokens that were cut.
pub(super) fn cut() -> Failure {
    Failure::new(ErrorCode::OVERFLOW, "Bad resume token: it ends too early")
}

fn changed() -> Failure {
    invalid("Bad resume token: it was changed")
}

fn decoded(digits: &str) -> Option<Vec<u8>> {
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn invalid(message: &str) -> Failure {
    Failure::new(ErrorCode::INVALID_RESUME_TOKEN, message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::ObjectId;

    const AT: Timestamp = Timestamp { seconds: 0x6490_5ab1, increment: 7 };

    fn data(token: &DocumentBuf) -> String {
        token.as_ref().get(DATA).and_then(ValueRef::as_str).expect("digits").to_owned()
    }

    fn event(at: Timestamp, is_invalidate: bool) -> DocumentBuf {
        numbered(at, 0, is_invalidate)
    }

    fn numbered(at: Timestamp, number: u64, is_invalidate: bool) -> DocumentBuf {
        let id = Some(ObjectId([1; 12]).into());
        let identity = Identity { number, uuid: Some(&[2; 16]), operation: "insert", id };
        of_event(at, identity, is_invalidate)
    }

    #[test]
    fn tokens_look_as_mongodbs_do() {
        assert_eq!(data(&high_water(AT)), "8264905AB1000000072B0429296E1404");
        let expected = format!(
            "8264905AB1000000072B042C0100296E5A1004{}463C6F7065726174696F6E54797065003C696E736572740046646F63756D656E744B65\
             79004664 5F69640064{}000004",
            "02".repeat(16),
            "01".repeat(12)
        );
        assert_eq!(data(&event(AT, false)), expected.replace(' ', ""));
    }

    #[test]
    fn tokens_are_in_the_order_of_events_and_come_back() {
        let later = Timestamp { increment: 8, ..AT };
        let mut tokens = vec![high_water(AT), event(AT, false), event(AT, true)];
        tokens.extend([1, 2, 63, 64, 127, 128, 32_767, 32_768, 1 << 24].map(|number| numbered(AT, number, false)));
        tokens.extend([high_water(later), event(later, false)]);
        assert!(tokens.windows(2).all(|pair| data(&pair[0]) < data(&pair[1])));
        for token in &tokens {
            let digits = data(token);
            let parse = |digits: &str| Token::parse(DocumentBuf::new().with(DATA, digits).as_ref());
            assert!(parse(&digits).expect("whole").is(token.as_ref()));
            // Without its end, and with more behind it, it is the same.
            for same in [digits[..digits.len() - 2].to_owned(), format!("{digits}FF"), format!("{digits}00")] {
                assert!(parse(&same).expect("tolerated").is(token.as_ref()), "{same}");
            }
            for end in 0..digits.len() - 3 {
                match parse(&digits[..end]) {
                    Ok(parsed) => assert!(parsed.is_cut_from(token.as_ref()) && !parsed.is(token.as_ref()), "{end}"),
                    Err(failure) => assert!(matches!(failure.code().0, 15 | 260), "{end}: {failure}"),
                }
            }
        }
    }
}
