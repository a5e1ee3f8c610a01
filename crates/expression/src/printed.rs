//! Values as the messages of expressions print them: `{a: 1, b: [2]}`, unlike those of commands and updates.

use crate::Evaluated;
use crate::text::short_text;
use bunko_bson::text::{ValueText, cut};
use bunko_bson::{DocumentRef, ValueRef};
use std::fmt::{self, Write};

/// Prints a value; `MISSING` for a missing value.
pub(crate) fn printed(value: &Evaluated<'_>) -> String {
    value.get().map_or_else(|| "MISSING".to_owned(), printed_value)
}

/// Prints a document in braces.
pub(crate) fn printed_document(document: DocumentRef<'_>) -> String {
    printed_value(ValueRef::Document(document))
}

/// Prints one value.
pub(crate) fn printed_value(value: ValueRef<'_>) -> String {
    let mut printed = String::new();
    // Writing to a string cannot fail.
    let _ = cut(&mut printed, |f| write_value(f, value));
    printed
}

fn write_value(f: &mut dyn Write, value: ValueRef<'_>) -> fmt::Result {
    match value {
        ValueRef::String(text) => write!(f, "\"{text}\""),
        ValueRef::Double(number) => f.write_str(&short_text(number)),
        ValueRef::Document(document) => {
            f.write_char('{')?;
            for (index, element) in document.iter().enumerate() {
                write!(f, "{}{}: ", if index == 0 { "" } else { ", " }, element.name)?;
                write_value(f, element.value)?;
            }
            f.write_char('}')
        }
        ValueRef::Array(array) => {
            f.write_char('[')?;
            for (index, value) in array.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { ", " })?;
                write_value(f, value)?;
            }
            f.write_char(']')
        }
        ValueRef::ObjectId(id) => write!(f, "{id}"),
        ValueRef::DateTime(ms) => f.write_str(&crate::calendar::iso_text(ms)),
        other => write!(f, "{}", ValueText(other)),
    }
}
