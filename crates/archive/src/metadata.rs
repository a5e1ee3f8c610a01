//! A collection's description in a dump, besides its documents.

use bunko_bson::extended_json::{self, ExtendedJsonError};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use std::fmt;

/// A collection's options and indexes: a `.metadata.json` file, or a text in an archive's prelude.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The options in `listCollections`.
    pub options: DocumentBuf,
    /// The indexes in `listIndexes`.
    pub indexes: Vec<DocumentBuf>,
    /// UUID in thirty-two hexadecimal digits; views have none.
    pub uuid: Option<String>,
    /// Name of the collection; empty in metadata of old tools.
    pub collection_name: String,
    /// `collection`, `view` or `timeseries`; `None` in metadata of old tools.
    pub kind: Option<String>,
}

/// Reason why a text is not metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataError {
    /// The text is not Extended JSON.
    Json(ExtendedJsonError),
    /// A field has the wrong type.
    Type {
        /// The field.
        field: &'static str,
        /// The required type.
        expected: &'static str,
        /// The found type.
        found: &'static str,
    },
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "invalid metadata: {error}"),
            Self::Type { field, expected, found } => {
                write!(f, "invalid metadata: '{field}' is of type {found}, expected {expected}")
            }
        }
    }
}

impl std::error::Error for MetadataError {}

impl From<ExtendedJsonError> for MetadataError {
    fn from(error: ExtendedJsonError) -> Self {
        Self::Json(error)
    }
}

impl Metadata {
    /// Parses Extended JSON of either version. Unknown fields are ignored, and all fields may be missing; an empty text
    /// (the oplog's, in a prelude) gives empty metadata.
    /// # Errors
    /// [`MetadataError`] names the place or the field.
    pub fn parse(json: &str) -> Result<Self, MetadataError> {
        let mut metadata = Self::default();
        if json.trim().is_empty() {
            return Ok(metadata);
        }
        for field in extended_json::parse_document(json)?.as_ref() {
            match (field.name, field.value) {
                ("options" | "indexes" | "uuid" | "collectionName" | "type", ValueRef::Null) => {}
                ("options", ValueRef::Document(options)) => metadata.options = options.to_owned(),
                ("options", other) => return Err(misfit("options", "object", other)),
                ("indexes", ValueRef::Array(indexes)) => {
                    metadata.indexes = indexes.iter().map(index).collect::<Result<_, _>>()?;
                }
                ("indexes", other) => return Err(misfit("indexes", "array", other)),
                ("uuid", value) => metadata.uuid = Some(text("uuid", value)?),
                ("collectionName", value) => metadata.collection_name = text("collectionName", value)?,
                ("type", value) => metadata.kind = Some(text("type", value)?),
                _ => {}
            }
        }
        Ok(metadata)
    }

    /// Canonical Extended JSON as the classic tool writes it: no spaces; `options`, `uuid` and `type` only if the
    /// collection has them.
    pub fn to_json(&self) -> String {
        let mut document = DocumentBuf::new();
        if !self.options.as_ref().is_empty() {
            document.append("options", &self.options);
        }
        let indexes: ArrayBuf = self.indexes.iter().collect();
        document.append("indexes", &indexes);
        if let Some(uuid) = &self.uuid {
            document.append("uuid", uuid);
        }
        document.append("collectionName", &self.collection_name);
        if let Some(kind) = &self.kind {
            document.append("type", kind);
        }
        extended_json::to_canonical(ValueRef::Document(document.as_ref()))
    }
}

fn index(value: ValueRef<'_>) -> Result<DocumentBuf, MetadataError> {
    value.as_document().map(DocumentRef::to_owned).ok_or_else(|| misfit("indexes", "array of objects", value))
}

fn text(field: &'static str, value: ValueRef<'_>) -> Result<String, MetadataError> {
    value.as_str().map(str::to_owned).ok_or_else(|| misfit(field, "string", value))
}

fn misfit(field: &'static str, expected: &'static str, found: ValueRef<'_>) -> MetadataError {
    MetadataError::Type { field, expected, found: found.kind().alias() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_may_be_missing() {
        assert_eq!(Metadata::parse("").expect("nothing"), Metadata::default());
        assert_eq!(Metadata::parse("{}").expect("empty"), Metadata::default());
        let nulls = r#"{"options":null,"indexes":null,"uuid":null,"future":[1]}"#;
        assert_eq!(Metadata::parse(nulls).expect("nulls"), Metadata::default());
        assert_eq!(Metadata::default().to_json(), r#"{"indexes":[],"collectionName":""}"#);
    }

    #[test]
    fn errors_name_the_field() {
        for (json, message) in [
            (r#"{"options":1}"#, "invalid metadata: 'options' is of type int, expected object"),
            (r#"{"indexes":{}}"#, "invalid metadata: 'indexes' is of type object, expected array"),
            (r#"{"indexes":[1]}"#, "invalid metadata: 'indexes' is of type int, expected array of objects"),
            (r#"{"uuid":{"$numberInt":"1"}}"#, "invalid metadata: 'uuid' is of type int, expected string"),
            ("{", "invalid metadata: invalid Extended JSON at line 1, column 2: expected a field name, found the end"),
        ] {
            assert_eq!(Metadata::parse(json).expect_err(json).to_string(), message);
        }
    }

    #[test]
    fn the_first_versions_extended_json_is_read() {
        let json = r#"{"options":{"size":{"$numberLong":"4096"}},"indexes":[{"v":1,"key":{"a":1.0},"name":"a_1","ns":"d.c"}]}"#;
        let metadata = Metadata::parse(json).expect("old form");
        assert_eq!(
            metadata.to_json(),
            r#"{"options":{"size":{"$numberLong":"4096"}},"indexes":[{"v":{"$numberInt":"1"},"key":{"a":{"$numberDouble":"1.0"}},"name":"a_1","ns":"d.c"}],"collectionName":""}"#
        );
    }
}
