//! Reading a command's fields, with MongoDB's words for those of the wrong type.

use bunko_bson::text::ValueText;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// The fields of a command, or of a command inside `explain`.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    /// The command's name, for messages.
    pub command: &'static str,
    /// The command document.
    pub body: DocumentRef<'a>,
}

impl<'a> Fields<'a> {
    /// A field of the command; null counts as missing, as MongoDB's parsers have it.
    pub fn field(&self, name: &str) -> Option<ValueRef<'a>> {
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
            Some(value) => number::as_f64(value)
                .map(|number| number != 0.0)
                .ok_or_else(|| self.mismatch(name, value, "types '[bool, long, int, decimal, double]'")),
        }
    }

    /// A field that is a whole number of any numeric type.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        self.field(name)
            .map(|value| {
                if !value.is_number() {
                    return Err(self.mismatch(name, value, "types '[long, int, decimal, double']"));
                }
                number::truncate_to_i64(value).ok_or_else(|| {
                    Failure::bad_value(format!(
                        "BSON field '{}.{name}' is out of range: {}",
                        self.command,
                        ValueText(value)
                    ))
                })
            })
            .transpose()
    }

    /// A whole number that is not negative.
    pub fn size(&self, name: &str) -> Result<Option<u64>> {
        self.integer(name)?
            .map(|number| {
                u64::try_from(number).map_err(|_| {
                    Failure::new(
                        ErrorCode(51024),
                        format!("BSON field '{name}' value must be >= 0, actual value '{number}'"),
                    )
                })
            })
            .transpose()
    }
}
