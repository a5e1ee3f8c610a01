//! All that a catalog and its store say, as text, to compare two of them.

use super::writes::STRAY;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Collection, Namespace, WRITE_HISTORIES};
use bunko_operation::OperationContext;
use bunko_store::{Direction, KeyspaceId, Lsn, RecordRange, View};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The record store of the catalog itself.
const CATALOG: KeyspaceId = KeyspaceId(0);

/// The description of a catalog.
pub struct Described {
    /// Texts by what they describe.
    texts: BTreeMap<String, String>,
    /// Exclusive upper bound of record ids by collection.
    record_ids: BTreeMap<String, u64>,
}

/// Number of users.
pub fn users(catalog: &Catalog) -> u64 {
    let namespace = Namespace::new("admin", "system.users").expect("valid");
    catalog.collection(&namespace).map_or(0, |users| users.count())
}

/// Checks that views see the chains whose last record is applied, and nothing of others. `chains` has the number,
/// the position and the length of each.
pub fn assert_chains_are_whole(catalog: &Catalog, chains: &[(i32, Lsn, i32)]) {
    let (view, mut seen) = (catalog.store().snapshot(), BTreeMap::new());
    let mut cursor = view.records(STRAY, RecordRange::ALL, Direction::Forward);
    while let Some((_, _, bytes)) = cursor.next().expect("readable") {
        let document = DocumentRef::parse(bytes).expect("a document");
        let (Some(ValueRef::Int32(chain)), Some(ValueRef::Int32(of))) = (document.get("chain"), document.get("of"))
        else {
            panic!("a promise is broken: {document:?}")
        };
        *seen.entry((chain, of)).or_insert(0) += 1;
    }
    let visible = chains.iter().filter(|(_, lsn, _)| *lsn < view.lsn());
    let expected: BTreeMap<_, _> = visible.map(|(chain, _, length)| ((*chain, *length), *length)).collect();
    assert_eq!(seen, expected, "a promise is broken: views see a part of a chain, or none of it");
}

impl Described {
    pub fn of(catalog: &Arc<Catalog>) -> Self {
        let (mut texts, mut record_ids) = (BTreeMap::new(), BTreeMap::new());
        texts.insert("databases".to_owned(), format!("{:?}", catalog.databases()));
        for database in catalog.databases() {
            for collection in catalog.collections(&database) {
                let name = collection.namespace().to_string();
                let by_name = catalog.collection(&collection.namespace()).expect("found by its name");
                let by_uuid = catalog.collection_by_uuid(collection.uuid).expect("found by its UUID");
                assert!(Arc::ptr_eq(&by_name, &collection) && Arc::ptr_eq(&by_uuid, &collection), "{name}");
                texts.insert(name.clone(), describe(&collection));
                record_ids.insert(name, collection.record_ids_end().0);
            }
            let views = catalog.views(&database).expect("readable");
            texts.insert(format!("views of {database}"), format!("{views:?}"));
        }
        for (name, keyspace) in [("catalog", CATALOG), ("write histories", WRITE_HISTORIES), ("chains", STRAY)] {
            texts.insert(name.to_owned(), records(&catalog.store().snapshot(), keyspace));
            texts.insert(format!("{name}: counts"), format!("{:?}", catalog.store().keyspace_statistics(keyspace)));
        }
        let mut remembered = BTreeMap::new();
        catalog.store().remembered(&mut |key, value| drop(remembered.insert(key.to_vec(), value.to_vec())));
        texts.insert("remembered".to_owned(), format!("{remembered:?}"));
        texts.insert("may have views".to_owned(), catalog.may_have_views().to_string());
        Self { texts, record_ids }
    }

    pub fn assert_equal(&self, other: &Self, which: &str) {
        for name in self.texts.keys().chain(other.texts.keys()) {
            let (one, other) = (self.texts.get(name), other.texts.get(name));
            // Once there was a view, a process may suppose that there still are some.
            let is_equal = one == other || name == "may have views";
            assert!(is_equal, "a promise is broken: {which} differ in {name}:\n{one:#?}\n{other:#?}");
        }
    }

    /// Ids that a process has given or seen and that a start does not find any more are not given again.
    pub fn assert_ids_reach(&self, other: &Self) {
        for (name, end) in &other.record_ids {
            let own = self.record_ids.get(name);
            assert!(own >= Some(end), "a promise is broken: {name} would give a record id again: {own:?}, {end}");
        }
    }
}

fn describe(collection: &Collection) -> String {
    let mut text = String::new();
    let options = collection.options();
    writeln!(text, "{:?} {:?} {options:?}", collection.uuid, collection.engine).expect("written");
    for index in collection.indexes().iter() {
        let statistics = collection.index_statistics(index);
        let multikey = index.multikey();
        let filter = index.partial_filter.is_some();
        writeln!(
            text,
            "index {:?} {:?} {:?} {filter} {multikey:?} {statistics:?}",
            index.document,
            index.keyspace,
            index.state()
        )
        .expect("written");
    }
    for index in collection.search_indexes().iter() {
        writeln!(text, "search index {} {} {:?}", index.name, index.version, index.sent).expect("written");
    }
    writeln!(text, "{} documents of {} bytes", collection.count(), collection.data_bytes()).expect("written");
    let validation = collection.validate(&*OperationContext::unlimited()).expect("readable");
    assert!(validation.is_valid(), "a promise is broken: {}: {validation:?}", collection.namespace());
    text.push_str(&records(&collection.snapshot(), collection.records()));
    text
}

fn records(view: &dyn View, keyspace: KeyspaceId) -> String {
    let mut text = String::new();
    let mut cursor = view.records(keyspace, RecordRange::ALL, Direction::Forward);
    while let Some((record, location, bytes)) = cursor.next().expect("readable") {
        let document = DocumentRef::parse(bytes).expect("a document");
        writeln!(text, "{} {} {document:?}", record.0, location.position).expect("written");
    }
    text
}
