//! One entry of `nsInfo`: a collection that operations name by its position.

use crate::collection_uuid;
use bunko_bson::DocumentRef;
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::Result;
use bunko_request::field_kinds::{Field, Kind, field};
use bunko_request::fields::Fields;
use bunko_request::statement::{required_value, statement};

const NAMESPACE_FIELDS: &[Field] =
    &[field("ns", Kind::Text), field("collectionUUID", Kind::Uuid), field("encryptionInformation", Kind::Object)];

/// One entry of `nsInfo`.
pub(in crate::commands) struct NamespaceInfo {
    pub(in crate::commands) namespace: Namespace,
    /// The `collectionUUID` that the collection must have.
    uuid: Option<[u8; 16]>,
}

/// Reads an entry of `nsInfo`.
pub(super) fn parse_target(info: DocumentRef<'_>) -> Result<NamespaceInfo> {
    let fields: Fields<'_> = statement("bulkWrite.nsInfo", info, NAMESPACE_FIELDS)?;
    let name = required_value(&fields, "ns")?;
    let name = name.as_str().ok_or_else(|| fields.mismatch("ns", name, "type 'string'"))?;
    if fields.field("encryptionInformation").is_some() {
        return Err(fields.unsupported("encryptionInformation"));
    }
    let uuid = collection_uuid::parse(&fields)?;
    Ok(NamespaceInfo { namespace: Namespace::parse(name)?, uuid })
}

impl NamespaceInfo {
    /// Refuses a collection whose UUID is not the given one.
    /// # Errors
    /// As [`collection_uuid::check`].
    pub(in crate::commands) fn check_uuid(&self, catalog: &Catalog) -> Result<()> {
        collection_uuid::check(catalog, &self.namespace, self.uuid)
    }
}
