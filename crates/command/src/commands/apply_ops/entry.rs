//! Parsed oplog entries: the operation, and the document and collection that it changes.

use super::change::Change;
use super::excerpt::excerpt;
use bunko_bson::{BinarySubtype, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::write::Upsert;

/// One operation. Its time and origin (`ts`, `t`, `wall`, `lsid`, ...) are ignored.
#[derive(Debug)]
pub(super) enum Entry<'a> {
    /// `i`: stores the document, whether it exists or not.
    Insert { place: NamedCollection, document: DocumentRef<'a> },
    /// `u`: changes the document with that `_id`.
    Update { place: NamedCollection, id: ValueRef<'a>, change: Box<Change<'a>>, upsert: Upsert },
    /// `d`: deletes the document with that `_id`.
    Delete { place: NamedCollection, id: ValueRef<'a> },
    /// `c`: changes collections or indexes.
    Command { database: &'a str, command: DocumentRef<'a>, uuid: Option<[u8; 16]> },
    /// `n`: changes nothing.
    Nothing,
}

/// A collection by the name that it had, and by its UUID if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedCollection {
    pub namespace: Namespace,
    pub uuid: Option<[u8; 16]>,
}

impl<'a> Entry<'a> {
    /// Reads one element of `applyOps`.
    /// # Errors
    /// `NoSuchKey`, `TypeMismatch`, `IllegalOperation`, 40414, `BadValue` and `FailedToParse`, which name the field;
    /// `InvalidNamespace`; `NoSuchKey` for a missing `_id`.
    pub fn parse(entry: DocumentRef<'a>) -> Result<Self> {
        let op = kind(entry)?;
        if op == "n" {
            return Ok(Self::Nothing);
        }
        let name = namespace(entry)?;
        let object = document(entry, "o")?;
        let uuid = entry.get("ui").map(|value| parse_uuid(entry, value)).transpose()?;
        let place = || Namespace::parse(name).map(|namespace| NamedCollection { namespace, uuid });
        match op {
            "i" => {
                id(object, "insert")?;
                Ok(Self::Insert { place: place()?, document: object })
            }
            "u" => {
                let id = id(document(entry, "o2")?, "update")?;
                let change = Box::new(Change::parse(object, id)?);
                Ok(Self::Update { place: place()?, id, change, upsert: upsert(entry)? })
            }
            "d" => Ok(Self::Delete { place: place()?, id: id(object, "delete")? }),
            "c" => match name.split_once('.') {
                Some((database, "$cmd")) => Ok(Self::Command { database, command: object, uuid }),
                _ => Err(bad(entry, "the \"ns\" of a command does not end in '.$cmd'")),
            },
            _ => Err(Failure::bad_value(format!(
                "Enumeration value '{op}' for field 'applyOps.op' is not a valid value."
            ))),
        }
    }
}

fn bad(entry: DocumentRef<'_>, what: &str) -> Failure {
    Failure::bad_value(format!("{what}: {}", excerpt(entry)))
}

fn illegal(entry: DocumentRef<'_>, what: &str) -> Failure {
    Failure::new(ErrorCode::ILLEGAL_OPERATION, format!("{what}: {}", excerpt(entry)))
}

/// The letter of the operation.
fn kind(entry: DocumentRef<'_>) -> Result<&str> {
    match entry.get("op") {
        Some(ValueRef::String("")) => Err(illegal(entry, "\"op\" field value cannot be empty")),
        Some(ValueRef::String(text)) => Ok(text),
        Some(other) => {
            let kind = other.kind().alias();
            Err(Failure::type_mismatch(format!("\"op\" had the wrong type. Expected string, found {kind}")))
        }
        None => Err(Failure::new(ErrorCode::NO_SUCH_KEY, "Missing expected field \"op\"")),
    }
}

/// The namespace of the operation.
fn namespace(entry: DocumentRef<'_>) -> Result<&str> {
    match entry.get("ns") {
        Some(ValueRef::String("")) => Err(illegal(entry, "\"ns\" field value cannot be empty")),
        Some(ValueRef::String(text)) => Ok(text),
        Some(_) => Err(illegal(entry, "\"ns\" field is not a string")),
        None => Err(illegal(entry, "op does not contain required \"ns\" field")),
    }
}

fn document<'a>(entry: DocumentRef<'a>, name: &str) -> Result<DocumentRef<'a>> {
    match entry.get(name) {
        Some(ValueRef::Document(document)) => Ok(document),
        Some(other) => Err(Failure::wrong_type(format_args!("applyOps.{name}"), other, "type 'object'")),
        None => Err(Failure::missing_field(format_args!("applyOps.{name}"))),
    }
}

fn id<'a>(document: DocumentRef<'a>, operation: &str) -> Result<ValueRef<'a>> {
    document.get("_id").ok_or_else(|| {
        let text = excerpt(document);
        Failure::new(ErrorCode::NO_SUCH_KEY, format!("Failed to apply {operation} due to missing _id: {text}"))
    })
}

fn upsert(entry: DocumentRef<'_>) -> Result<Upsert> {
    match entry.get("b") {
        None | Some(ValueRef::Boolean(false)) => Ok(Upsert::No),
        Some(ValueRef::Boolean(true)) => Ok(Upsert::Yes),
        Some(_) => Err(bad(entry, "\"b\" field is not a boolean")),
    }
}

fn parse_uuid(entry: DocumentRef<'_>, value: ValueRef<'_>) -> Result<[u8; 16]> {
    match value {
        ValueRef::Binary { subtype: BinarySubtype::UUID, bytes } => bytes.try_into().ok(),
        _ => None,
    }
    .ok_or_else(|| Failure::new(ErrorCode::INVALID_UUID, format!("\"ui\" field is not a UUID: {}", excerpt(entry))))
}
