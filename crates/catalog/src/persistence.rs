//! The catalog's records: one document per collection in keyspace 0, and a counter of keyspaces.

use crate::collection::{Collection, Parts};
use crate::index_spec::IndexSpec;
use crate::search_index;
use crate::{EngineChoice, Index, IndexState, KeyTypes, Multikey, Namespace, from_storage};
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::{Batch, Direction, KeyspaceId, RecordId, RecordRange, Store, View};
use std::sync::Arc;

/// The record store of the catalog itself.
pub(crate) const CATALOG: KeyspaceId = KeyspaceId(0);
/// The record with the counter of keyspaces.
pub(crate) const COUNTER: RecordId = RecordId(1);

/// Contents of the catalog's records.
pub(crate) struct Loaded {
    pub collections: Vec<Collection>,
    pub next_keyspace: u32,
    pub next_record: RecordId,
    /// Records of collections that an unfinished rebuild left keyspaces to.
    pub left_by_rebuilds: Vec<RecordId>,
}

/// Keyspaces that an unfinished rebuild left.
pub(crate) struct LeftByRebuild {
    /// The collection's document without these keyspaces.
    pub document: DocumentBuf,
    pub keyspaces: Vec<KeyspaceId>,
}

/// The field with these keyspaces.
const REBUILT: &str = "rebuilt";
/// The field which says that an index's partial filter has the index's order of strings.
const COLLATED_FILTER: &str = "collatedFilter";

/// Reads the whole catalog.
pub(crate) fn load(store: &Arc<Store>) -> Result<Loaded> {
    let next_record = RecordId(COUNTER.0 + 1);
    let mut loaded = Loaded { collections: Vec::new(), next_keyspace: 1, next_record, left_by_rebuilds: Vec::new() };
    let snapshot = store.snapshot();
    let mut cursor = snapshot.records(CATALOG, RecordRange::ALL, Direction::Forward);
    let (mut documents, mut keyspaces) = (Vec::new(), Vec::new());
    while let Some((record, _, bytes)) = cursor.next().map_err(from_storage)? {
        let document = DocumentRef::trusted(bytes);
        if record == COUNTER {
            loaded.next_keyspace = read_counter(document)?;
            continue;
        }
        loaded.next_record = RecordId(record.0 + 1);
        let engine = read_engine(document)?.name;
        if read_rebuilt(document)?.is_some() {
            loaded.left_by_rebuilds.push(record);
        }
        keyspaces.extend(read_keyspaces(document)?.into_iter().map(|keyspace| (keyspace, engine.clone())));
        documents.push((record, document.to_owned()));
    }
    // Must come before a collection looks for its last record, which the routed engine has.
    store.settle(&keyspaces).map_err(from_storage)?;
    for (record, document) in &documents {
        loaded.collections.push(read_collection(store, *record, document.as_ref())?);
    }
    Ok(loaded)
}

/// The keyspaces of a collection and its indexes, including those of an unfinished rebuild.
fn read_keyspaces(document: DocumentRef<'_>) -> Result<Vec<KeyspaceId>> {
    let mut keyspaces = vec![keyspace(document, "records")?];
    for value in document.get("indexes").and_then(ValueRef::as_array).ok_or_else(|| malformed("indexes"))?.iter() {
        keyspaces.push(keyspace(value.as_document().ok_or_else(|| malformed("indexes"))?, "keyspace")?);
    }
    keyspaces.extend(read_rebuilt(document)?.into_iter().flat_map(|left| left.keyspaces));
    Ok(keyspaces)
}

/// The keyspaces that an unfinished rebuild left, as the collection's record lists them now; `None` if it lists none.
pub(crate) fn left_by_rebuild(store: &Store, record: RecordId) -> Result<Option<LeftByRebuild>> {
    let mut document = Vec::new();
    match store.latest().record(CATALOG, record, &mut document).map_err(from_storage)? {
        Some(_) => read_rebuilt(DocumentRef::trusted(&document)),
        None => Ok(None),
    }
}

fn read_rebuilt(document: DocumentRef<'_>) -> Result<Option<LeftByRebuild>> {
    let Some(rebuilt) = document.get(REBUILT) else { return Ok(None) };
    let rebuilt = rebuilt.as_array().ok_or_else(|| malformed(REBUILT))?;
    let read = |value| match value {
        ValueRef::Int64(number) => u32::try_from(number).map(KeyspaceId).map_err(|_| malformed(REBUILT)),
        _ => Err(malformed(REBUILT)),
    };
    let keyspaces = rebuilt.iter().map(read).collect::<Result<_>>()?;
    let mut without = DocumentBuf::new();
    for element in document.iter().filter(|element| element.name != REBUILT) {
        without.append(element.name, element.value);
    }
    Ok(Some(LeftByRebuild { document: without, keyspaces }))
}

/// Adds to a collection's record the keyspaces of a rebuild that are not in use yet.
pub(crate) fn with_rebuilt(record: DocumentBuf, keyspaces: &[KeyspaceId]) -> DocumentBuf {
    record.with(REBUILT, &keyspaces.iter().map(|keyspace| i64::from(keyspace.0)).collect::<ArrayBuf>())
}

fn malformed(field: &str) -> Failure {
    Failure::new(ErrorCode::INTERNAL_ERROR, format!("the catalog's record lacks a well-formed '{field}'"))
}

fn keyspace(document: DocumentRef<'_>, field: &str) -> Result<KeyspaceId> {
    match document.get(field) {
        Some(ValueRef::Int64(number)) => u32::try_from(number).map(KeyspaceId).map_err(|_| malformed(field)),
        _ => Err(malformed(field)),
    }
}

/// The counter of keyspaces in its record.
pub(crate) fn read_counter(document: DocumentRef<'_>) -> Result<u32> {
    keyspace(document, "nextKeyspace").map(|next| next.0)
}

/// Reads a collection from its record, and finds its last record in the store.
pub(crate) fn read_collection(store: &Arc<Store>, record: RecordId, document: DocumentRef<'_>) -> Result<Collection> {
    let mut parts = read_parts(record, document)?;
    let snapshot = store.snapshot();
    let mut cursor = snapshot.records(parts.records, RecordRange::ALL, Direction::Backward);
    if let Some((last, _, _)) = cursor.next().map_err(from_storage)? {
        parts.next_record = RecordId(last.0 + 1);
    }
    drop(cursor);
    Collection::new(Arc::clone(store), parts)
}

/// Reads a collection's record, as if the collection had no documents.
pub(crate) fn read_parts(record: RecordId, document: DocumentRef<'_>) -> Result<Parts> {
    let namespace = document.get("ns").and_then(ValueRef::as_str).ok_or_else(|| malformed("ns"))?;
    let uuid = match document.get("uuid") {
        Some(ValueRef::Binary { bytes, .. }) => bytes.try_into().map_err(|_| malformed("uuid"))?,
        _ => return Err(malformed("uuid")),
    };
    let records = keyspace(document, "records")?;
    let mut indexes = Vec::new();
    for value in document.get("indexes").and_then(ValueRef::as_array).ok_or_else(|| malformed("indexes"))?.iter() {
        indexes.push(Arc::new(read_index(value.as_document().ok_or_else(|| malformed("indexes"))?)?));
    }
    Ok(Parts {
        namespace: Namespace::parse(namespace)?,
        uuid,
        options: document.get("options").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY).to_owned(),
        engine: read_engine(document)?,
        records,
        catalog_record: record,
        indexes,
        search_indexes: search_index::read(document)?,
        next_record: RecordId::FIRST,
    })
}

fn read_engine(document: DocumentRef<'_>) -> Result<EngineChoice> {
    let name = document.get("engine").and_then(ValueRef::as_str).ok_or_else(|| malformed("engine"))?;
    let settings = document.get("engineSettings").and_then(ValueRef::as_document);
    let settings = settings.ok_or_else(|| malformed("engineSettings"))?;
    Ok(EngineChoice { name: name.to_owned(), settings: settings.to_owned() })
}

fn read_index(document: DocumentRef<'_>) -> Result<Index> {
    let spec = document.get("spec").and_then(ValueRef::as_document).ok_or_else(|| malformed("spec"))?;
    let spec = read_spec(spec)?;
    let mut types = if spec.tells_types { read_types(document) } else { KeyTypes::default() };
    if is_true(document, "longKeys") {
        types.note_long_key();
    }
    let multikey = read_multikey(document, types).ok_or_else(|| malformed("multikey"))?;
    let is_ready =
        is_true(document, "ready") && has_present_sort_keys(document, &spec)? && has_collated_filter(document, &spec);
    let state = if is_ready { IndexState::Ready } else { IndexState::Building };
    // An index that is built again gets ordinary keys of a unique index.
    let spec = if is_ready && is_true(document, "converted") { spec.converted() } else { spec };
    let index = Index::new(spec, keyspace(document, "keyspace")?);
    let index = index.with_state(state, multikey);
    Ok(if is_ready { index } else { index.built_by(Arc::default()) })
}

fn is_true(document: DocumentRef<'_>, name: &str) -> bool {
    matches!(document.get(name), Some(ValueRef::Boolean(true)))
}

pub(crate) fn read_spec(spec: DocumentRef<'_>) -> Result<IndexSpec> {
    if !is_true(spec, "clustered") {
        return IndexSpec::parse(spec);
    }
    let name = spec.get("name").and_then(ValueRef::as_str).ok_or_else(|| malformed("name"))?;
    let strings = spec.get("collation").and_then(ValueRef::as_document).map(bunko_collation::parse).transpose()?;
    Ok(IndexSpec::clustered(name).with_strings(&strings.unwrap_or_default()))
}

/// Whether the partial filter of an index compares strings as its keys do. Earlier servers made filters that compared
/// bytes; such an index is built again.
fn has_collated_filter(document: DocumentRef<'_>, spec: &IndexSpec) -> bool {
    spec.strings.is_bytes() || spec.partial_filter.is_none() || is_true(document, COLLATED_FILTER)
}

/// Whether an index has the keys that this process would make; otherwise it is built again.
/// # Errors
/// `IncompatibleCollationVersion` for the `_id` index, without which no document can be found.
fn has_present_sort_keys(document: DocumentRef<'_>, spec: &IndexSpec) -> Result<bool> {
    let is_collated = !spec.strings.is_bytes();
    let found = document.get("sortKeys");
    if !is_collated || matches!(found, Some(ValueRef::Int32(bunko_collation::SORT_KEYS))) {
        return Ok(true);
    }
    if spec.is_id() {
        return Err(Failure::new(
            ErrorCode::INCOMPATIBLE_COLLATION_VERSION,
            format!(
                "the index _id_ of a collection with a collation has sort keys of version {}, and this server makes those \
                 of version {}: dump the collection with the server that wrote it, and restore it",
                found.map_or_else(|| "none".to_owned(), |found| ValueText(found).to_string()),
                bunko_collation::SORT_KEYS
            ),
        ));
    }
    Ok(false)
}

/// Reads the components with arrays, as bits for each field of the index; `None` if they are missing or malformed.
fn read_multikey(document: DocumentRef<'_>, types: KeyTypes) -> Option<Multikey> {
    let bits = document.get("multikey")?.as_array()?;
    let bits = bits.iter().map(|bits| match bits {
        ValueRef::Int64(bits) => Some(bits as u64),
        _ => None,
    });
    bits.collect::<Option<Vec<u64>>>().map(|arrays| Multikey::from_bits(arrays, types))
}

/// The types of an index's values; all types are possible if the server that made the index did not record them.
fn read_types(document: DocumentRef<'_>) -> KeyTypes {
    match document.get("keyTypes") {
        // The highest bit now flags long keys. Servers that did not know them may have set all bits, so it means
        // nothing here.
        Some(ValueRef::Int64(bits)) => KeyTypes::from_bits(bits as u64).without_long_keys(),
        _ => KeyTypes::UNKNOWN,
    }
}

/// A collection's record with this name and these indexes.
pub(crate) fn encode(collection: &Collection, namespace: &Namespace, indexes: &[Arc<Index>]) -> DocumentBuf {
    let is_ready = |index: &Arc<Index>| index.state() == IndexState::Ready;
    encode_with(collection, namespace, indexes, |index| index.multikey(), is_ready)
}

/// As [`encode`], with the arrays and types from `multikey`, and completeness from `is_ready`.
pub(crate) fn encode_with(
    collection: &Collection,
    namespace: &Namespace,
    indexes: &[Arc<Index>],
    multikey: impl Fn(&Arc<Index>) -> Arc<Multikey>,
    is_ready: impl Fn(&Arc<Index>) -> bool,
) -> DocumentBuf {
    let mut encoded_indexes = ArrayBuf::new();
    for index in indexes {
        let multikey = multikey(index);
        let mut document = DocumentBuf::new()
            .with("spec", &index.document)
            .with("keyspace", i64::from(index.keyspace.0))
            .with("ready", is_ready(index))
            .with("multikey", &multikey.bits().iter().map(|bits| *bits as i64).collect::<ArrayBuf>());
        if index.tells_types {
            document.append("keyTypes", multikey.types().without_long_keys().bits() as i64);
        }
        if multikey.types().has_long_keys() {
            document.append("longKeys", true);
        }
        if index.was_converted {
            document.append("converted", true);
        }
        if !index.strings.is_bytes() {
            document.append("sortKeys", bunko_collation::SORT_KEYS);
            if index.partial_filter.is_some() {
                document.append(COLLATED_FILTER, true);
            }
        }
        encoded_indexes.push(&document);
    }
    let mut record = DocumentBuf::new()
        .with("ns", namespace.as_str())
        .with("uuid", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &collection.uuid })
        .with("options", &*collection.options())
        .with("engine", collection.engine.name.as_str())
        .with("engineSettings", &collection.engine.settings)
        .with("records", i64::from(collection.records.0))
        .with("indexes", &encoded_indexes);
    if let Some(search_indexes) = search_index::encode(&collection.search_indexes()) {
        record.append("searchIndexes", &search_indexes);
    }
    record
}

/// A collection's record with other options.
pub(crate) fn with_options(record: DocumentRef<'_>, options: &DocumentBuf) -> DocumentBuf {
    let mut changed = DocumentBuf::new();
    for element in record {
        match element.name {
            "options" => changed.append("options", options),
            name => changed.append(name, element.value),
        };
    }
    changed
}

/// Inserts or replaces a catalog record in a batch.
pub(crate) fn put(store: &Store, batch: &mut Batch<'_>, record: RecordId, document: DocumentBuf) -> Result<()> {
    let mut old = Vec::new();
    match store.latest().record(CATALOG, record, &mut old).map_err(from_storage)? {
        Some(location) => batch.replace_record(CATALOG, record, document.into_bytes(), location),
        None => batch.insert_record(CATALOG, record, document.into_bytes()),
    }
    Ok(())
}

/// Puts the counter of keyspaces into a batch.
pub(crate) fn put_counter(store: &Store, batch: &mut Batch<'_>, next_keyspace: u32) -> Result<()> {
    put(store, batch, COUNTER, DocumentBuf::new().with("nextKeyspace", i64::from(next_keyspace)))
}

/// Deletes a catalog record in a batch.
pub(crate) fn delete(store: &Store, batch: &mut Batch<'_>, record: RecordId) -> Result<()> {
    let mut old = Vec::new();
    if let Some(location) = store.latest().record(CATALOG, record, &mut old).map_err(from_storage)? {
        batch.delete_record(CATALOG, record, location);
    }
    Ok(())
}
