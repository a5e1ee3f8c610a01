//! `validateDBMetadata`: lists the indexes that a strict client of the Stable API could not have created.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_authority::privileges::administration;
use bunko_bson::{DocumentBuf, DocumentRef, MAX_USER_DOCUMENT_BYTES, ValueRef, Writer};
use bunko_catalog::Collection;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::CommandFacts;
use bunko_request::field_kinds::{Field, Kind, field};
use bunko_request::fields::Fields;
use bunko_request::statement::{required_document, statement};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "validateDBMetadata",
        fields: &[field("apiParameters", Kind::Object), field("db", Kind::Text), field("collection", Kind::Text)],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(administration::validate_metadata),
    run,
    ..Command::PLAIN
};

const API_FIELDS: &[Field] =
    &[field("version", Kind::Text), field("strict", Kind::Flag), field("deprecationErrors", Kind::Flag)];

/// Bytes of a reply that are reserved for its other fields.
const REPLY_BYTES_OTHER: usize = 1024;

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let Request { is_strict, database, collection } = Request::parse(invocation)?;
    reply.begin_array("apiVersionErrors");
    let mut has_more = false;
    let mut count = 0;
    let mut bytes = 0;
    for collection in chosen(invocation, database, collection).iter().filter(|_| is_strict) {
        for error in errors(collection) {
            bytes += error.as_ref().len_bytes();
            has_more |= bytes > MAX_USER_DOCUMENT_BYTES - REPLY_BYTES_OTHER;
            if has_more {
                break;
            }
            reply.push(count, &error);
            count += 1;
        }
    }
    reply.end();
    if has_more {
        reply.append("hasMoreErrors", true);
    }
    Ok(())
}

struct Request<'a> {
    is_strict: bool,
    database: Option<&'a str>,
    collection: Option<&'a str>,
}

impl<'a> Request<'a> {
    fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
        let is_strict = parse_strictness(required_document(fields, "apiParameters")?)?;
        let (database, collection) = (fields.string("db")?, fields.string("collection")?);
        database.map_or(Ok(()), check_database_name)?;
        collection.map_or(Ok(()), check_collection_name)?;
        Ok(Self { is_strict, database, collection })
    }
}

/// Whether the parameters ask for a strict check of version 1. Other versions are not checked.
fn parse_strictness(parameters: DocumentRef<'_>) -> Result<bool, Failure> {
    let fields = statement("validateDBMetadata.apiParameters", parameters, API_FIELDS)?;
    let version = fields.string("version")?.ok_or_else(|| fields.missing("version"))?;
    Ok(fields.boolean("strict", false)? && version == "1")
}

fn chosen(
    invocation: &Invocation<'_>,
    database: Option<&str>,
    collection: Option<&str>,
) -> Vec<std::sync::Arc<Collection>> {
    let catalog = &invocation.service.catalog;
    let databases = database.map_or_else(|| catalog.databases(), |name| vec![name.to_owned()]);
    let all = databases.iter().flat_map(|database| catalog.collections(database));
    all.filter(|found| collection.is_none_or(|name| found.namespace().collection() == name)).collect()
}

fn errors(collection: &Collection) -> Vec<DocumentBuf> {
    let namespace = collection.namespace();
    let indexes = collection.indexes();
    let refused = indexes.iter().filter(|index| !is_in_version_one(index.document.as_ref()));
    refused
        .map(|index| {
            DocumentBuf::new()
                .with("ns", namespace.as_str())
                .with("code", ErrorCode::API_STRICT_ERROR.0)
                .with("codeName", ErrorCode::API_STRICT_ERROR.name().as_str())
                .with("errmsg", &format!("The index with name {} is not allowed in API version 1.", index.name))
        })
        .collect()
}

/// Whether an index is allowed in version 1. Text and sparse indexes are not.
/// Source: MongoDB manual, "Stable API", "Index Parameters".
fn is_in_version_one(spec: DocumentRef<'_>) -> bool {
    let key = spec.get("key").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let is_text = key.iter().any(|field| matches!(field.value, ValueRef::String("text" | "geoHaystack")));
    let is_sparse = matches!(spec.get("sparse"), Some(ValueRef::Boolean(true)));
    !is_text && !is_sparse
}

fn check_database_name(name: &str) -> Result<(), Failure> {
    if name.is_empty() {
        return Err(Failure::new(ErrorCode(28539), "the database name is empty"));
    }
    if name.contains([' ', '/', '\\', '"']) {
        return Err(Failure::new(ErrorCode(13280), format!("invalid db name: {name}")));
    }
    if name.contains(['.', '\0']) || name.len() > 63 {
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, format!("Invalid database name: '{name}'")));
    }
    Ok(())
}

/// Refuses a name that no namespace can have. Any other name that no collection has finds nothing.
fn check_collection_name(name: &str) -> Result<(), Failure> {
    if name.is_empty() || name.starts_with('.') || name.contains('\0') {
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, format!("Invalid collection name: '{name}'")));
    }
    Ok(())
}
