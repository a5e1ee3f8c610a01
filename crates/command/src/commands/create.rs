//! `create`: creates a collection, a view or a time series. Options that Bunko does not have are refused by name.

mod time_series;

use crate::authorization::Privileges;
use crate::authorization::privileges_of;
use crate::capped_options::{self, CappedOptions};
use crate::clustered_index;
use crate::collation_option;
use crate::collection_options::pre_and_post_images;
use crate::command_entry::Command;
use crate::encrypted_fields;
use crate::expiry_option::{self, CollectionState, Expiry};
use crate::id_index_option;
use crate::invocation::Invocation;
use crate::storage_engine_option;
use crate::system_namespace::check_creatable_by_name;
use crate::validation_options::ValidationOptions;
use bunko_authority::audit::{AuditEvent, Event};
use bunko_authority::privileges::collections;
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayRef, BinarySubtype, Collator, DocumentBuf, DocumentRef, ValueRef, Writer, order};
use bunko_catalog::{Collection, CreateOptions, Namespace};
use bunko_errors::{ErrorCode, Failure};
use bunko_pipelines::view_definition;
use bunko_request::Request;
use bunko_request::facts::{Changes, CommandFacts, Stability, TransactionUse, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use bunko_timeseries::BUCKETS_PREFIX;

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "create",
        fields: &[
            field("capped", Kind::BooleanLike),
            field("autoIndexId", Kind::BooleanLike),
            field("idIndex", Kind::Object),
            field("size", Kind::NumberWithin(1, capped_options::BYTES_MAX)),
            field("max", Kind::NumberWithin(i64::MIN, capped_options::DOCUMENTS_MAX)),
            field("storageEngine", Kind::Object),
            field("validator", Kind::Object),
            field("validationLevel", Kind::Choice(&["off", "strict", "moderate"])),
            field("validationAction", Kind::Choice(&["error", "warn", "errorAndLog"])),
            field("indexOptionDefaults", Kind::Object),
            field("viewOn", Kind::Text),
            field("pipeline", Kind::Objects),
            field("collation", Kind::Object),
            field("timeseries", Kind::Object),
            field("clusteredIndex", Kind::OneOf(clustered_index::TYPES)),
            field("expireAfterSeconds", Kind::Number),
            field("changeStreamPreAndPostImages", Kind::Object),
            field("encryptedFields", Kind::Object),
            field("temp", Kind::BooleanLike),
        ],
        transaction: TransactionUse::Anywhere,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        stable_api: Stability::Version1 {
            fields_outside: &[
                "autoIndexId",
                "changeStreamPreAndPostImages",
                "indexOptionDefaults",
                "max",
                "size",
                "storageEngine",
                "temp",
            ],
        },
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(|asker, request| collections::create(asker, request, privileges_of)),
    audit: AuditEvent::Of(events),
    run,
};

fn events(request: &Request<'_>) -> Vec<Event> {
    vec![Event::of_collection("createCollection", request).with_fields(request.body, &["viewOn", "pipeline"])]
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    create(invocation, None)?;
    if parse_deprecated(invocation) {
        reply.append("note", "The option autoIndexId is deprecated");
    }
    Ok(())
}

/// Whether an option is given that MongoDB calls deprecated.
fn parse_deprecated(fields: &Fields<'_>) -> bool {
    fields.field("autoIndexId").is_some()
}

/// The options that decide what is created, and those that exclude each other.
struct Create<'a> {
    is_temporary: bool,
    view_on: Option<&'a str>,
    pipeline: Option<ArrayRef<'a>>,
    time_series: Option<DocumentRef<'a>>,
    capped: CappedOptions,
    storage_engine: Option<ValueRef<'a>>,
    expires: bool,
    is_clustered: bool,
    is_encrypted: bool,
    /// An option that a view refuses.
    not_with_view: Option<&'static str>,
}

impl<'a> Create<'a> {
    /// # Errors
    /// MongoDB's codes for fields of the wrong type.
    fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
        Ok(Self {
            is_temporary: fields.boolean("temp", false)?,
            view_on: fields.string("viewOn")?,
            pipeline: fields.array("pipeline")?,
            time_series: fields.document("timeseries")?,
            capped: CappedOptions::parse(fields)?,
            storage_engine: fields.field("storageEngine"),
            expires: fields.field(expiry_option::NAME).is_some(),
            is_clustered: fields.field("clusteredIndex").is_some(),
            is_encrypted: fields.field("encryptedFields").is_some(),
            not_with_view: NOT_WITH_VIEW.iter().find(|option| fields.field(option).is_some()).copied(),
        })
    }

    /// Refuses options that need another option that is missing.
    fn check_dependent(&self, is_clustered: bool) -> Result<(), Failure> {
        let CappedOptions { is_capped, size, documents } = self.capped;
        if is_capped && size.is_none() {
            return Err(invalid_options("the 'size' field is required when 'capped' is true"));
        }
        if !is_capped && (size.is_some() || documents.is_some()) {
            return Err(invalid_options(
                "the 'capped' field needs to be true when either the 'size' or 'max' fields are present",
            ));
        }
        if self.pipeline.is_some() && self.view_on.is_none() {
            return Err(invalid_options("'pipeline' requires 'viewOn' to also be specified"));
        }
        if self.expires && !is_clustered {
            return Err(invalid_options(
                "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' \
                 option is specified",
            ));
        }
        Ok(())
    }
}

/// Creates the collection with the given UUID, or with a new one. Without a UUID it is not an error if the collection
/// exists with these options.
pub(super) fn create(invocation: &mut Invocation<'_>, uuid: Option<[u8; 16]>) -> Result<(), Failure> {
    let namespace = invocation.namespace()?;
    let request = Create::parse(invocation)?;
    if request.is_temporary {
        return Err(invalid_options("the 'temp' field is for the server's own use"));
    }
    if let (Some(name), Some(option)) = (namespace.collection().strip_prefix(BUCKETS_PREFIX), request.time_series) {
        // A collection of buckets is created together with its time series.
        let series = Namespace::new(namespace.database(), name)?;
        return time_series::create(invocation, &series, option, request.capped);
    }
    if namespace.collection() != "system.views" {
        check_creatable_by_name(&namespace)?;
    }
    if let Some(view_on) = request.view_on {
        return create_view(invocation, &namespace, &request, view_on);
    }
    if let Some(option) = request.time_series {
        return time_series::create(invocation, &namespace, option, request.capped);
    }
    create_collection(invocation, &namespace, &request, uuid)
}

fn create_collection(
    invocation: &mut Invocation<'_>,
    namespace: &Namespace,
    request: &Create<'_>,
    uuid: Option<[u8; 16]>,
) -> Result<(), Failure> {
    let clustered = clustered_index::parse(invocation, request.capped)?;
    request.check_dependent(clustered.is_some())?;
    let expiry = Expiry::parse(invocation, CollectionState::New, invocation.service.world.now_ms())?;
    let strings = collation_option::of_collection(invocation)?;
    let id_version = id_index_option::check(invocation, namespace, &strings)?;
    let validation = ValidationOptions::parse(invocation)?;
    validation.check(invocation, namespace)?;
    let images = pre_and_post_images(invocation)?;
    storage_engine_option::check_of_indexes(invocation, invocation.service.catalog.store())?;
    let encrypted = encrypted_fields::of_collection(invocation, namespace, &validation, request.capped)?;
    let mut create = CreateOptions {
        engine: storage_engine_option::parse(invocation, invocation.service.catalog.store())?,
        uuid,
        id_version,
        ..CreateOptions::default()
    };
    if create.engine.is_some()
        && let Some(given) = request.storage_engine
    {
        create.options.append("storageEngine", given);
    }
    if let Some(collator) = strings.collator() {
        create.options.append("collation", collator.specification());
    }
    if images == Some(true) {
        create.options.append("changeStreamPreAndPostImages", &DocumentBuf::new().with("enabled", true));
    }
    if let Some(clustered) = &clustered {
        create.options.append("clusteredIndex", clustered);
    }
    if let Some(encrypted) = &encrypted {
        create.options.append("encryptedFields", encrypted);
    }
    create.options = expiry.put_into(create.options.as_ref());
    if validation.are_given() {
        create.options = validation.put_into(create.options.as_ref());
    }
    let CappedOptions { is_capped, size, documents } = request.capped;
    if is_capped {
        create.options = capped_options::put_into(create.options.as_ref(), size, documents);
    }
    let asked = create.options.clone();
    match invocation.service.catalog.create(namespace, create, invocation) {
        Ok((_, lsn)) => invocation.note_written(Some(lsn)),
        // In a transaction an existing collection is an error: the transaction did not create it.
        Err(failure)
            if failure.code() == ErrorCode::NAMESPACE_EXISTS && uuid.is_none() && !invocation.is_of_transaction() =>
        {
            // The oplog has this name, but is not a collection.
            let existing = invocation.collection(namespace).ok_or(failure)?;
            check_same_options(&existing, asked.as_ref())?;
        }
        Err(failure) => return Err(failure),
    }
    Ok(())
}

/// Options that a view refuses. It ignores the other options of collections.
const NOT_WITH_VIEW: &[&str] = &["timeseries", "expireAfterSeconds", "changeStreamPreAndPostImages", "idIndex"];

fn create_view(
    invocation: &mut Invocation<'_>,
    namespace: &Namespace,
    request: &Create<'_>,
    view_on: &str,
) -> Result<(), Failure> {
    if namespace.collection() == "system.profile" {
        return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, "Cannot create system.profile as a view"));
    }
    if request.is_clustered {
        let message = "The 'clusteredIndex' option is not supported with the 'viewOn' option";
        return Err(Failure::new(ErrorCode(6_026_500), message));
    }
    if request.is_encrypted {
        let message = "'encryptedFields' is not allowed with 'viewOn'";
        return Err(Failure::new(ErrorCode(6_346_401), message));
    }
    if let Some(option) = request.not_with_view {
        return Err(invalid_options(&format!("'{option}' is not allowed with 'viewOn'")));
    }
    let pipeline = request.pipeline.unwrap_or(ArrayRef::EMPTY);
    let strings = collation_option::of_collection(invocation)?;
    let collation = strings.collator().map(Collator::specification);
    let view = view_definition::parse(invocation, namespace, view_on, pipeline, collation)?;
    match invocation.service.catalog.create_view(namespace, &view, invocation) {
        Ok(lsn) => invocation.note_written(lsn),
        Err(failure) if failure.code() == ErrorCode::NAMESPACE_EXISTS => {
            let existing = invocation.service.catalog.view(namespace)?.ok_or(failure)?;
            if !order::compare_documents(existing.document.as_ref(), view.document.as_ref()).is_eq() {
                let options = existing.options();
                let text = ValueText(ValueRef::from(&options));
                let message = format!("namespace {namespace} already exists, but with different options: {text}");
                return Err(Failure::new(ErrorCode::NAMESPACE_EXISTS, message));
            }
        }
        Err(failure) => return Err(failure),
    }
    Ok(())
}

/// Accepts an existing collection that has the requested options.
/// # Errors
/// `NamespaceExists`, with the options of the collection.
fn check_same_options(existing: &Collection, asked: DocumentRef<'_>) -> Result<(), Failure> {
    let actual = existing.options();
    let actual = (*actual).as_ref();
    if order::compare_documents(actual, asked).is_eq() {
        return Ok(());
    }
    let uuid = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &existing.uuid };
    let mut shown = DocumentBuf::new().with("uuid", uuid);
    shown.extend(actual);
    Err(Failure::new(
        ErrorCode::NAMESPACE_EXISTS,
        format!(
            "namespace {} already exists, but with different options: {}",
            existing.namespace(),
            ValueText(ValueRef::Document(shown.as_ref()))
        ),
    ))
}

fn invalid_options(message: &str) -> Failure {
    Failure::new(ErrorCode::INVALID_OPTIONS, message)
}
