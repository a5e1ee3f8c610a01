//! `expireAfterSeconds` of `create` and `collMod`: the age at which documents of a clustered collection, or
//! measurements of a time series, are deleted.

use crate::capped_options::cut_off;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_catalog::Collection;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;

pub(crate) const NAME: &str = "expireAfterSeconds";

/// The requested expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// No change.
    Unchanged,
    /// Documents do not expire: `off`, which only `collMod` accepts.
    Off,
    /// Documents expire after that many seconds.
    After(i64),
}

/// Whether the collection exists when the option is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectionState {
    /// `create` makes it.
    New,
    /// `collMod` changes it.
    Existing,
}

impl Expiry {
    /// Parses the option, at `now_ms` since 1970. Doubles are truncated, decimals are rounded.
    /// # Errors
    /// `TypeMismatch`; `InvalidOptions` for strings other than `off`, for negative values, and for spans that reach
    /// back before 1970.
    pub(crate) fn parse(fields: &Fields<'_>, collection: CollectionState, now_ms: i64) -> Result<Self> {
        let value = match fields.body.get(NAME) {
            None => return Ok(Self::Unchanged),
            Some(value) if collection == CollectionState::New && value.is_nullish() => return Ok(Self::Unchanged),
            Some(value) => value,
        };
        let invalid = |message: String| Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        let is_changing = collection == CollectionState::Existing;
        match value {
            ValueRef::String("off") if is_changing => return Ok(Self::Off),
            ValueRef::String(other) if is_changing => {
                return invalid(format!("invalid string value for the 'collMod::{NAME}' option: '{other}'"));
            }
            value if !value.is_number() => {
                let expected =
                    if is_changing { "types '[string, long]'" } else { "types '[long, int, decimal, double]'" };
                return Err(fields.mismatch(NAME, value, expected));
            }
            _ => {}
        }
        let seconds = cut_off(value).unwrap_or(0);
        if seconds < 0 {
            return invalid(format!("'{NAME}' option cannot be less than 0, and is {seconds}"));
        }
        let Some(milliseconds) = seconds.checked_mul(1000) else {
            return invalid(format!(
                "'{NAME}' option must be within an acceptable range, try a lower number than {seconds}"
            ));
        };
        if milliseconds > now_ms {
            return invalid(format!("'{NAME}' value is longer than the time since 1970: {seconds}"));
        }
        Ok(Self::After(seconds))
    }

    /// A collection's options with this expiry in place of the old.
    pub(crate) fn put_into(self, options: DocumentRef<'_>) -> DocumentBuf {
        if self == Self::Unchanged {
            return options.to_owned();
        }
        let mut changed = DocumentBuf::new();
        if let Self::After(seconds) = self {
            changed.append(NAME, seconds);
        }
        for element in options.iter().filter(|element| element.name != NAME) {
            changed.append(element.name, element.value);
        }
        changed
    }
}

/// The age in seconds at which documents of a collection are deleted, if they expire.
pub(crate) fn seconds_of(collection: &Collection) -> Option<i64> {
    let options = collection.options();
    (*options).as_ref().get(NAME).and_then(number::as_i64_exact)
}
