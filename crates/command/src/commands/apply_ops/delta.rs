//! The delta of an update's oplog entry (`{$v: 2, diff: ...}`): the new state of fields and elements, without the
//! operators.
//!
//! A document's delta has sections: `d` names removed fields, `u` has fields with new values, `i` has fields that were
//! added or moved to the end, and `s` followed by a field's name has the delta inside that field. An array's delta
//! begins with `a: true`; `l` is its new length, `u` followed by an index a new element, and `s` followed by an index
//! the delta inside that element.
//!
//! **Invariant:** a delta may be applied twice, or to a document that has later changes already: a delta inside a value
//! that is no longer a document (or an array) is skipped.
//! Source: the format as oplogs of MongoDB 5.0 and later show it.

use super::excerpt::excerpt;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, MAX_USER_DOCUMENT_BYTES, ValueRef, Writer, number};
use bunko_errors::{ErrorCode, Failure, Result};
use std::collections::{HashMap, HashSet};

/// A parsed delta of a whole document.
#[derive(Debug)]
pub(super) struct Delta<'a>(Fields<'a>);

/// Changes of a document's fields.
#[derive(Debug, Default)]
struct Fields<'a> {
    changes: HashMap<&'a str, Change<'a>>,
    /// All fields of `u` and then of `i`. Fields that the document lacks are appended in this order.
    given: Vec<(&'a str, ValueRef<'a>)>,
}

/// Change of one field.
#[derive(Debug)]
enum Change<'a> {
    Removed,
    Set(ValueRef<'a>),
    /// The field is removed where it stands, and appended.
    Moved,
    Inside(Inside<'a>),
}

/// The delta inside a field or an element.
#[derive(Debug)]
enum Inside<'a> {
    Document(Fields<'a>),
    Array(Elements<'a>),
}

/// Changes of an array's elements.
#[derive(Debug)]
struct Elements<'a> {
    length: Option<usize>,
    /// By ascending index, all below the length.
    changes: Vec<(usize, ElementChange<'a>)>,
}

#[derive(Debug)]
enum ElementChange<'a> {
    Set(ValueRef<'a>),
    Inside(Inside<'a>),
}

impl<'a> Delta<'a> {
    /// Reads `diff`.
    /// # Errors
    /// `FailedToParse` for a malformed delta, with the reason; `CommandNotSupported` for deltas inside binary values.
    pub fn parse(diff: DocumentRef<'a>) -> Result<Self> {
        Fields::parse(diff).map(Self)
    }

    /// Returns the document with the delta applied.
    /// # Errors
    /// 17419 if it would be larger than [`MAX_USER_DOCUMENT_BYTES`].
    pub fn apply(&self, document: DocumentRef<'_>) -> Result<DocumentBuf> {
        let mut bytes = Vec::with_capacity(document.len_bytes());
        let mut writer = Writer::new(&mut bytes);
        self.0.write(document, &mut writer)?;
        writer.end();
        Ok(DocumentBuf::from_trusted(bytes))
    }
}

fn malformed(what: &str, diff: DocumentRef<'_>) -> Failure {
    Failure::failed_to_parse(format!("The delta of an update is malformed: {what}: {}", excerpt(diff)))
}

fn section<'a>(diff: DocumentRef<'_>, name: &str, value: ValueRef<'a>) -> Result<DocumentRef<'a>> {
    value.as_document().ok_or_else(|| malformed(&format!("section '{name}' is not an object"), diff))
}

impl<'a> Inside<'a> {
    fn parse(outer: DocumentRef<'_>, name: &str, value: ValueRef<'a>) -> Result<Self> {
        let diff = section(outer, name, value)?;
        if diff.first().is_some_and(|first| first.name == "a") {
            return Elements::parse(diff).map(Self::Array);
        }
        Fields::parse(diff).map(Self::Document)
    }
}

impl<'a> Fields<'a> {
    fn parse(diff: DocumentRef<'a>) -> Result<Self> {
        let mut fields = Self::default();
        let mut sections: HashSet<&str> = HashSet::new();
        for element in diff {
            if !sections.insert(element.name) {
                return Err(malformed(&format!("section '{}' comes twice", element.name), diff));
            }
            match element.name {
                "d" => {
                    for removed in section(diff, "d", element.value)? {
                        if !matches!(removed.value, ValueRef::Boolean(false)) {
                            return Err(malformed("a removed field's value is not false", diff));
                        }
                        fields.change(removed.name, Change::Removed, diff)?;
                    }
                }
                "u" => {
                    for set in section(diff, "u", element.value)? {
                        fields.change(set.name, Change::Set(set.value), diff)?;
                        fields.given.push((set.name, set.value));
                    }
                }
                // Read after the loop: the fields of `u` come first, even if `u` stands after `i`.
                "i" => {}
                "b" => {
                    let message = "deltas inside binary values are not supported";
                    return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
                }
                name => {
                    let Some(field) = name.strip_prefix('s') else {
                        return Err(malformed(&format!("there is no section '{name}'"), diff));
                    };
                    fields.change(field, Change::Inside(Inside::parse(diff, name, element.value)?), diff)?;
                }
            }
        }
        if let Some(inserted) = diff.get("i") {
            for field in section(diff, "i", inserted)? {
                fields.change(field.name, Change::Moved, diff)?;
                fields.given.push((field.name, field.value));
            }
        }
        Ok(fields)
    }

    fn change(&mut self, field: &'a str, change: Change<'a>, diff: DocumentRef<'_>) -> Result<()> {
        match self.changes.insert(field, change) {
            Some(_) => Err(malformed(&format!("field '{field}' is changed twice"), diff)),
            None => Ok(()),
        }
    }

    fn write(&self, document: DocumentRef<'_>, writer: &mut Writer<'_>) -> Result<()> {
        let mut in_place: HashSet<&str> = HashSet::new();
        for element in document {
            match self.changes.get_key_value(element.name) {
                None => put(writer, Name::Field(element.name), element.value)?,
                Some((_, Change::Removed | Change::Moved)) => {}
                Some((name, Change::Set(value))) => {
                    in_place.insert(*name);
                    put(writer, Name::Field(element.name), *value)?;
                }
                Some((_, Change::Inside(inside))) => inside.write(Name::Field(element.name), element.value, writer)?,
            }
        }
        for (name, value) in self.given.iter().filter(|(name, _)| !in_place.contains(name)) {
            put(writer, Name::Field(name), *value)?;
        }
        Ok(())
    }
}

impl<'a> Elements<'a> {
    fn parse(diff: DocumentRef<'a>) -> Result<Self> {
        let mut elements = Self { length: None, changes: Vec::new() };
        for (position, element) in diff.iter().enumerate() {
            match (element.name, position) {
                ("a", 0) if matches!(element.value, ValueRef::Boolean(true)) => {}
                ("l", 1) => {
                    let length = number::as_i64_exact(element.value).and_then(|length| usize::try_from(length).ok());
                    elements.length = Some(length.ok_or_else(|| malformed("'l' is not a length", diff))?);
                }
                (name, _) => {
                    let change = if let Some(index) = name.strip_prefix('u').and_then(index) {
                        (index, ElementChange::Set(element.value))
                    } else if let Some(index) = name.strip_prefix('s').and_then(index) {
                        (index, ElementChange::Inside(Inside::parse(diff, name, element.value)?))
                    } else {
                        return Err(malformed(&format!("'{name}' is not part of an array's delta"), diff));
                    };
                    elements.add(change, diff)?;
                }
            }
        }
        Ok(elements)
    }

    fn add(&mut self, change: (usize, ElementChange<'a>), diff: DocumentRef<'_>) -> Result<()> {
        let index = change.0;
        if self.changes.last().is_some_and(|(last, _)| *last >= index) {
            return Err(malformed("indexes do not rise", diff));
        }
        if self.length.is_some_and(|length| index >= length) {
            return Err(malformed(&format!("index {index} is not below the length"), diff));
        }
        self.changes.push(change);
        Ok(())
    }

    fn write(&self, array: ArrayRef<'_>, writer: &mut Writer<'_>) -> Result<()> {
        let mut changes = self.changes.iter().peekable();
        let mut position = 0;
        for value in array.iter().take(self.length.unwrap_or(usize::MAX)) {
            match changes.next_if(|(index, _)| *index == position) {
                None => put(writer, Name::Index(position), value)?,
                Some((_, ElementChange::Set(value))) => put(writer, Name::Index(position), *value)?,
                Some((_, ElementChange::Inside(inside))) => inside.write(Name::Index(position), value, writer)?,
            }
            position += 1;
        }
        // The array has become shorter since. Missing elements are set, or filled with null.
        let end = self.length.or(self.changes.last().map(|(index, _)| index + 1)).unwrap_or(0);
        while position < end {
            match changes.next_if(|(index, _)| *index == position) {
                Some((_, ElementChange::Set(value))) => put(writer, Name::Index(position), *value)?,
                Some((_, ElementChange::Inside(_))) | None => put(writer, Name::Index(position), ValueRef::Null)?,
            }
            position += 1;
        }
        Ok(())
    }
}

/// The index in a name such as `u12`; `None` if it is not written in its shortest form.
fn index(digits: &str) -> Option<usize> {
    let index: u32 = digits.parse().ok()?;
    (index.to_string() == digits).then_some(index as usize)
}

/// Name of a value inside its document or array.
#[derive(Clone, Copy)]
enum Name<'n> {
    Field(&'n str),
    Index(usize),
}

impl Inside<'_> {
    fn write(&self, name: Name<'_>, value: ValueRef<'_>, writer: &mut Writer<'_>) -> Result<()> {
        let index;
        let text = match name {
            Name::Field(text) => text,
            Name::Index(position) => {
                index = position.to_string();
                &index
            }
        };
        match (self, value) {
            (Self::Document(fields), ValueRef::Document(document)) => {
                writer.begin_document(text);
                fields.write(document, writer)?;
            }
            (Self::Array(elements), ValueRef::Array(array)) => {
                writer.begin_array(text);
                elements.write(array, writer)?;
            }
            // A later change, which the document has already, replaced the value by one of another type.
            _ => return put(writer, name, value),
        }
        writer.end();
        Ok(())
    }
}

/// Appends a value and checks the size each time: a short delta can ask for an array of any length.
fn put(writer: &mut Writer<'_>, name: Name<'_>, value: ValueRef<'_>) -> Result<()> {
    match name {
        Name::Field(name) => writer.append(name, value),
        Name::Index(index) => writer.push(index, value),
    };
    if writer.len_bytes() > MAX_USER_DOCUMENT_BYTES {
        let message = format!("Resulting document after update is larger than {MAX_USER_DOCUMENT_BYTES}");
        return Err(Failure::new(ErrorCode(17419), message));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
