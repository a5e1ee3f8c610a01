//! Parses a command's fields, with MongoDB's messages for wrong types.

use crate::field_kinds::Field;
use bunko_bson::number::{self, Number};
use bunko_bson::{ArrayRef, DocumentRef, EncodedElement, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_wire::Message;

/// The fields of a command, or of the command inside `explain`.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    /// The command's name, for messages.
    pub command: &'static str,
    /// The command document.
    pub body: DocumentRef<'a>,
    /// The known fields that a walk over the whole body found, if there was one.
    met: Option<FieldSet>,
    /// The message whose document sequences stand for array fields.
    message: Option<&'a Message<'a>>,
}

/// The known fields of a command that a body has, with their offsets.
#[derive(Clone, Copy, Debug)]
pub struct FieldSet {
    known: &'static [Field],
    /// The fields found, as bits by position in `known`.
    present: u64,
    /// A bit for each name in the body, known or not ([`mark`]): most lookups are for fields that the body lacks.
    marks: u64,
    /// Offsets of the first known fields found.
    places: [FieldOffset; PLACES],
}

/// Number of kept offsets. Most commands have no more fields of their own.
const PLACES: usize = 6;

/// The offset of a known field in the body.
#[derive(Clone, Copy, Debug, Default)]
struct FieldOffset {
    /// Position in `known` plus one; 0 for an unused entry.
    number: u8,
    offset: u32,
}

/// The result of looking up a field.
enum FieldLookup {
    /// The walk recorded only known fields, and this field is not among them: the body must be searched.
    Unknown,
    /// The body lacks the field.
    Missing,
    /// The body has the field, but its offset was not kept.
    Somewhere,
    At(usize),
}

impl FieldSet {
    /// An empty set for `known`, which has at most 64 fields.
    pub fn new(known: &'static [Field]) -> Self {
        debug_assert!(known.len() <= u64::BITS as usize);
        Self { known, present: 0, marks: 0, places: [FieldOffset::default(); PLACES] }
    }

    /// Records a field of `body`, and returns whether it is known. All fields of the body must be recorded or passed by
    /// before the first lookup.
    pub fn note<'a>(&mut self, field: &EncodedElement<'a>, body: DocumentRef<'a>) -> Met {
        self.pass_by(field.name_bytes());
        match self.position(field.name_bytes()) {
            Some(position) if self.present & (1 << position) != 0 => Met::Again,
            Some(position) => {
                if let Some(place) = self.places.get_mut(self.present.count_ones() as usize) {
                    *place = FieldOffset { number: position as u8 + 1, offset: field.offset_in(body) as u32 };
                }
                self.present |= 1 << position;
                Met::Known(&self.known[position])
            }
            None => Met::Unknown,
        }
    }

    /// Records the presence of a name, without its offset.
    pub fn pass_by(&mut self, name: &[u8]) {
        self.marks |= mark(name);
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        self.known.iter().position(|known| known.name.as_bytes() == name)
    }

    fn find(&self, name: &str) -> FieldLookup {
        if self.marks & mark(name.as_bytes()) == 0 {
            return FieldLookup::Missing;
        }
        match self.position(name.as_bytes()) {
            None => FieldLookup::Unknown,
            Some(position) if self.present & (1 << position) == 0 => FieldLookup::Missing,
            Some(position) => {
                let place = self.places.iter().find(|place| usize::from(place.number) == position + 1);
                place.map_or(FieldLookup::Somewhere, |place| FieldLookup::At(place.offset as usize))
            }
        }
    }
}

/// A bit among 64 for a name, derived from its length and its first byte.
fn mark(name: &[u8]) -> u64 {
    let first = name.first().copied().unwrap_or_default();
    1 << ((name.len() * 5 + usize::from(first)) % u64::BITS as usize)
}

/// The result of recording a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// Known, and recorded now.
    Known(&'static Field),
    /// Known, and recorded before.
    Again,
    /// Not among the known fields.
    Unknown,
}

impl<'a> Fields<'a> {
    /// The fields of `body`, without a walk over it.
    pub fn new(command: &'static str, body: DocumentRef<'a>) -> Self {
        Self { command, body, met: None, message: None }
    }

    /// The fields of a body that has been walked. The walk tells which known fields the body lacks, so no lookup
    /// searches it for them.
    pub fn of_walked(command: &'static str, body: DocumentRef<'a>, met: FieldSet) -> Self {
        Self { command, body, met: Some(met), message: None }
    }

    /// A copy whose array fields may also come as document sequences of a message.
    #[must_use]
    pub fn with_sequences(self, message: Option<&'a Message<'a>>) -> Self {
        Self { message, ..self }
    }

    /// A field of the command; `None` if it is missing or null, as in MongoDB's parsers.
    pub fn field(&self, name: &str) -> Option<ValueRef<'a>> {
        self.value(name).filter(|value| !value.is_nullish())
    }

    /// A field of the command, null included; `None` if it is missing.
    pub fn value(&self, name: &str) -> Option<ValueRef<'a>> {
        match self.met.as_ref().map_or(FieldLookup::Unknown, |met| met.find(name)) {
            FieldLookup::Missing => None,
            FieldLookup::At(offset) => self.body.value_at(offset),
            FieldLookup::Unknown | FieldLookup::Somewhere => self.body.get(name),
        }
    }

    /// The error for a field of the wrong type.
    pub fn mismatch(&self, name: &str, value: ValueRef<'_>, expected: &str) -> Failure {
        Failure::wrong_type(format_args!("{}.{name}", self.command), value, expected)
    }

    /// The error for an option, or a value of it, that MongoDB supports and this server does not.
    pub fn unsupported(&self, option: &str) -> Failure {
        Failure::new(
            ErrorCode::COMMAND_NOT_SUPPORTED,
            format!("the option '{option}' of '{}' is not supported", self.command),
        )
    }

    /// A field that must be a document; `None` if it is missing or null.
    pub fn document(&self, name: &str) -> Result<Option<DocumentRef<'a>>> {
        self.field(name)
            .map(|value| value.as_document().ok_or_else(|| self.mismatch(name, value, "type 'object'")))
            .transpose()
    }

    /// A field that must be an array; `None` if it is missing or null.
    pub fn array(&self, name: &str) -> Result<Option<ArrayRef<'a>>> {
        self.field(name)
            .map(|value| value.as_array().ok_or_else(|| self.mismatch(name, value, "type 'array'")))
            .transpose()
    }

    /// The documents of an array field that must be present. They may come as a document sequence.
    /// # Errors
    /// 40414 if it is missing, `TypeMismatch`.
    pub fn documents(&self, name: &str) -> Result<Vec<DocumentRef<'a>>> {
        if let Some(sequence) = self.message.and_then(|message| message.sequence(name)) {
            return Ok(sequence.documents.clone().collect());
        }
        let array = self.array(name)?.ok_or_else(|| self.missing(name))?;
        // Most commands have one document.
        let mut documents = Vec::with_capacity(1);
        for (index, value) in elements(array) {
            let document = value.as_document();
            documents.push(document.ok_or_else(|| self.mismatch(&format!("{name}.{index}"), value, "type 'object'"))?);
        }
        Ok(documents)
    }

    /// The error for a required field that is missing.
    pub fn missing(&self, name: &str) -> Failure {
        Failure::missing_field(format_args!("{}.{name}", self.command))
    }

    /// The strings in an array at `place` in the command. Nulls in it are skipped, as in MongoDB's parsers.
    /// # Errors
    /// `TypeMismatch`.
    pub fn texts<'v>(&self, place: &str, array: ArrayRef<'v>) -> Result<Vec<&'v str>> {
        let text = |(index, value): (usize, ValueRef<'v>)| {
            value.as_str().ok_or_else(|| self.mismatch(&format!("{place}.{index}"), value, "type 'string'"))
        };
        elements(array).map(text).collect()
    }

    /// A field that must be a string; `None` if it is missing or null.
    pub fn string(&self, name: &str) -> Result<Option<&'a str>> {
        self.field(name)
            .map(|value| value.as_str().ok_or_else(|| self.mismatch(name, value, "type 'string'")))
            .transpose()
    }

    /// A field that is a boolean, or a number that stands for one; `default` if missing.
    pub fn boolean(&self, name: &str, default: bool) -> Result<bool> {
        match self.field(name) {
            None => Ok(default),
            Some(ValueRef::Boolean(boolean)) => Ok(boolean),
            Some(value) => Number::of(value)
                .map(|number| number.compare(Number::Integer(0)).is_ne())
                .ok_or_else(|| self.mismatch(name, value, "types '[bool, long, int, decimal, double]'")),
        }
    }

    /// A field that must be a boolean; `default` if missing.
    pub fn strict_boolean(&self, name: &str, default: bool) -> Result<bool> {
        match self.field(name) {
            None => Ok(default),
            Some(ValueRef::Boolean(boolean)) => Ok(boolean),
            Some(value) => Err(self.mismatch(name, value, "type 'bool'")),
        }
    }

    /// Whether a field of any type counts as true. Missing, null, false and zero do not.
    pub fn truth(&self, name: &str) -> bool {
        self.field(name).is_some_and(truth)
    }

    /// A number, converted by [`number::clamp_to_i64`]; `None` if the field is missing or null.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        self.field(name)
            .map(|value| {
                number::clamp_to_i64(value)
                    .ok_or_else(|| self.mismatch(name, value, "types '[long, int, decimal, double]'"))
            })
            .transpose()
    }

    /// An integer that is not negative; `None` if the field is missing or null.
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

/// The elements of an array field, with their positions. Nulls are skipped, as in MongoDB's parsers.
pub fn elements(array: ArrayRef<'_>) -> impl Iterator<Item = (usize, ValueRef<'_>)> {
    array.iter().enumerate().filter(|(_, value)| !value.is_nullish())
}

/// Whether a value of any type counts as true.
pub fn truth(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Boolean(boolean) => boolean,
        ValueRef::Null | ValueRef::Undefined => false,
        _ => Number::of(value).is_none_or(|number| number.compare(Number::Integer(0)).is_ne()),
    }
}

/// The error for a value of the wrong type at `place`.
pub fn wrong_type(place: &str, value: ValueRef<'_>, expected: &str) -> Failure {
    Failure::wrong_type(place, value, format_args!("type '{expected}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field_kinds::{Kind, field};
    use bunko_bson::DocumentBuf;

    #[test]
    fn a_walked_body_answers_as_any_other() {
        let many = ["p1", "p2", "p3", "p4", "p5", "p6"];
        let body = DocumentBuf::new().with("find", "c").with("skip", 1).with("hint", ValueRef::Null).with("other", 2);
        let body = many.iter().zip(0..).fold(body, |body, (name, number)| body.with(name, number)).with("hint", 3);
        const KNOWN: &[Field] = &[
            field("skip", Kind::Any),
            field("hint", Kind::Any),
            field("limit", Kind::Any),
            field("p1", Kind::Any),
            field("p2", Kind::Any),
            field("p3", Kind::Any),
            field("p4", Kind::Any),
            field("p5", Kind::Any),
            field("p6", Kind::Any),
        ];
        let mut met = FieldSet::new(KNOWN);
        let body_read = body.as_ref();
        let noted: Vec<_> = body_read.iter().encoded().map(|field| met.note(&field, body_read)).collect();
        let known = |position: usize| Met::Known(&KNOWN[position]);
        let expected =
            [&[Met::Unknown, known(0), known(1), Met::Unknown], &[3, 4, 5, 6, 7, 8].map(known)[..], &[Met::Again]];
        assert_eq!(noted, expected.concat());
        let (walked, any) = (Fields::of_walked("find", body.as_ref(), met), Fields::new("find", body.as_ref()));
        let skip = |fields: Fields<'_>| fields.integer("skip").expect("a number");
        assert_eq!((skip(walked), skip(any)), (Some(1), Some(1)));
        for (name, number) in many.iter().zip(0..) {
            let found = (walked.integer(name).expect("a number"), any.integer(name).expect("a number"));
            assert_eq!(found, (Some(number), Some(number)), "{name}");
        }
        for name in ["hint", "limit"] {
            assert!(walked.field(name).is_none() && any.field(name).is_none(), "{name}");
        }
        // The walk did not record these names, so the body is searched.
        assert!(walked.field("other").is_some() && walked.field("find").is_some());
    }
}
