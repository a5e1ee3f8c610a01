//! `$_requestResumeToken`, `$_resumeAfter` and `$_startAt`: a find in record order, which a later find continues after
//! the record that `postBatchResumeToken` of a reply names.

use crate::hint_option::HintOption;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_catalog::Collection;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::Examined;
use bunko_query::{FindQuery, ResumableScan, ScanStart};
use bunko_request::fields::Fields;
use bunko_session::cursors::CursorSource;
use bunko_store::RecordId;

const REQUEST: &str = "$_requestResumeToken";
const RESUME_AFTER: &str = "$_resumeAfter";
const START_AT: &str = "$_startAt";
const RECORD_ID: &str = "$recordId";

/// The fields of a find about tokens.
#[derive(Clone, Copy)]
pub(super) struct Tokens<'a> {
    are_requested: bool,
    resume_after: Option<DocumentRef<'a>>,
    start_at: Option<DocumentRef<'a>>,
}

impl<'a> Tokens<'a> {
    /// # Errors
    /// `TypeMismatch`.
    pub(super) fn parse(fields: &Fields<'a>) -> Result<Self> {
        let given = |name| Ok::<_, Failure>(fields.document(name)?.filter(|token| !token.is_empty()));
        Ok(Self {
            are_requested: fields.boolean(REQUEST, false)?,
            resume_after: given(RESUME_AFTER)?,
            start_at: given(START_AT)?,
        })
    }

    /// The start of the scan of a find that asks for tokens; `None` for other finds.
    /// # Errors
    /// `BadValue` for another order than record order, for a token without a request for tokens, and for a malformed
    /// token.
    pub(super) fn start(self, hint: HintOption<'_>, sort: Option<DocumentRef<'_>>) -> Result<Option<ScanStart>> {
        if !self.are_requested {
            return match (self.resume_after, self.start_at) {
                (None, None) => Ok(None),
                (Some(_), _) => Err(bad("'requestResumeToken' must be true if 'resumeAfter' is specified")),
                (None, Some(_)) => Err(bad("'requestResumeToken' must be true if 'startAt' is specified")),
            };
        }
        if !hint.sent().is_some_and(is_order_of_records) {
            return Err(bad("hint must be {$natural:1} if 'requestResumeToken' is enabled"));
        }
        if sort.is_some_and(|sort| !is_order_of_records(sort.into())) {
            return Err(bad("sort must be unset or {$natural:1} if 'requestResumeToken' is enabled"));
        }
        match (self.resume_after, self.start_at) {
            (None, None) => Ok(Some(ScanStart::First)),
            (Some(token), None) => read(RESUME_AFTER, token).map(|record| Some(ScanStart::Behind(record))),
            // Record ids are positive, so a negative one means the position before the first record.
            (None, Some(token)) => read(START_AT, token)
                .map(|record| Some(ScanStart::BehindPlace(record.filter(|record| record.0.cast_signed() >= 0)))),
            (Some(_), Some(_)) => Err(bad("cannot specify both '$_resumeAfter' and '$_startAt'")),
        }
    }
}

/// Whether an order is `{$natural: 1}`.
fn is_order_of_records(order: ValueRef<'_>) -> bool {
    order
        .as_document()
        .is_some_and(|order| order.count() == 1 && order.get("$natural").and_then(number::as_i64_exact) == Some(1))
}

/// Reads the record id of a token; `None` if it is null.
fn read(name: &str, token: DocumentRef<'_>) -> Result<Option<RecordId>> {
    match token.get(RECORD_ID) {
        Some(ValueRef::Null) if token.count() == 1 => Ok(None),
        Some(ValueRef::Int64(record)) if token.count() == 1 => Ok(Some(RecordId(record.cast_unsigned()))),
        Some(ValueRef::Binary { .. }) if token.count() == 1 => {
            let message = "The '$_resumeAfter / $_startAt parameter must match collection type. Clustered collections \
                           only have BinData recordIds, and all other collections have Long recordId.";
            Err(Failure::new(ErrorCode(7_738_600), message))
        }
        _ => Err(bad(format!(
            "Malformed resume token: the '{name}' object must contain exactly one field named '{RECORD_ID}', of type \
             NumberLong, BinData or jstNULL."
        ))),
    }
}

/// Refuses a collection that does not show record ids as MongoDB does, and metadata that only a plan has.
/// # Errors
/// `CommandNotSupported`.
pub(super) fn check(collection: &Collection, query: &FindQuery) -> Result<()> {
    if collection.is_clustered() {
        return Err(unsupported("a clustered collection"));
    }
    if query.reads_what_plans_know() || query.returns_keys || query.near.is_some() {
        return Err(unsupported("a find with $meta or returnKey"));
    }
    Ok(())
}

/// The error for a request of tokens from a source without record ids of its own.
pub(super) fn unsupported(of: &str) -> Failure {
    Failure::not_supported_yet(&format!("'{REQUEST}' of {of}"))
}

fn bad(message: impl Into<String>) -> Failure {
    Failure::bad_value(message)
}

/// The source of a cursor whose replies have resume tokens.
pub(super) struct Resumable(pub ResumableScan);

fn token(place: Option<RecordId>) -> DocumentBuf {
    let place = place.map_or(ValueRef::Null, |record| ValueRef::Int64(record.0.cast_signed()));
    DocumentBuf::new().with(RECORD_ID, place)
}

impl CursorSource for Resumable {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        self.0.next()
    }

    fn examined(&self) -> Option<Examined> {
        Some(Examined { keys: 0, documents: self.0.examined() })
    }

    fn resume(&mut self) -> Result<()> {
        self.0.resume()
    }

    fn resume_token(&self) -> Option<DocumentBuf> {
        Some(token(self.0.place()))
    }

    fn resume_token_before(&self) -> Option<DocumentBuf> {
        Some(token(self.0.place_before()))
    }
}
