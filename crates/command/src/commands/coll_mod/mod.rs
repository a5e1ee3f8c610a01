//! `collMod`: changes the options of a collection, a view or a time series, and refuses options of another kind.

mod index;

use crate::authorization::Privileges;
use crate::capped_options;
use crate::collection_options::pre_and_post_images;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::dispatch::Halt;
use crate::expiry_option::{self, CollectionState, Expiry};
use crate::invocation::Invocation;
use crate::source_stages::privileges_of;
use crate::time_series;
use crate::validation_options::ValidationOptions;
use crate::view_definition;
use bunko_authority::privileges::collections;
use bunko_bson::{DocumentBuf, DocumentRef, Type, Writer};
use bunko_catalog::{Conversion, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::facts::{Changes, CommandFacts, Stability, WriteConcernUse};
use bunko_request::field_kinds::{Field, Kind, field};
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
    let namespace = namespace(invocation)?;
    let index = invocation.document("index")?.map(IndexChange::parse).transpose()?;
    let validation = ValidationOptions::parse(invocation)?;
    let images = pre_and_post_images(invocation)?;
    let is_dry_run = invocation.boolean("dryRun", false)?;
    if invocation.string("viewOn")?.is_some_and(str::is_empty) {
        return Err(Failure::bad_value("'viewOn' cannot be empty").into());
    }
    let expiry = Expiry::parse(invocation, CollectionState::Existing)?;
    let size = capped_options::size(invocation, "cappedSize")?;
    let documents = capped_options::documents(invocation, "cappedMax")?;
    if is_dry_run {
        check_dry_run(invocation, index.as_ref())?;
    }
    let mixes_schemas = invocation.field(MIXED_SCHEMA).map(|_| invocation.boolean(MIXED_SCHEMA, false)).transpose()?;
    collection_uuid::check_field(&invocation.service.catalog, invocation, &namespace)?;
    let Some(collection) = invocation.collection(&namespace) else {
        if let Some(series) = time_series::find(&invocation.service.catalog, &namespace)? {
            if mixes_schemas == Some(false) {
                return Err(invalid(format!("'{MIXED_SCHEMA}' cannot be set to false")).into());
            }
            if let Some(index) = &index {
                index.check_of_series()?;
                let key = index.bucket_key(&series.options)?;
                let index = index.by_key(key.as_ref().map(DocumentBuf::as_ref));
                index.run(invocation, &series.buckets, Conversion::Done, reply)?;
            }
            return Ok(time_series::modify(invocation, &namespace, &series, expiry)?);
        }
        return Ok(view_definition::modify(invocation, &namespace)?);
    };
    if invocation.field("viewOn").is_some() || invocation.field("pipeline").is_some() {
        return Err(invalid("cannot modify view options on a non-view collection").into());
    }
    if mixes_schemas.is_some() && (*collection.options()).as_ref().get("timeseries").is_none() {
        return Err(
            invalid(format!("'{MIXED_SCHEMA}' is only supported on time-series collections: {namespace}")).into()
        );
    }
    if invocation.field("timeseries").is_some() {
        return Err(invalid(format!("'timeseries' is only supported on time-series collections: {namespace}")).into());
    }
    if expiry != Expiry::Unchanged && !collection.is_clustered() {
        let kinds = "time-series collections or with the 'clusteredIndex' option";
        return Err(invalid(format!("'{}' is only supported on {kinds}: {namespace}", expiry_option::NAME)).into());
    }
    let is_capped = capped_options::is_capped(&collection);
    if !is_capped && (size.is_some() || documents.is_some()) {
        return Err(invalid(format!("Collection {namespace} is not capped")).into());
    }
    validation.check(invocation, &namespace)?;
    if let Some(index) = &index {
        let conversion = if is_dry_run { Conversion::Tried } else { Conversion::Done };
        index.run(invocation, &collection, conversion, reply)?;
    }
    if is_dry_run {
        return Ok(());
    }
    // A command that changes nothing at all is still recorded, so that change streams report it.
    if index.is_some()
        && expiry == Expiry::Unchanged
        && !validation.are_given()
        && images.is_none()
        && size.is_none()
        && documents.is_none()
    {
        return Ok(());
    }
    let mut command = DocumentBuf::new().with("collMod", namespace.collection());
    for option in [
        "validator",
        "validationLevel",
        "validationAction",
        "changeStreamPreAndPostImages",
        "expireAfterSeconds",
        "cappedSize",
        "cappedMax",
    ] {
        if let Some(value) = invocation.field(option) {
            command.append(option, value);
        }
    }
    let catalog = &invocation.service.catalog;
    let lsn = catalog.change_options(&namespace, &command, &*invocation, &mut |options| {
        let mut options = if validation.are_given() { validation.put_into(options) } else { options.to_owned() };
        if let Some(images) = images {
            options = with_images(options.as_ref(), images);
        }
        if is_capped {
            options = capped_options::put_into(options.as_ref(), size, documents);
        }
        Ok(expiry.put_into(options.as_ref()))
    })?;
    invocation.note_written(lsn);
    Ok(())
}

/// Refuses a dry run, unless the only change is that an index becomes unique.
fn check_dry_run(invocation: &Invocation<'_>, index: Option<&IndexChange<'_>>) -> Result<()> {
    let beside =
        OPTIONS.iter().map(|option| option.name).filter(|name| !matches!(*name, "index" | "dryRun" | "collectionUUID"));
    let other = beside.clone().find(|name| invocation.field(name).is_some());
    match other {
        Some(other) => Err(invalid(format!("'dryRun' cannot be combined with '{other}'"))),
        None if index.is_some_and(IndexChange::only_converts_to_unique) => Ok(()),
        None => Err(invalid("'dryRun' is only supported with an index that is to become unique, and nothing else")),
    }
}

/// The collection. The oplog is refused: its size is changed by a command of its own.
fn namespace(invocation: &mut Invocation<'_>) -> Result<Namespace> {
    let resizes = invocation.field("cappedSize").is_some();
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
