//! Resume tokens: positions in the log, in the format of MongoDB's tokens.
//!
//! A token is a string of hexadecimal digits: the bytes of a key, so that tokens sort in the order of their events. The
//! key has the time, the version of the format, the kind of token, the number within a transaction, whether it follows
//! an invalidation, the collection's UUID and the identity of the event. A token without an event, a *high-water mark*,
//! sorts before all events of its time.
//! Source: the tokens that MongoDB 8.0 gives to clients.

use crate::token_key::{BINARY, END, FALSE, NULL, OBJECT, OBJECT_ID, Part, Parts, STRING, TIMESTAMP, TRUE, parts};
use bunko_bson::key_string::{Direction, append};
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, Timestamp, ValueRef, Writer, hexadecimal};
use bunko_errors::{ErrorCode, Failure, Result};
use std::ops::Range;

/// Version 2 of the token format, as a number in a key.
const VERSION: [u8; 2] = [0x2b, 0x04];
/// The number 0: in high-water marks, and in events outside transactions.
const ZERO: u8 = 0x29;
/// The kind of an event's token, 128, as a number in a key.
const EVENT: [u8; 3] = [0x2c, 0x01, 0x00];
/// [`END`] as hexadecimal digits.
const END_DIGITS: &str = "04";
/// The rest of a high-water mark after the version: kind and number 0, no invalidation, no collection.
const HIGH_WATER: [u8; 4] = [ZERO, ZERO, FALSE, NULL];
/// Begins a number from 1 to 63, whose double follows in one byte. Each higher type byte means one byte more.
const SMALL_NUMBER: u8 = 0x2b;
/// The kinds of token: without an event, and with one.
const HIGH_WATER_KIND: i32 = 0;
const EVENT_KIND: i32 = 128;
/// The newest format. Version 0 has no kind of token, and versions 0 and 1 need no collection.
const VERSION_MAX: i32 = 2;
/// Most event keys are not longer than this, in bytes.
const KEY_BYTES: usize = 160;
/// Maximum number of fragments of an event: numbers whose double fits into one byte.
pub(crate) const FRAGMENTS_MAX: u8 = 64;
/// The field of a token with the digits.
const DATA: &str = "_data";
/// The field of a token with type bits, which tell numbers of equal value apart. No token here needs them.
const TYPE_BITS: &str = "_typeBits";

/// A token that a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub at: Timestamp,
    pub is_high_water: bool,
    /// Whether this is an invalidation's token.
    pub is_invalidate: bool,
    /// The number of a fragment of a large event, from 0.
    pub fragment: Option<u8>,
    /// The digits as sent; `None` unless this is a fragment's token.
    of_fragment: Option<String>,
    /// The digits as sent, without the fragment's number. After the end there may be anything, and the end may be
    /// missing.
    data: String,
}

/// Everything that identifies an event besides its time.
#[derive(Clone, Copy)]
pub(crate) struct Identity<'e> {
    /// The event's number within its transaction; 0 outside transactions.
    pub number: u64,
    pub uuid: Option<&'e [u8]>,
    pub operation: &'e str,
    /// The `_id` in `documentKey`, if the event is about a document.
    pub id: Option<ValueRef<'e>>,
}

/// The high-water mark that says that all events before a time were returned.
pub(crate) fn high_water(at: Timestamp) -> DocumentBuf {
    let mut bytes = Vec::with_capacity(32);
    put_beginning(&mut bytes, at);
    bytes.extend(HIGH_WATER);
    bytes.push(END);
    encoded(&bytes)
}

/// The token of an event, or of the invalidation after it.
pub(crate) fn of_event(at: Timestamp, identity: Identity<'_>, is_invalidate: bool) -> DocumentBuf {
    encoded(&key_of_event(at, identity, is_invalidate))
}

/// Writes an event's token as the `_id` of the event.
pub(crate) fn put_event_token(at: Timestamp, identity: Identity<'_>, event: &mut Writer<'_>) {
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
            bytes.extend([BINARY, uuid.len() as u8, BinarySubtype::UUID]);
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

/// The token of a fragment, from its event's token.
pub(crate) fn of_fragment(event: DocumentRef<'_>, number: u8) -> DocumentBuf {
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

fn put_name(bytes: &mut Vec<u8>, kind: u8, name: &str) {
    bytes.push(kind);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(0);
}

fn encoded(bytes: &[u8]) -> DocumentBuf {
    let digits = hexadecimal::capital(bytes);
    DocumentBuf::with_capacity(digits.len() + 24).with(DATA, digits.as_str())
}

/// A token from a client with its digits not yet decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenToken<'c> {
    data: &'c str,
}

impl<'c> GivenToken<'c> {
    /// Takes the digits out of a token's document.
    /// # Errors
    /// 40647 if the digits are not a string, 40648 if the type bits are not binary. Other fields are ignored.
    pub fn parse(token: DocumentRef<'c>) -> Result<Self> {
        let Some(ValueRef::String(data)) = token.get(DATA) else {
            let message = "Bad resume token: _data of missing or of wrong type";
            return Err(Failure::new(ErrorCode(40647), message));
        };
        match token.get(TYPE_BITS) {
            None | Some(ValueRef::Binary { subtype: BinarySubtype::GENERIC, .. }) => Ok(Self { data }),
            Some(_) => Err(Failure::new(ErrorCode(40648), "Bad resume token: _typeBits of wrong type")),
        }
    }

    /// Decodes the digits.
    /// # Errors
    /// `FailedToParse` if the text is not hexadecimal digits, `Overflow` and 50811 if they are not a key, and others if
    /// the key is not a token's.
    pub fn read(self) -> Result<Token> {
        let bytes = decoded(self.data)
            .ok_or_else(|| Failure::failed_to_parse("the resume token is not text of hexadecimal digits"))?;
        Token::of_parts(&bytes, &parts(&bytes)?, self.data)
    }
}

impl Token {
    /// Checks all parts of a token except the identity of the event, which [`Self::is`] compares.
    fn of_parts(bytes: &[u8], parts: &Parts<'_>, data: &str) -> Result<Self> {
        let mut values = parts.values.iter();
        let head = Head::of_values(&mut values)?;
        let Head { at, version, is_high_water, is_invalidate } = head;
        let data = data.to_ascii_uppercase();
        let mut token = Self { at, is_high_water, is_invalidate, fragment: None, of_fragment: None, data };
        if !head.check_event(&mut values)? {
            return Ok(token);
        }
        let fragment = match values.next() {
            None if parts.is_left_open => fragment_at_end(bytes),
            None => None,
            Some((Part::Integer(number @ 0..), place)) if version == VERSION_MAX => {
                Some((u8::try_from(*number).unwrap_or(u8::MAX), place.clone()))
            }
            Some(_) if version == VERSION_MAX => {
                return Err(refused(7_182_501, "the resume token's number of a fragment is not an integer from 0 on"));
            }
            Some(_) => return Err(refused(40646, "the resume token has more values than it may")),
        };
        if values.next().is_some() {
            return Err(refused(40646, "the resume token has more values than it may"));
        }
        if let Some((number, place)) = fragment {
            token.fragment = Some(number);
            token.of_fragment = Some(token.data.clone());
            token.data.replace_range(2 * place.start..2 * place.end, "");
        }
        Ok(token)
    }

    /// Whether this is the event's token, or the token of one of its fragments.
    pub fn is(&self, token: DocumentRef<'_>) -> bool {
        let rest = identity(token).and_then(|identity| self.data.strip_prefix(identity));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(END_DIGITS))
    }

    /// Whether this token is only the beginning of the event's token.
    pub fn is_cut_from(&self, token: DocumentRef<'_>) -> bool {
        identity(token).is_some_and(|identity| identity.len() > self.data.len() && identity.starts_with(&self.data))
    }

    /// The token as the client sent it.
    pub fn to_document(&self) -> DocumentBuf {
        DocumentBuf::new().with(DATA, self.of_fragment.as_ref().unwrap_or(&self.data).as_str())
    }
}

/// The values of a key in their order, each with its byte range.
type Values<'p, 'k> = std::slice::Iter<'p, (Part<'k>, Range<usize>)>;

/// The values of a token before its collection.
struct Head {
    at: Timestamp,
    version: i32,
    is_high_water: bool,
    is_invalidate: bool,
}

impl Head {
    fn of_values(values: &mut Values<'_, '_>) -> Result<Self> {
        let mut next = |code, missing| values.next().map(|(part, _)| *part).ok_or_else(|| refused(code, missing));
        let at = match next(40649, "the resume token is empty")? {
            Part::Timestamp(time) => time,
            _ => Timestamp { seconds: 0, increment: 0 },
        };
        let version = match next(50796, "the resume token has no version")? {
            Part::Integer(version @ 0..=VERSION_MAX) => version,
            Part::Integer(_) => return Err(refused(50795, "the resume token's version is none of 0, 1 and 2")),
            _ => return Err(refused(50854, "the resume token's version is not an integer")),
        };
        let is_high_water = version > 0
            && match next(51055, "the resume token does not say which kind it is")? {
                Part::Integer(kind @ (HIGH_WATER_KIND | EVENT_KIND)) => kind == HIGH_WATER_KIND,
                Part::Integer(kind) => {
                    return Err(refused(51057, &format!("the resume token is of the unknown kind {kind}")));
                }
                _ => return Err(refused(51056, "the kind of the resume token is not an integer")),
            };
        match next(50793, "the resume token has no number within a transaction")? {
            Part::Integer(0..) => {}
            Part::Integer(_) => {
                return Err(refused(50794, "the resume token's number within a transaction is below 0"));
            }
            _ => return Err(refused(50855, "the resume token's number within a transaction is not an integer")),
        }
        let is_invalidate = version > 0
            && match next(50872, "the resume token does not say whether an 'invalidate' gave it")? {
                Part::Boolean(flag) => flag,
                _ => return Err(refused(50870, "the resume token's mark of an 'invalidate' is not a boolean")),
            };
        Ok(Self { at, version, is_high_water, is_invalidate })
    }

    /// Checks the collection and the event, and returns whether there is an event.
    fn check_event(&self, values: &mut Values<'_, '_>) -> Result<bool> {
        match values.next().map(|(part, _)| part) {
            None if self.version < VERSION_MAX => return Ok(false),
            None => return Err(refused(6_189_500, "the resume token names no collection")),
            Some(Part::Null) => {}
            Some(Part::Binary { subtype: BinarySubtype::UUID, bytes }) if bytes.len() == 16 => {}
            Some(_) => {
                let message = "the collection of the resume token is not a UUID";
                return Err(Failure::new(ErrorCode::INVALID_UUID, message));
            }
        }
        match values.next().map(|(part, _)| part) {
            None if self.is_high_water || self.version < VERSION_MAX => Ok(false),
            None => Err(refused(6_189_501, "the resume token of an event does not say which event")),
            Some(_) if self.is_high_water => {
                Err(refused(6_189_504, "the resume token belongs to no event, and yet says which event"))
            }
            Some(Part::Object) => Ok(true),
            Some(_) => Err(refused(6_189_503, "the event of the resume token is not a document")),
        }
    }
}

fn refused(code: i32, message: &str) -> Failure {
    Failure::new(ErrorCode(code), message)
}

/// The digits of an event's token without its end. No event's digits begin with another event's, because inner objects
/// end with a zero byte.
fn identity(token: DocumentRef<'_>) -> Option<&str> {
    token.get(DATA)?.as_str()?.strip_suffix(END_DIGITS)
}

/// A fragment's number at the end of a key, with its byte range. The identity of an event ends with a zero byte, and a
/// doubled number has no zero byte.
fn fragment_at_end(key: &[u8]) -> Option<(u8, Range<usize>)> {
    let end = key.len().checked_sub(1)?;
    match key {
        [.., 0, ZERO, END] => Some((0, end - 1..end)),
        [.., 0, SMALL_NUMBER, double, END] if double.is_multiple_of(2) && *double <= 126 => {
            Some((double / 2, end - 2..end))
        }
        _ => None,
    }
}

fn decoded(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.as_bytes().chunks_exact(2);
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
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
            let parse = |digits: &str| GivenToken { data: digits }.read();
            assert!(parse(&digits).expect("whole").is(token.as_ref()));
            // A token whose end is missing, or that has more bytes after it, matches too.
            for same in [digits[..digits.len() - 2].to_owned(), format!("{digits}FF"), format!("{digits}00")] {
                assert!(parse(&same).expect("tolerated").is(token.as_ref()), "{same}");
            }
            for end in 0..digits.len() - 3 {
                match parse(&digits[..end]) {
                    Ok(parsed) => assert!(parsed.is_cut_from(token.as_ref()) && !parsed.is(token.as_ref()), "{end}"),
                    Err(failure) => assert_ne!(failure.code(), ErrorCode::INVALID_RESUME_TOKEN, "{end}: {failure}"),
                }
            }
        }
    }
}
