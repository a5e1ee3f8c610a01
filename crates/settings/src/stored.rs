//! Settings of the server itself, stored as documents in its own collections.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::Result;

/// The document of that name, if one is stored.
/// # Errors
/// If it cannot be read.
pub fn find_stored(catalog: &Catalog, database: &str, collection: &str, name: &str) -> Result<Option<DocumentBuf>> {
    let Some(collection) = catalog.collection(&Namespace::new(database, collection)?) else { return Ok(None) };
    let mut document = Vec::new();
    let found = collection.find_latest(ValueRef::String(name), &mut document)?;
    Ok(found.map(|_| DocumentRef::trusted(&document).to_owned()))
}
