//! The prelude: the archive's versions, and its namespaces.

use super::{MAGIC, Reason, VERSION};
use crate::documents::TERMINATOR;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};

/// The prelude, the first part of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prelude {
    /// Versions of format, server and tool.
    pub header: Header,
    /// The namespaces of the archive. A namespace that is not listed here must not have a block.
    pub namespaces: Vec<NamespaceEntry>,
}

/// Versions of an archive's format and of the programs that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of namespaces that are interleaved at a time.
    pub concurrent_collections: i32,
    /// Version of the format: [`VERSION`].
    pub version: String,
    /// Version of the server that was dumped.
    pub server_version: String,
    /// Version of the tool that wrote the archive.
    pub tool_version: String,
}

impl Default for Header {
    fn default() -> Self {
        Self {
            concurrent_collections: 1,
            version: VERSION.to_owned(),
            server_version: String::new(),
            tool_version: String::new(),
        }
    }
}

/// One namespace of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceEntry {
    /// Empty for the oplog.
    pub database: String,
    /// `oplog` for the oplog.
    pub collection: String,
    /// JSON: [`crate::metadata::Metadata`]; empty for the oplog.
    pub metadata: String,
    /// Size of all documents, estimated when the dump began; 0 if the tool did not ask.
    pub size_bytes: i64,
    /// `collection`, `view` or `timeseries`; empty for the oplog.
    pub kind: String,
}

impl Prelude {
    /// The encoded prelude, with magic number and terminator.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_le_bytes().to_vec();
        out.extend_from_slice(self.header.encode().as_ref().as_bytes());
        for namespace in &self.namespaces {
            out.extend_from_slice(namespace.encode().as_ref().as_bytes());
        }
        out.extend_from_slice(&TERMINATOR);
        out
    }
}

impl Header {
    fn encode(&self) -> DocumentBuf {
        DocumentBuf::new()
            .with("concurrent_collections", self.concurrent_collections)
            .with("version", &self.version)
            .with("server_version", &self.server_version)
            .with("tool_version", &self.tool_version)
    }

    /// Parses leniently: unknown fields are ignored, and only the version is required.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Reason> {
        let document = DocumentRef::parse(bytes)?;
        let text = |name| text(document, name);
        let version = text("version")?;
        if version != VERSION {
            return Err(Reason::Version { found: version });
        }
        Ok(Self {
            concurrent_collections: integer(document, "concurrent_collections")? as i32,
            version,
            server_version: text("server_version")?,
            tool_version: text("tool_version")?,
        })
    }
}

impl NamespaceEntry {
    fn encode(&self) -> DocumentBuf {
        let mut document = DocumentBuf::new()
            .with("db", &self.database)
            .with("collection", &self.collection)
            .with("metadata", &self.metadata);
        // As Go writes an `int`: 32 bits if the number fits.
        match i32::try_from(self.size_bytes) {
            Ok(size) => document.append("size", size),
            Err(_) => document.append("size", self.size_bytes),
        };
        document.with("type", &self.kind)
    }

    /// Parses leniently: old tools wrote fewer fields, newer ones may write more.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Reason> {
        let document = DocumentRef::parse(bytes)?;
        if document.get("collection").is_none() {
            return Err(Reason::MissingField { field: "collection" });
        }
        Ok(Self {
            database: text(document, "db")?,
            collection: text(document, "collection")?,
            metadata: text(document, "metadata")?,
            size_bytes: integer(document, "size")?,
            kind: text(document, "type")?,
        })
    }
}

fn text(document: DocumentRef<'_>, field: &'static str) -> Result<String, Reason> {
    match document.get(field) {
        None => Ok(String::new()),
        Some(ValueRef::String(text)) => Ok(text.to_owned()),
        Some(other) => Err(Reason::FieldType { field, expected: "string", found: other.kind().alias() }),
    }
}

fn integer(document: DocumentRef<'_>, field: &'static str) -> Result<i64, Reason> {
    match document.get(field) {
        None => Ok(0),
        Some(ValueRef::Int32(number)) => Ok(i64::from(number)),
        Some(ValueRef::Int64(number)) => Ok(number),
        Some(other) => Err(Reason::FieldType { field, expected: "int or long", found: other.kind().alias() }),
    }
}
