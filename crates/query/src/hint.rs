//! The hint of a query.

use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_errors::{Failure, Result};
use bunko_store::Direction;

/// The index, or the order of the collection, that a query has to use.
#[derive(Clone, Debug)]
pub enum Hint {
    /// The index with this name.
    Name(String),
    /// The index with exactly that key pattern.
    KeyPattern(DocumentBuf),
    /// No index: a scan of the collection in this direction.
    Natural(Direction),
}

impl Hint {
    /// Reads `hint`; an empty document means no hint.
    /// # Errors
    /// `FailedToParse` for another type than string or document, `BadValue` for a bad `$natural`.
    pub fn parse(value: ValueRef<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::String(name) => Ok(Some(Self::Name(name.to_owned()))),
            ValueRef::Document(pattern) => match pattern.first() {
                None => Ok(None),
                Some(first) if first.name == "$natural" && pattern.count() > 1 => {
                    Err(Failure::bad_value("$natural hint cannot be combined with other fields"))
                }
                Some(first) if first.name == "$natural" => Ok(Some(Self::Natural(natural_direction(first.value)?))),
                Some(_) => Ok(Some(Self::KeyPattern(pattern.to_owned()))),
            },
            _ => Err(Failure::failed_to_parse("Hint must be a string or an object")),
        }
    }
}

/// The direction that `$natural` has in a hint or a sort.
/// # Errors
/// `BadValue` for other values than 1 and -1.
pub(crate) fn natural_direction(value: ValueRef<'_>) -> Result<Direction> {
    match number::as_i64_exact(value) {
        Some(1) => Ok(Direction::Forward),
        Some(-1) => Ok(Direction::Backward),
        _ => Err(Failure::bad_value("$natural sort cannot be set to a value other than -1 or 1.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentRef;

    #[test]
    fn hints_are_names_patterns_or_natural() {
        assert!(matches!(Hint::parse(ValueRef::String("a_1")), Ok(Some(Hint::Name(_)))));
        let pattern = DocumentBuf::new().with("a", 1);
        assert!(matches!(Hint::parse(ValueRef::Document(pattern.as_ref())), Ok(Some(Hint::KeyPattern(_)))));
        assert!(matches!(Hint::parse(ValueRef::Document(DocumentRef::EMPTY)), Ok(None)));
        assert!(Hint::parse(ValueRef::Int32(1)).is_err());
    }
}
