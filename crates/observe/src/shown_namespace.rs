//! The namespace under which an operation is shown.

use bunko_bson::{DocumentRef, ValueRef};
use bunko_request::facts::{CommandFacts, ReadsFrom};

/// The namespace that a command works on.
pub fn namespace_of(entry: &CommandFacts, database: &str, command: DocumentRef<'_>) -> String {
    let collection = match entry.reads {
        ReadsFrom::Cursor => command.get("collection"),
        ReadsFrom::Nothing | ReadsFrom::Collection => command.first().map(|element| element.value),
    };
    let collection = collection.and_then(ValueRef::as_str).unwrap_or("$cmd");
    format!("{database}.{collection}")
}
