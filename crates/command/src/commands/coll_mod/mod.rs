//! `collMod`: changes the options of a collection, a view or a time series, and refuses options of another kind.

mod index;
mod time_series;
mod view;

use crate::authorization::Privileges;
use crate::authorization::privileges_of;
use crate::capped_options;
use crate::collection_options::pre_and_post_images;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::expiry_option::{self, CollectionState, Expiry};
use crate::invocation::Invocation;
use crate::target::Target;
use crate::validation_options::ValidationOptions;
use bunko_authority::privileges::collections;
use bunko_bson::{DocumentBuf, DocumentRef, Type, ValueRef, Writer};
use bunko_catalog::{Collection, Conversion, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::facts::{Changes, CommandFacts, Stability, WriteConcernUse};
use bunko_request::field_kinds::{Field, Kind, field};
use bunko_request::fields::{Fields, truth};
use bunko_session::Halt;
use index::IndexChange;

/// All options, in MongoDB's order.
const OPTIONS: &[Field] = &[
    field("index", Kind::Object),
    field("validator", Kind::Object),
    field("validationLevel", Kind::Choice(&["off", "strict", "moderate"])),
    field("validationAction", Kind::Choice(&["error", "warn", "errorAndLog"])),
    field("viewOn", Kind::Text),
    field("pipeline", Kind::Objects),
    field("changeStreamPreAndPostImages", Kind::Object),
    field("expireAfterSeconds", Kind::OneOf(&[Type::String, Type::Int64, Type::Int32, Type::Decimal128, Type::Double])),
    field("timeseries", Kind::Object),
    field("cappedSize", Kind::NumberWithin(1, capped_options::BYTES_MAX)),
    field("cappedMax", Kind::NumberWithin(i64::MIN, capped_options::DOCUMENTS_MAX)),
    field("dryRun", Kind::BooleanLike),
    field(MIXED_SCHEMA, Kind::BooleanLike),
    field("collectionUUID", Kind::Uuid),
];

/// Whether buckets may have values of several types in a field. Only a time series has this option. It has no effect
/// here, because such buckets are always read correctly.
const MIXED_SCHEMA: &str = "timeseriesBucketsMayHaveMixedSchemaData";

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "collMod",
        fields: OPTIONS,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        stable_api: Stability::Version1 { fields_outside: &["changeStreamPreAndPostImages", "dryRun"] },
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(|asker, request| collections::modify(asker, request, privileges_of)),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let given = parse_given(invocation);
    let namespace = namespace(invocation, &given)?;
    let request = CollMod::parse(invocation, given)?;
    if request.is_dry_run {
        request.check_dry_run()?;
    }
    collection_uuid::check(&invocation.service.catalog, &namespace, request.uuid)?;
    match Target::of(&invocation.service.catalog, invocation, &namespace)? {
        Target::Collection(collection) => modify_collection(invocation, reply, &collection, &request),
        Target::TimeSeries(series) => {
            if request.mixes_schemas == Some(false) {
                return Err(invalid(format!("'{MIXED_SCHEMA}' cannot be set to false")).into());
            }
            if let Some(index) = &request.index {
                index.check_of_series()?;
                let key = index.bucket_key(&series.options)?;
                let index = index.by_key(key.as_ref().map(DocumentBuf::as_ref));
                index.run(invocation, &series.buckets, Conversion::Done, reply)?;
            }
            Ok(time_series::modify(invocation, &namespace, &series, &request)?)
        }
        Target::View | Target::Unstored(_) | Target::Absent => Ok(view::modify(invocation, &namespace, &request)?),
    }
}

fn modify_collection(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    collection: &Collection,
    request: &CollMod<'_>,
) -> Result<(), Halt> {
    let namespace = collection.namespace();
    request.check_of_collection(collection)?;
    let CollMod { index, validation, images, expiry, size, documents, .. } = request;
    validation.check(invocation, &namespace)?;
    if let Some(index) = index {
        let conversion = if request.is_dry_run { Conversion::Tried } else { Conversion::Done };
        index.run(invocation, collection, conversion, reply)?;
    }
    if request.is_dry_run {
        return Ok(());
    }
    // A command that changes nothing at all is still recorded, so that change streams report it.
    if index.is_some()
        && *expiry == Expiry::Unchanged
        && !validation.are_given()
        && images.is_none()
        && size.is_none()
        && documents.is_none()
    {
        return Ok(());
    }
    let mut command = DocumentBuf::new().with("collMod", namespace.collection());
    for (name, value) in request.given.iter().filter(|(name, _)| RECORDED.contains(name)) {
        command.append(name, *value);
    }
    let (catalog, is_capped) = (&invocation.service.catalog, collection.is_capped());
    let lsn = catalog.change_options(&namespace, &command, &*invocation, &mut |options| {
        let mut options = if validation.are_given() { validation.put_into(options) } else { options.to_owned() };
        if let Some(images) = images {
            options = with_images(options.as_ref(), *images);
        }
        if is_capped {
            options = capped_options::put_into(options.as_ref(), *size, *documents);
        }
        Ok(expiry.put_into(options.as_ref()))
    })?;
    invocation.note_written(lsn);
    Ok(())
}

/// Options that the oplog's entry has.
const RECORDED: [&str; 7] = [
    "validator",
    "validationLevel",
    "validationAction",
    "changeStreamPreAndPostImages",
    "expireAfterSeconds",
    "cappedSize",
    "cappedMax",
];

/// The options that the request has, in the order of [`OPTIONS`].
fn parse_given<'a>(fields: &Fields<'a>) -> Vec<(&'static str, ValueRef<'a>)> {
    OPTIONS.iter().filter_map(|option| Some((option.name, fields.field(option.name)?))).collect()
}

struct CollMod<'a> {
    given: Vec<(&'static str, ValueRef<'a>)>,
    index: Option<IndexChange<'a>>,
    validation: ValidationOptions<'a>,
    /// Whether images of documents are to be kept.
    images: Option<bool>,
    is_dry_run: bool,
    expiry: Expiry,
    size: Option<i64>,
    documents: Option<i64>,
    mixes_schemas: Option<bool>,
    /// The expected UUID of the collection.
    uuid: Option<[u8; 16]>,
}

impl<'a> CollMod<'a> {
    fn parse(invocation: &Invocation<'a>, given: Vec<(&'static str, ValueRef<'a>)>) -> Result<Self> {
        let index = invocation.document("index")?.map(IndexChange::parse).transpose()?;
        let validation = ValidationOptions::parse(invocation)?;
        let images = pre_and_post_images(invocation)?;
        if invocation.string("viewOn")?.is_some_and(str::is_empty) {
            return Err(Failure::bad_value("'viewOn' cannot be empty"));
        }
        Ok(Self {
            index,
            validation,
            images,
            is_dry_run: invocation.boolean("dryRun", false)?,
            expiry: Expiry::parse(invocation, CollectionState::Existing, invocation.service.world.now_ms())?,
            size: capped_options::parse_size(invocation, "cappedSize")?,
            documents: capped_options::parse_documents(invocation, "cappedMax")?,
            mixes_schemas: value_of(&given, MIXED_SCHEMA).map(truth),
            uuid: collection_uuid::parse(invocation)?,
            given,
        })
    }

    fn given(&self, option: &str) -> Option<ValueRef<'a>> {
        value_of(&self.given, option)
    }

    fn is_given(&self, option: &str) -> bool {
        self.given(option).is_some()
    }

    /// Refuses options that a collection does not have.
    fn check_of_collection(&self, collection: &Collection) -> Result<()> {
        let namespace = collection.namespace();
        if self.is_given("viewOn") || self.is_given("pipeline") {
            return Err(invalid("cannot modify view options on a non-view collection"));
        }
        let is_of_series = || (*collection.options()).as_ref().get("timeseries").is_some();
        if self.mixes_schemas.is_some() && !is_of_series() {
            let message = format!("'{MIXED_SCHEMA}' is only supported on time-series collections: {namespace}");
            return Err(invalid(message));
        }
        if self.is_given("timeseries") {
            return Err(invalid(format!("'timeseries' is only supported on time-series collections: {namespace}")));
        }
        if self.expiry != Expiry::Unchanged && !collection.is_clustered() {
            let kinds = "time-series collections or with the 'clusteredIndex' option";
            return Err(invalid(format!("'{}' is only supported on {kinds}: {namespace}", expiry_option::NAME)));
        }
        if !collection.is_capped() && (self.size.is_some() || self.documents.is_some()) {
            return Err(invalid(format!("Collection {namespace} is not capped")));
        }
        Ok(())
    }

    /// Refuses a dry run, unless the only change is that an index becomes unique.
    fn check_dry_run(&self) -> Result<()> {
        let is_beside = |name: &&str| !matches!(*name, "index" | "dryRun" | "collectionUUID");
        match self.given.iter().map(|(name, _)| *name).find(is_beside) {
            Some(other) => Err(invalid(format!("'dryRun' cannot be combined with '{other}'"))),
            None if self.index.as_ref().is_some_and(IndexChange::only_converts_to_unique) => Ok(()),
            None => Err(invalid("'dryRun' is only supported with an index that is to become unique, and nothing else")),
        }
    }
}

fn value_of<'a>(given: &[(&'static str, ValueRef<'a>)], option: &str) -> Option<ValueRef<'a>> {
    given.iter().find(|(name, _)| *name == option).map(|(_, value)| *value)
}

/// The collection. The oplog is refused: its size is changed by a command of its own.
fn namespace(invocation: &mut Invocation<'_>, given: &[(&'static str, ValueRef<'_>)]) -> Result<Namespace> {
    let resizes = value_of(given, "cappedSize").is_some();
    invocation.namespace().map_err(|failure| match failure.code() {
        ErrorCode::COMMAND_NOT_SUPPORTED if resizes => {
            invalid("Cannot resize the oplog using this command. Use the 'replSetResizeOplog' command instead.")
        }
        _ => failure,
    })
}

fn with_images(options: DocumentRef<'_>, images: bool) -> DocumentBuf {
    const NAME: &str = "changeStreamPreAndPostImages";
    let mut changed = DocumentBuf::new();
    if images {
        changed.append(NAME, &DocumentBuf::new().with("enabled", true));
    }
    for element in options.iter().filter(|element| element.name != NAME) {
        changed.append(element.name, element.value);
    }
    changed
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::INVALID_OPTIONS, message)
}
