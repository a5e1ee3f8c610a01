//! `createIndexes`: builds indexes, and creates the collection if it does not exist.

use crate::authorization::Privileges;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::commit_quorum;
use crate::encrypted_fields;
use crate::invocation::Invocation;
use crate::storage_engine_option;
use crate::system_namespace::check_creatable;
use crate::target::Target;
use bunko_access::Action;
use bunko_authority::audit::{AuditEvent, Event};
use bunko_authority::privileges::entries;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_catalog::{Collection, Index, IndexSpec, IndexesCreated, Namespace};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::Request;
use bunko_request::facts::{
    Changes, CommandFacts, IndexBuildUse, Stability, TransactionUse, UnstoredUse, WriteConcernUse,
};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_series::Series;
use bunko_session::Halt;
use bunko_timeseries::BUCKETS_PREFIX;
use std::sync::Arc;

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "createIndexes",
        fields: &[
            field("indexes", Kind::Array),
            field("commitQuorum", Kind::Own),
            field("ignoreUnknownIndexOptions", Kind::BooleanLike),
            field("collectionUUID", Kind::Uuid),
            field("v", Kind::Number),
        ],
        transaction: TransactionUse::Anywhere,
        sequences: &["indexes"],
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        stable_api: Stability::Version1 { fields_outside: &["ignoreUnknownIndexOptions"] },
        unstored: UnstoredUse::RefusedAsIndexBuild,
        index_build: IndexBuildUse::Builds,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::CreateIndex),
    audit: AuditEvent::Of(events),
    run,
};

/// Largest collection, in documents and bytes, over which an index is built without noticeable delay.
const DOCUMENTS_SHORT_MAX: u64 = 500;
const BYTES_SHORT_MAX: u64 = 64 << 10;
/// Attempts, if the collection is dropped before the first index exists.
const ATTEMPTS_MAX: u32 = 100;

/// Size of an index's parsed options, as a multiple of their document's size. A partial filter takes the most.
const SPEC_PARTS: usize = 32;

/// One event for each index.
fn events(request: &Request<'_>) -> Vec<Event> {
    let event = |spec: DocumentRef<'_>| {
        let name = spec.get("name").and_then(ValueRef::as_str).unwrap_or_default();
        let mut event = Event::of_collection("createIndex", request);
        event.param.append("indexName", name).append("indexSpec", ValueRef::Document(spec));
        event
    };
    entries(request, "indexes").into_iter().map(event).collect()
}

struct CreateIndexes<'a> {
    /// The specifications of the indexes.
    specs: Vec<DocumentRef<'a>>,
    quorum: Option<ValueRef<'a>>,
    /// Whether unknown options of a specification are left out.
    ignores_unknown: bool,
    /// The expected UUID of the collection.
    uuid: Option<[u8; 16]>,
}

impl<'a> CreateIndexes<'a> {
    /// # Errors
    /// MongoDB's codes for fields of the wrong type and for missing `indexes`.
    fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
        Ok(Self {
            specs: fields.documents("indexes")?,
            quorum: fields.field("commitQuorum"),
            ignores_unknown: fields.boolean("ignoreUnknownIndexOptions", false)?,
            uuid: collection_uuid::parse(fields)?,
        })
    }
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    // A collection of buckets may have indexes of its own once it exists.
    let are_buckets = namespace.collection().starts_with(BUCKETS_PREFIX);
    if !are_buckets || invocation.collection(&namespace).is_none() {
        check_creatable(&namespace)?;
    }
    let request = CreateIndexes::parse(invocation)?;
    if let Some(quorum) = request.quorum {
        commit_quorum::check(invocation.service.replica_set.as_deref(), quorum)?;
    }
    let target = Target::of(&invocation.service.catalog, invocation, &namespace)?;
    let series = target.series();
    let specs = specs(invocation, &request, series)?;
    if namespace.is_of_system() && specs.iter().any(|spec| spec.is_hidden) {
        return Err(Failure::bad_value("can't hide index on system collection").into());
    }
    // The `_id` index of the buckets is not an index of the time series.
    let hidden = usize::from(series.is_some());
    collection_uuid::check(&invocation.service.catalog, &namespace, request.uuid)?;
    let (created, was_created) = create(invocation, &namespace, series, &specs)?;
    reply
        .append("numIndexesBefore", (created.before - hidden) as i32)
        .append("numIndexesAfter", (created.after - hidden) as i32);
    // The reply has the `note`, or tells whether the collection was created, or both.
    if was_created || created.lsn.is_some() {
        reply.append("createdCollectionAutomatically", was_created);
    }
    if created.lsn.is_none() {
        reply.append("note", "all indexes already exist");
    }
    Ok(())
}

/// Creates the indexes, and the collection if there is none. Returns whether it created the collection.
fn create(
    invocation: &mut Invocation<'_>,
    namespace: &Namespace,
    series: Option<&Series>,
    specs: &[IndexSpec],
) -> Result<(IndexesCreated, bool), Halt> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let existing = match series {
            Some(series) => Some(Arc::clone(&series.buckets)),
            None => invocation.collection_not_view(namespace)?,
        };
        invocation.refuse_if_long(existing.as_ref().is_some_and(|collection| is_long(collection)))?;
        let was_missing = existing.is_none();
        let (collection, creation) = match existing {
            Some(collection) => (collection, None),
            None => invocation.service.catalog.find_or_create(namespace, invocation)?,
        };
        invocation.note_written(creation);
        if let Some(encrypted) = collection.encrypted_fields() {
            for spec in specs {
                encrypted_fields::check_index(&encrypted, spec.key_pattern())?;
            }
        }
        match invocation.service.catalog.create_indexes(&collection, specs, invocation) {
            // The collection was dropped before the first index existed. Another one may have its name by now.
            Err(failure)
                if failure.code() == ErrorCode::NAMESPACE_NOT_FOUND
                    && collection.is_dropped()
                    && series.is_none()
                    && attempt < ATTEMPTS_MAX => {}
            other => {
                let created = other?;
                invocation.note_written(created.lsn);
                if created.lsn.is_some() {
                    note_counted_since(invocation, &collection, specs);
                }
                return Ok((created, was_missing));
            }
        }
    }
}

/// Notes the time from which the uses of new indexes are counted.
fn note_counted_since(invocation: &Invocation<'_>, collection: &Collection, specs: &[IndexSpec]) {
    let now_ms = invocation.service.world.now_ms();
    let indexes = collection.indexes();
    let is_new = |index: &&Arc<Index>| specs.iter().any(|spec| spec.name == index.name) && index.uses() == 0;
    indexes.iter().filter(is_new).for_each(|index| index.note_counted_since(now_ms));
}

fn is_long(collection: &Collection) -> bool {
    collection.count() > DOCUMENTS_SHORT_MAX || collection.data_bytes() > BYTES_SHORT_MAX
}

fn specs(
    invocation: &Invocation<'_>,
    request: &CreateIndexes<'_>,
    series: Option<&Series>,
) -> Result<Vec<IndexSpec>, Failure> {
    let documents = &request.specs;
    let spec_bytes: usize = documents.iter().map(|document| document.len_bytes()).sum();
    invocation.operation().will_take(SPEC_PARTS * spec_bytes)?;
    if documents.is_empty() {
        return Err(Failure::bad_value("Must specify at least one index to create"));
    }
    documents
        .iter()
        .map(|document| {
            let parsed = parse_spec(*document, request.ignores_unknown, series);
            let parsed =
                parsed.and_then(|spec| storage_engine_option::check_of_index(spec.document.as_ref()).map(|()| spec));
            parsed.map_err(|failure| {
                let text = ValueText(ValueRef::Document(*document));
                failure.with_prefix(&format!("Error in specification {text} :: caused by :: "))
            })
        })
        .collect()
}

fn parse_spec(document: DocumentRef<'_>, ignores_unknown: bool, series: Option<&Series>) -> Result<IndexSpec, Failure> {
    let mut spec = if ignores_unknown { IndexSpec::without_unknown_options(document) } else { document.to_owned() };
    let key = spec.as_ref().get("key").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    if let Some(field) = key.iter().find(|field| field.value.as_str() == Some("2dsphere_bucket")) {
        // Only the server itself makes such an index, from one on measurements.
        let message = format!("Unknown index plugin '{}'", field.value.as_str().unwrap_or_default());
        return Err(Failure::new(ErrorCode::CANNOT_CREATE_INDEX, message));
    }
    if let Some(series) = series {
        spec = bunko_series::of_buckets(spec.as_ref(), &series.options)?;
    }
    IndexSpec::parse_asked(spec.as_ref())
}
