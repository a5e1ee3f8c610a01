//! Users and roles of one database. They are all stored in `admin`.

use super::plan::{Kind, Order, Planned};
use super::ranges::Range;
use bunko_archive::metadata::Metadata;
use bunko_bson::DocumentBuf;

/// The parts of `admin` that go with a database, under the names that the classic tool gives them there.
/// Source: MongoDB Database Tools manual, "mongodump --dumpDbUsersAndRoles".
pub(super) fn planned(database: &str) -> Vec<Planned> {
    let of_database = || Some(DocumentBuf::new().with("db", database));
    let parts = [("system.users", of_database()), ("system.roles", of_database()), ("system.version", None)];
    let planned = parts.into_iter().map(|(source, filter)| {
        let collection = format!("$admin.{source}");
        let kind = Some("collection".to_owned());
        let metadata = Metadata { collection_name: collection.clone(), kind, ..Metadata::default() };
        Planned {
            database: database.to_owned(),
            metadata_name: collection.clone(),
            collection,
            source_database: "admin".into(),
            source_collection: source.into(),
            filter,
            kind: Kind::Authorisation,
            metadata: metadata.to_json(),
            documents: 0,
            size_bytes: 0,
            order: Order::Found,
            ranges: vec![Range::whole()],
        }
    });
    planned.collect()
}
