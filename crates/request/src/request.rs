//! The command document, the database that it names, and its document sequences.

use bunko_bson::{ArrayRef, DocumentRef, Element, ValueRef};
use bunko_wire::{Message, Sequence};

/// A command as it was received, in any message format.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The database named by `$db` or by the namespace of an OP_QUERY.
    pub database: &'a str,
    /// The command document.
    pub body: DocumentRef<'a>,
    /// The OP_MSG with its document sequences; `None` if the command came as an OP_QUERY.
    pub message: Option<&'a Message<'a>>,
    /// The first field of `body`, read once because many callers need it.
    first: Option<Element<'a>>,
}

impl<'a> Request<'a> {
    /// A request from a command document and its message.
    pub fn new(database: &'a str, body: DocumentRef<'a>, message: Option<&'a Message<'a>>) -> Self {
        Self { database, body, message, first: body.first() }
    }

    /// The command's name as the client sent it; empty if the body is empty.
    pub fn name(&self) -> &'a str {
        self.first.map_or("", |first| first.name)
    }

    /// The command's first value; null if the body is empty.
    pub fn argument(&self) -> ValueRef<'a> {
        self.first.map_or(ValueRef::Null, |first| first.value)
    }

    /// The namespaces that a `bulkWrite` names, from the body or a document sequence. Malformed entries are skipped
    /// here; they are refused when they are parsed.
    pub fn bulk_namespaces(&self) -> impl Iterator<Item = &'a str> {
        let in_body = self.body.get("nsInfo").and_then(ValueRef::as_array);
        let in_body = in_body.into_iter().flat_map(ArrayRef::iter).filter_map(ValueRef::as_document);
        let in_sequence = self.sequence("nsInfo").into_iter().flat_map(|sequence| sequence.documents.clone());
        in_body.chain(in_sequence).filter_map(|info| info.get("ns").and_then(ValueRef::as_str))
    }

    /// The documents of an array field that came as a document sequence; `None` if there is none for the field.
    pub fn sequence(&self, field: &str) -> Option<&'a Sequence<'a>> {
        self.message.and_then(|message| message.sequence(field))
    }
}
