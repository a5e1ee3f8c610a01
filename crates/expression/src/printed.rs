//! Values as the messages of expressions print them: `{a: 1, b: [2]}`, unlike those of commands and updates.

use crate::Evaluated;
use crate::text::double_text;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef};

/// A value, or `MISSING`.
pub(crate) fn printed(value: &Evaluated<'_>) -> String {
    value.get().map_or_else(|| "MISSING".to_owned(), printed_value)
}

/// A document in braces.
pub(crate) fn printed_document(document: DocumentRef<'_>) -> String {
    let fields: Vec<_> = document.iter().map(|e| format!("{}: {}", e.name, printed_value(e.value))).collect();
    format!("{{{}}}", fields.join(", "))
}

/// One value.
pub(crate) fn printed_value(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::String(text) => format!("\"{text}\""),
        ValueRef::Double(number) => double_text(number),
        ValueRef::Document(document) => printed_document(document),
        ValueRef::Array(array) => {
            format!("[{}]", array.iter().map(printed_value).collect::<Vec<_>>().join(", "))
        }
        ValueRef::ObjectId(id) => id.to_string(),
        ValueRef::DateTime(ms) => crate::calendar::iso_text(ms),
        other => ValueText(other).to_string(),
    }
}
