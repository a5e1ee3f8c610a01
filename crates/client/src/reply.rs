//! Tells successful replies from failed ones, cheaply.

use crate::CommandError;
use bunko_bson::{DocumentRef, ValueRef};

/// Replies longer than this carry documents and hardly ever repeat, so they are not kept for comparison.
const REMEMBERED_BYTES_MAX: usize = 256;

/// A reply that reports success.
#[derive(Clone, Copy)]
pub struct Reply<'a> {
    /// The reply as the server sent it; its contents are not validated.
    pub document: DocumentRef<'a>,
    /// Its `n`: documents inserted or matched; 0 where it has none.
    pub n: i64,
}

/// Checks that `ok` is 1 and that there are neither `writeErrors` nor a `writeConcernError`.
/// # Errors
/// The server's error; the first one of several write errors.
pub fn check_reply(document: DocumentRef<'_>) -> Result<Reply<'_>, CommandError> {
    let (mut ok, mut n, mut failure) = (None, 0, None);
    for element in document {
        match element.name {
            "ok" => ok = as_f64(element.value),
            "n" => n = as_f64(element.value).unwrap_or(0.0) as i64,
            "writeErrors" => failure = element.value.as_array().and_then(|errors| errors.get(0)),
            "writeConcernError" => failure = failure.or(Some(element.value)),
            _ => {}
        }
    }
    match (ok, failure.and_then(ValueRef::as_document)) {
        (None, _) => Err(CommandError::unreadable(document)),
        (Some(1.0), None) => Ok(Reply { document, n }),
        (Some(_), Some(failure)) => Err(CommandError::read(failure)),
        (Some(_), None) => Err(CommandError::read(document)),
    }
}

fn as_f64(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Double(number) => Some(number),
        ValueRef::Int32(number) => Some(number.into()),
        ValueRef::Int64(number) => Some(number as f64),
        ValueRef::Boolean(boolean) => Some(boolean.into()),
        _ => None,
    }
}

/// [`check_reply`] for a stream of replies that mostly repeat: a repeated reply costs one comparison of its bytes.
#[derive(Default)]
pub struct ReplyChecker {
    good: Vec<u8>,
    good_n: i64,
}

impl ReplyChecker {
    /// As [`check_reply`].
    /// # Errors
    /// As [`check_reply`].
    pub fn check<'a>(&mut self, document: DocumentRef<'a>) -> Result<Reply<'a>, CommandError> {
        if document.as_bytes() == self.good {
            return Ok(Reply { document, n: self.good_n });
        }
        let reply = check_reply(document)?;
        if document.len_bytes() <= REMEMBERED_BYTES_MAX {
            self.good.clear();
            self.good.extend_from_slice(document.as_bytes());
            self.good_n = reply.n;
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{ArrayBuf, DocumentBuf};

    #[test]
    fn repeated_replies_keep_their_count_and_bad_ones_are_never_remembered() {
        let mut checker = ReplyChecker::default();
        let good = DocumentBuf::new().with("n", 3_i32).with("ok", 1.0);
        let bad = DocumentBuf::new().with("ok", 0.0).with("errmsg", "no").with("code", 13_i32);
        for _ in 0..2 {
            assert_eq!(checker.check(good.as_ref()).map(|reply| reply.n).ok(), Some(3));
            assert_eq!(checker.check(bad.as_ref()).err().map(|error| error.code), Some(13));
        }
    }

    #[test]
    fn write_errors_inside_a_good_reply_count() {
        let error = DocumentBuf::new().with("index", 0_i32).with("code", 11000_i32).with("errmsg", "E11000");
        let errors: ArrayBuf = [&error].into_iter().collect();
        let reply = DocumentBuf::new().with("n", 0_i32).with("writeErrors", &errors).with("ok", 1.0);
        assert_eq!(check_reply(reply.as_ref()).err().map(|error| error.code), Some(11000));
        let reply = DocumentBuf::new().with("writeConcernError", &error).with("ok", 1.0);
        assert_eq!(check_reply(reply.as_ref()).err().map(|error| error.code), Some(11000));
        assert!(check_reply(DocumentRef::EMPTY).is_err());
    }
}
