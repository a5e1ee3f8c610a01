//! Collections in a store that lives as long as the test.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Collection, IndexSpec, Namespace, Order};
use bunko_engines::{EngineOptions, Entry};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_query::{FindQuery, Hint, QueryScope, parse_count, parse_limit};
use bunko_store::{Store, StoreOptions};
use bunko_testkit::shell;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub struct Database {
    pub catalog: Arc<Catalog>,
    // Dropped last, since the store writes to the directory until it is dropped.
    _directory: tempfile::TempDir,
}

pub fn document(text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

impl Database {
    pub fn open(engine: &Entry) -> Self {
        let directory = tempfile::tempdir().expect("temporary directory");
        let engines = bunko_engines::table(engine, &EngineOptions::default());
        let store = Store::open(directory.path(), StoreOptions::at_rest(), engines).expect("opens");
        let uuids = AtomicU64::new(0);
        let new_uuid = move || u128::from(uuids.fetch_add(1, Ordering::Relaxed)).to_le_bytes();
        let catalog = Catalog::open(store, Box::new(new_uuid)).expect("an empty catalog");
        Self { catalog, _directory: directory }
    }

    pub fn collection(&self, name: &str) -> Arc<Collection> {
        self.catalog.collection_or_create(&namespace(name), &*OperationContext::unlimited()).expect("created")
    }

    pub fn insert(&self, name: &str, text: &str) -> Result<()> {
        let document = document(text);
        let bytes = Cow::Borrowed(document.as_ref().as_bytes());
        let mut inserted =
            self.catalog.insert(&namespace(name), &[bytes], Order::Ordered, &*OperationContext::unlimited())?;
        inserted.failures.pop().map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// Inserts documents, a thousand at a time.
    pub fn insert_all(&self, name: &str, documents: impl Iterator<Item = DocumentBuf>) {
        let documents: Vec<DocumentBuf> = documents.collect();
        for some in documents.chunks(1_000) {
            let bytes: Vec<_> = some.iter().map(|document| Cow::Borrowed(document.as_ref().as_bytes())).collect();
            let unlimited = OperationContext::unlimited();
            let inserted = self.catalog.insert(&namespace(name), &bytes, Order::Ordered, &*unlimited);
            assert!(inserted.expect("inserted").failures.is_empty());
        }
    }

    /// Builds an index named after its key pattern.
    pub fn index(&self, name: &str, key: &DocumentBuf, options: &DocumentBuf) -> Result<()> {
        let parts: Vec<String> =
            key.as_ref().iter().map(|field| format!("{}_{}", field.name, shell::print(field.value))).collect();
        let mut spec = DocumentBuf::new().with("key", key).with("name", parts.join("_").as_str());
        spec.extend(options.as_ref());
        self.catalog
            .create_indexes(
                &self.collection(name),
                &[IndexSpec::parse(spec.as_ref())?],
                &*OperationContext::unlimited(),
            )
            .map(drop)
    }
}

pub fn namespace(name: &str) -> Namespace {
    Namespace::new("test", name).expect("a valid name")
}

/// Reads the fields of a find command.
pub fn find_query(find: DocumentRef<'_>) -> Result<FindQuery> {
    find_query_of(find, QueryScope::new(0, OperationContext::unlimited()))
}

/// As [`find_query`], within a scope.
pub fn find_query_of(find: DocumentRef<'_>, scope: QueryScope) -> Result<FindQuery> {
    let part = |name| find.get(name).and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let mut query = FindQuery::new(part("filter"), Arc::new(scope))?;
    if let Some(hint) = find.get("hint") {
        query.hint = Hint::parse(hint)?;
    }
    query.set_sort(part("sort"))?;
    query.set_key_bounds(part("min"), part("max"));
    query.set_projection(part("projection"))?;
    query.returns_keys = find.get("returnKey").is_some();
    if find.get("showRecordId").is_some() {
        query.show_record_ids();
    }
    if find.get("projectionOnly").is_some() {
        query.needs_only_projected();
    }
    if let Some(needed) = find.get("needed").and_then(ValueRef::as_array) {
        query.needed = Some(needed.iter().filter_map(ValueRef::as_str).map(Box::from).collect());
    }
    query.skip = find.get("skip").map_or(Ok(0), |skip| parse_count("skip", skip))?;
    query.limit = find.get("limit").map_or(Ok(None), parse_limit)?;
    Ok(query)
}
