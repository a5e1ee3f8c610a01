//! Reading a command's fields, with MongoDB's words for those of the wrong type.

use bunko_bson::number::{self, Number};
use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// The fields of a command, or of a command inside `explain`.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    /// The command's name, for messages.
    pub command: &'static str,
    /// The command document.
    pub body: DocumentRef<'a>,
    /// What whoever checked the fields met.
    met: Option<FieldSet>,
}

/// Which of the fields that a command may have are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldSet {
    known: &'static [&'static str],
    /// By position.
    present: u64,
}

impl FieldSet {
    /// None of `known`, which are at most 64.
    pub fn new(known: &'static [&'static str]) -> Self {
        debug_assert!(known.len() <= u64::BITS as usize);
        Self { known, present: 0 }
    }

    /// Notes a field that is there; whether it is a known one.
    pub fn note(&mut self, name: &[u8]) -> Met {
        match self.position(name) {
            Some(position) if self.present & (1 << position) != 0 => Met::Again,
            Some(position) => {
                self.present |= 1 << position;
                Met::Known
            }
            None => Met::Unknown,
        }
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        self.known.iter().position(|known| known.as_bytes() == name)
    }

    fn is_missing(&self, name: &str) -> bool {
        self.position(name.as_bytes()).is_some_and(|position| self.present & (1 << position) == 0)
    }
}

/// What became of a field's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    Known,
    /// Known, and there before.
    Again,
    Unknown,
}

impl<'a> Fields<'a> {
    /// The fields of `body`, whatever they are.
    pub fn new(command: &'static str, body: DocumentRef<'a>) -> Self {
        Self { command, body, met: None }
    }

    /// The fields of a body that has been walked already: what it lacks, as it lacks most options, is known without
    /// another walk.
    pub(crate) fn of_walked(command: &'static str, body: DocumentRef<'a>, met: FieldSet) -> Self {
        Self { command, body, met: Some(met) }
    }

    /// A field of the command; null counts as missing, as MongoDB's parsers have it.
    pub fn field(&self, name: &str) -> Option<ValueRef<'a>> {
        if self.met.is_some_and(|met| met.is_missing(name)) {
            return None;
        }
        self.body.get(name).filter(|value| !value.is_nullish())
    }

    /// The failure that names a field of the wrong type.
    pub fn mismatch(&self, name: &str, value: ValueRef<'_>, expected: &str) -> Failure {
        Failure::type_mismatch(format!(
            "BSON field '{}.{name}' is the wrong type '{}', expected {expected}",
            self.command,
            value.kind().alias()
        ))
    }

    /// The refusal of an option that MongoDB has and this server does not, or of one of its values.
    pub fn unsupported(&self, option: &str) -> Failure {
        Failure::new(
            ErrorCode::COMMAND_NOT_SUPPORTED,
            format!("the option '{option}' of '{}' is not supported", self.command),
        )
    }

    /// A field that must be a document.
    pub fn document(&self, name: &str) -> Result<Option<DocumentRef<'a>>> {
        self.field(name)
            .map(|value| value.as_document().ok_or_else(|| self.mismatch(name, value, "type 'object'")))
            .transpose()
    }

    /// A field that must be an array.
    pub fn array(&self, name: &str) -> Result<Option<ArrayRef<'a>>> {
        self.field(name)
            .map(|value| value.as_array().ok_or_else(|| self.mismatch(name, value, "type 'array'")))
            .transpose()
    }

    /// A field that must be a string.
    pub fn string(&self, name: &str) -> Result<Option<&'a str>> {
        self.field(name)
            .map(|value| value.as_str().ok_or_else(|| self.mismatch(name, value, "type 'string'")))
            .transpose()
    }

    /// A field that is a boolean, or a number that stands for one; `default` where it is missing.
    pub fn boolean(&self, name: &str, default: bool) -> Result<bool> {
        match self.field(name) {
            None => Ok(default),
            Some(ValueRef::Boolean(boolean)) => Ok(boolean),
            Some(value) => Number::of(value)
                .map(|number| number.compare(Number::Integer(0)).is_ne())
                .ok_or_else(|| self.mismatch(name, value, "types '[bool, long, int, decimal, double]'")),
        }
    }

    /// A field that is a boolean, and no number that stands for one.
    pub fn strict_boolean(&self, name: &str, default: bool) -> Result<bool> {
        match self.field(name) {
            None => Ok(default),
            Some(ValueRef::Boolean(boolean)) => Ok(boolean),
            Some(value) => Err(self.mismatch(name, value, "type 'bool'")),
        }
    }

    /// Whether a field of any type stands for yes: what is missing, null, false or zero does not.
    pub fn truth(&self, name: &str) -> bool {
        self.field(name).is_some_and(truth)
    }

    /// A field that is a number, as [`number::clamp_to_i64`] reads it.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        self.field(name)
            .map(|value| {
                number::clamp_to_i64(value)
                    .ok_or_else(|| self.mismatch(name, value, "types '[long, int, decimal, double']"))
            })
            .transpose()
    }

    /// A whole number that is not negative.
    pub fn size(&self, name: &str) -> Result<Option<u64>> {
        self.integer(name)?
            .map(|number| {
                u64::try_from(number).map_err(|_| {
                    Failure::bad_value(format!("BSON field '{name}' value must be >= 0, actual value '{number}'"))
                })
            })
            .transpose()
    }
}

/// Whether a value of any type stands for yes.
pub(crate) fn truth(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Boolean(boolean) => boolean,
        ValueRef::Null | ValueRef::Undefined => false,
        _ => Number::of(value).is_none_or(|number| number.compare(Number::Integer(0)).is_ne()),
    }
}

/// The refusal of a value that stands at `place`.
pub(crate) fn wrong_type(place: &str, value: ValueRef<'_>, expected: &str) -> Failure {
    Failure::type_mismatch(format!(
        "BSON field '{place}' is the wrong type '{}', expected type '{expected}'",
        value.kind().alias()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    #[test]
    fn a_walked_body_answers_as_any_other() {
        let body = DocumentBuf::new().with("find", "c").with("skip", 1).with("hint", ValueRef::Null).with("other", 2);
        let mut met = FieldSet::new(&["skip", "hint", "limit"]);
        assert_eq!(met.note(b"skip"), Met::Known);
        assert_eq!(met.note(b"hint"), Met::Known);
        assert_eq!(met.note(b"other"), Met::Unknown);
        assert_eq!(met.note(b"hint"), Met::Again);
        let (walked, any) = (Fields::of_walked("find", body.as_ref(), met), Fields::new("find", body.as_ref()));
        let skip = |fields: Fields<'_>| fields.integer("skip").expect("a number");
        assert_eq!((skip(walked), skip(any)), (Some(1), Some(1)));
        for name in ["hint", "limit"] {
            assert!(walked.field(name).is_none() && any.field(name).is_none(), "{name}");
        }
        // Nobody noted whether the walk met these.
        assert!(walked.field("other").is_some() && walked.field("find").is_some());
    }
}
