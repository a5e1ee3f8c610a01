//! The storage engine of a collection.

use crate::from_storage;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::{Batch, KeyspaceId, Store};

/// An engine of the store, and its settings for a collection's keyspaces. The engine has accepted the settings.
#[derive(Clone, Debug)]
pub struct EngineChoice {
    /// The engine's name.
    pub name: String,
    /// Settings that only the engine understands; empty for defaults.
    pub settings: DocumentBuf,
}

impl EngineChoice {
    /// The store's own engine, with default settings.
    pub fn own(store: &Store) -> Self {
        Self { name: store.engine_name().to_owned(), settings: DocumentBuf::new() }
    }

    /// The engine with this name. It is opened if necessary.
    /// # Errors
    /// `InvalidOptions` for an engine that the store does not have, or settings that the engine refuses.
    pub fn checked(store: &Store, name: &str, settings: DocumentRef<'_>) -> Result<Self> {
        let engine = store.engine(name).map_err(from_storage)?;
        engine.check_settings(settings).map_err(|sentence| {
            Failure::new(ErrorCode::INVALID_OPTIONS, format!("storageEngine.{name}: {sentence}"))
        })?;
        Ok(Self { name: name.to_owned(), settings: settings.to_owned() })
    }

    /// Adds the creation of a keyspace of the collection to a batch.
    pub(crate) fn create_keyspace(&self, batch: &mut Batch<'_>, keyspace: KeyspaceId) {
        let settings = self.settings.as_ref();
        batch.create_keyspace(keyspace, &self.name, if settings.is_empty() { &[] } else { settings.as_bytes() });
    }
}
