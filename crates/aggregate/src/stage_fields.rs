//! Reads the fields of a stage's specification, with MongoDB's error messages for wrong types.

use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// The fields of a specification; a null field counts as missing.
#[derive(Clone, Copy)]
pub(crate) struct StageFields<'a> {
    stage: &'static str,
    body: DocumentRef<'a>,
}

impl<'a> StageFields<'a> {
    /// The fields of `body`; each must be in `known`, and none may occur twice.
    /// # Errors
    /// `IDLUnknownField`, `IDLDuplicateField`.
    pub fn new(stage: &'static str, body: DocumentRef<'a>, known: &[&str]) -> Result<Self> {
        for (position, field) in body.iter().enumerate() {
            if !known.contains(&field.name) {
                return Err(Failure::unknown_field(format_args!("{stage}.{}", field.name)));
            }
            if body.iter().take(position).any(|earlier| earlier.name == field.name) {
                let message = format!("BSON field '{stage}.{}' is a duplicate field", field.name);
                return Err(Failure::new(ErrorCode::IDL_DUPLICATE_FIELD, message));
            }
        }
        Ok(Self { stage, body })
    }

    /// A field of any type.
    pub fn field(&self, name: &str) -> Option<ValueRef<'a>> {
        self.body.get(name).filter(|value| !value.is_nullish())
    }

    /// A field that must be present.
    /// # Errors
    /// `IDLFailedToParse`.
    pub fn required<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| Failure::missing_field(format_args!("{}.{name}", self.stage)))
    }

    /// A field that must be a string.
    /// # Errors
    /// `TypeMismatch`.
    pub fn string(&self, name: &str) -> Result<Option<&'a str>> {
        self.typed(name, "string", ValueRef::as_str)
    }

    /// A field that must be a boolean.
    /// # Errors
    /// `TypeMismatch`.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.typed(name, "bool", |value| if let ValueRef::Boolean(value) = value { Some(value) } else { None })
    }

    /// A field that must be a document.
    /// # Errors
    /// `TypeMismatch`.
    pub fn document(&self, name: &str) -> Result<Option<DocumentRef<'a>>> {
        self.typed(name, "object", ValueRef::as_document)
    }

    /// A field that must be an array.
    /// # Errors
    /// `TypeMismatch`.
    pub fn array(&self, name: &str) -> Result<Option<ArrayRef<'a>>> {
        self.typed(name, "array", ValueRef::as_array)
    }

    /// A field that is a pipeline: an array, and not null.
    /// # Errors
    /// `TypeMismatch`.
    pub fn pipeline(&self, name: &str) -> Result<Option<ArrayRef<'a>>> {
        self.refuse_null(name, "array")?;
        self.array(name)
    }

    /// Refuses null for a field where it does not mean a missing field.
    /// # Errors
    /// `TypeMismatch`.
    pub fn refuse_null(&self, name: &str, expected: &str) -> Result<()> {
        match self.body.get(name) {
            Some(value) if value.is_nullish() => Err(self.mismatch(name, value, expected)),
            _ => Ok(()),
        }
    }

    fn typed<T>(&self, name: &str, expected: &str, read: fn(ValueRef<'a>) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.field(name) else { return Ok(None) };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(self.mismatch(name, value, expected)),
        }
    }

    /// The failure for a field of the wrong type.
    pub fn mismatch(&self, name: &str, value: ValueRef<'_>, expected: &str) -> Failure {
        Failure::wrong_type(format_args!("{}.{name}", self.stage), value, format_args!("type '{expected}'"))
    }
}
