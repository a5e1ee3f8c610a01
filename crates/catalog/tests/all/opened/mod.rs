//! Catalogs over real stores.

use bunko_bson::DocumentBuf;
use bunko_catalog::{Catalog, IndexSpec, Namespace};
use bunko_engines::{EngineOptions, Entry};
use bunko_store::{Store, StoreOptions, Survival};
use std::path::Path;
use std::sync::Arc;

pub fn open(path: &Path, engine: &Entry) -> Arc<Catalog> {
    open_with(path, engine, &EngineOptions::default())
}

pub fn open_with(path: &Path, engine: &Entry, engine_options: &EngineOptions) -> Arc<Catalog> {
    let store = Store::open(path, StoreOptions::at_rest(), bunko_engines::table(engine, engine_options));
    Catalog::open(store.expect("the store opens"), Box::new(|| [7; 16])).expect("the catalog opens")
}

/// Whether an engine's collections survive a restart of the server.
pub fn survival(engine: &str) -> Survival {
    let entry = bunko_engines::find(engine).expect("an engine of the table");
    (entry.kind)(&EngineOptions::default()).survival
}

pub fn namespace(name: &str) -> Namespace {
    Namespace::new("db", name).expect("valid")
}

pub fn spec(field: &str) -> IndexSpec {
    let key = DocumentBuf::new().with(field, 1_i32);
    IndexSpec::parse(DocumentBuf::new().with("key", &key).with("name", field).as_ref()).expect("valid")
}
