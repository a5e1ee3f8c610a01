//! Databases, collections and indexes: the only way to the store.
//!
//! A keyspace is a number: one for each collection's records and one for each of its indexes. Keyspace 0 has the
//! catalog itself: one document for each collection (namespace, UUID, options, keyspaces, indexes, and for each index
//! whether it is ready and on which paths documents have arrays), and one that counts keyspaces.
//!
//! **Invariant:** the batch that changes a document also changes its index keys.
//! **Invariant:** a unique key is looked up and put while its lock is held.
//! **Invariant:** storage errors become [`bunko_errors::Failure`]s here and nowhere else.
//! **Invariant:** nothing above this crate writes a key of its own making.
//! **Invariant:** a keyspace number is never used twice.
//! **Invariant:** while an index is built, a key goes only with the record that it leads to (`building`).
//! **Invariant:** before an index gets its first key that is longer than trees take, its record says so (`long_key`).
#![forbid(unsafe_code)]

mod absorb;
mod array_walk;
mod build_notes;
mod build_queue;
mod building;
mod bulk_insert;
mod cap;
mod capped;
mod capped_copy;
mod catalog;
mod change;
mod change_several;
mod collection;
mod collection_reads;
mod commit;
mod delta;
mod directory;
mod dropping;
mod duplicate_key;
mod effects;
mod encrypted_fields;
mod engine_choice;
mod failure;
mod following;
mod gathered_keys;
mod geo_index;
mod index;
mod index_build;
mod index_filters;
mod index_keys;
mod index_kind;
mod index_rebuild;
mod index_set;
mod index_spec;
mod insert;
mod key_list;
mod key_pattern;
mod key_sample;
mod key_sampling;
mod key_types;
mod kinds;
mod listing;
mod long_key;
mod move_across;
mod multikey;
mod namespace;
mod new_documents;
mod notes;
mod partial_filter;
mod past;
mod persistence;
mod plan_cache;
mod random_places;
mod remark;
mod rename;
mod resumed_build;
mod retry;
mod rollback;
mod search_index;
mod search_index_set;
mod search_tables;
pub mod stored_document;
mod subscribers;
mod taken;
mod transaction;
mod unique_conversion;
mod user_writes;
mod validation;
mod validator;
mod vector_tables;
mod verdict;
mod views;
mod waiting;
mod write;

pub use build_queue::IndexBuilds;
pub use capped_copy::CappedCopy;
pub use catalog::{Catalog, CreateOptions};
pub use change::{Target, dropped};
pub use change_several::{ChangedTogether, DecideOne, FoundRecords};
pub use collection::Collection;
pub use dropping::DropOutcome;
pub use encrypted_fields::EncryptedFields;
pub use engine_choice::EngineChoice;
pub use failure::from_storage;
pub use following::{SearchIndexStanding, SearchIndexVersion};
pub use geo_index::{GeoField, KeySpan, NumberSpan, Reach, Surface};
pub use index::{Index, IndexState};
pub use index_filters::{INDEX_FILTERS_MAX, IndexFilter, IndexFilters};
pub use index_keys::{IndexKeys, exact_key, index_keys, is_shortened};
pub use index_kind::{Answers, IndexKind, KeySet};
pub use index_set::{IndexesCreated, IndexesDropped};
pub use index_spec::{ID_INDEX, IndexSpec};
pub use key_pattern::{IndexField, KeyForm};
pub use key_sample::{Counted, Estimate, KeySample, SampledIndex};
pub use key_types::{KeyKinds, KeyTypes, ReadBack};
pub use kinds::TextIndex;
pub use long_key::{KEY_PREFIX_BYTES, shorten_key};
pub use move_across::Move;
pub use multikey::Multikey;
pub use namespace::{Namespace, check_database};
pub use new_documents::{Inserted, Order};
pub use notes::Note;
pub use partial_filter::PartialFilter;
pub use past::{KEPT_STATES_MAX, PastStates, Reading, SNAPSHOT_WINDOW_S, SnapshotRead, StateAsked};
pub use plan_cache::{CachedEstimate, CachedPlan, CachedWay, PlanCache};
pub use random_places::RandomPlaces;
pub use rename::RenameTarget;
pub use resumed_build::{InterruptedBuild, UnfinishedBuild, UnfinishedFate};
pub use retry::{
    Did, Image, NOBODY, Outcome, RetryableWrite, SessionName, SessionUuid, StatementNumbers, WRITE_HISTORIES,
    WriteHistories, WriteHistory,
};
pub use rollback::Truncated;
pub use search_index::{SEARCH_INDEXES_MAX, SearchIndex, SearchIndexes};
pub use search_tables::{SEARCH_BYTES_MAX, SearchMemory};
pub use subscribers::AbsorbHook;
pub use transaction::{
    Haste, Return, TRANSACTION_BYTES_MAX, Transaction, TransactionMemory, TransactionState, TransactionStatistics, Turn,
};
pub use unique_conversion::Conversion;
pub use validation::Validation;
pub use validator::check_validator;
pub use vector_tables::{VECTOR_BYTES_MAX, VectorMemory};
pub use verdict::Verdict;
pub use views::ViewDefinition;
