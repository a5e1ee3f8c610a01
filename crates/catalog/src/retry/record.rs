//! The document that a retryable write leaves.
//!
//! ```text
//! {s: UUID of the session, n: number, i: statements, o: outcome}
//! ```
//! `i` has pairs of 32-bit integers, the first and the last of consecutive statements; `o` is missing where it is
//! [`Outcome::One`].

use super::{Outcome, SessionUuid};
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// Consecutive statements: the first and the last.
pub(super) type Range = (i32, i32);

pub(super) struct WriteRecord {
    pub session: SessionUuid,
    pub number: i64,
    pub ranges: Vec<Range>,
    pub outcome: Outcome,
}

pub(super) fn encode(session: SessionUuid, number: i64, ranges: &[Range], outcome: &Outcome) -> DocumentBuf {
    let mut statements = Vec::with_capacity(ranges.len() * 8);
    for (first, last) in ranges {
        statements.extend_from_slice(&first.to_le_bytes());
        statements.extend_from_slice(&last.to_le_bytes());
    }
    let mut document = DocumentBuf::new()
        .with("s", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &session })
        .with("n", number)
        .with("i", ValueRef::Binary { subtype: BinarySubtype::GENERIC, bytes: &statements });
    if let Some(outcome) = outcome.encode() {
        document.append("o", &outcome);
    }
    document
}

impl WriteRecord {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let document = DocumentRef::trusted(bytes);
        let session = match document.get("s") {
            Some(ValueRef::Binary { bytes, .. }) => bytes.try_into().ok(),
            _ => None,
        };
        let (Some(session), Some(ValueRef::Int64(number)), Some(ValueRef::Binary { bytes, .. })) =
            (session, document.get("n"), document.get("i"))
        else {
            let message = "a record of the write histories lacks 's', 'n' or 'i'";
            return Err(Failure::new(ErrorCode::INTERNAL_ERROR, message));
        };
        let (pairs, _) = bytes.as_chunks::<8>();
        let range = |pair: &[u8; 8]| {
            let pair = u64::from_le_bytes(*pair);
            (pair as i32, (pair >> 32) as i32)
        };
        let outcome = Outcome::decode(document.get("o").and_then(ValueRef::as_document));
        Ok(Self { session, number, ranges: pairs.iter().map(range).collect(), outcome })
    }
}

/// Statements as ranges, in the order in which they were done.
pub(super) fn ranges_of(statements: &[i32]) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for statement in statements {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*statement) => *last = *statement,
            _ => ranges.push((*statement, *statement)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::Value;

    #[test]
    fn a_record_comes_back() {
        let returned = DocumentBuf::new().with("_id", 5);
        for outcome in [
            Outcome::One,
            Outcome::Upserted(Value::Int32(7)),
            Outcome::Returned { value: Some(returned), upserted: None },
            Outcome::Returned { value: None, upserted: Some(Value::Int32(7)) },
        ] {
            let document = encode([9; 16], 1 << 40, &[(0, 5), (-3, i32::MAX)], &outcome);
            let record = WriteRecord::decode(document.as_ref().as_bytes()).expect("well formed");
            assert_eq!((record.session, record.number), ([9; 16], 1 << 40));
            assert_eq!(record.ranges, [(0, 5), (-3, i32::MAX)]);
            assert_eq!(
                record.outcome.encode().map(DocumentBuf::into_bytes),
                outcome.encode().map(DocumentBuf::into_bytes)
            );
        }
    }

    #[test]
    fn consecutive_statements_are_one_range() {
        assert_eq!(ranges_of(&[0, 1, 2, 5, 6, 4, i32::MAX]), [(0, 2), (5, 6), (4, 4), (i32::MAX, i32::MAX)]);
    }
}
