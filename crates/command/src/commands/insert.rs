//! `insert`: stores documents. This is the most performance-critical command.

use super::hello::WRITE_BATCH_MAX;
use crate::authorization::Privileges;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::retries::Retries;
use crate::system_namespace::{Creation, check_writable};
use crate::target::WriteTarget;
use crate::write_statement::WriteOptions;
use bunko_authority::is_on_users;
use bunko_authority::privileges::writes;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_catalog::stored_document;
use bunko_catalog::{Catalog, Inserted, Namespace, Order};
use bunko_errors::{ErrorCode, Failure};
use bunko_observe::observation::WriteCounts;
use bunko_operation::OperationSource;
use bunko_request::counted_as::{Opcounter, OperationClass, UsageKind};
use bunko_request::facts::{
    Changes, CommandFacts, EncryptionUse, InvalidDocuments, Retry, Secrets, Stability, TransactionUse, WriteConcernUse,
};
use bunko_request::field_kinds::{Field, Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use std::borrow::Cow;

pub(super) const FIELDS: &[Field] = &[
    field("documents", Kind::Array),
    field("ordered", Kind::Boolean),
    field("bypassDocumentValidation", Kind::BooleanLike),
    field("bypassEmptyTsReplacement", Kind::Flag),
    field("stmtId", Kind::Int),
    field("stmtIds", Kind::Own),
    field("collectionUUID", Kind::Uuid),
];

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "insert",
        fields: FIELDS,
        transaction: TransactionUse::Anywhere,
        sequences: &["documents"],
        invalid_documents: InvalidDocuments::Reported,
        changes: Changes::Documents,
        write_concern: WriteConcernUse::Taken,
        retry: Retry::Safe,
        stable_api: Stability::WHOLE,
        secrets: Secrets::OfUsers(is_on_users),
        class: OperationClass::Write,
        usage: UsageKind::Insert,
        opcounter: Opcounter::ByStatement,
        encryption: EncryptionUse::Allowed,
        internal_fields: &["$_isClusterQueryWithoutShardKeyCmd", "isTimeseriesNamespace"],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(writes::insert),
    run,
    ..Command::PLAIN
};

/// The catalog function that stores the documents.
pub(super) type Insert =
    fn(&Catalog, &Namespace, &[Cow<'_, [u8]>], Order, &dyn OperationSource) -> Result<Inserted, Failure>;

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    run_with(invocation, reply, Catalog::insert)
}

/// The options, and the documents to insert.
fn parse<'a>(fields: &Fields<'a>) -> Result<(WriteOptions, Vec<DocumentRef<'a>>), Failure> {
    Ok((WriteOptions::parse(fields)?, fields.documents("documents")?))
}

/// Runs `insert` with a given function that stores the documents.
pub(super) fn run_with(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>, insert: Insert) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let (options, documents) = parse(invocation)?;
    let order = options.order;
    options.apply_bypass(invocation);
    check_batch_size(documents.len())?;
    let service = invocation.service;
    collection_uuid::check(&service.catalog, &namespace, options.uuid)?;
    check_writable(&service.catalog, &namespace, Creation::Implied)?;
    let target = WriteTarget::of(&invocation.service.catalog, invocation, &namespace)?;
    let mut retries = Retries::of(invocation, documents.len())?;
    let mut storable = Storable::with_capacity(documents.len());
    let mut refused: Vec<(usize, Failure)> = Vec::new();
    let mut done_before = 0;
    let sequence = invocation.request.sequence("documents");
    let unreadable = sequence.map(|sequence| sequence.refused.as_slice()).unwrap_or_default();
    for (position, document) in documents.iter().enumerate() {
        if retries.did(position)?.is_some() {
            storable.skip(position);
            done_before += 1;
            continue;
        }
        let checked = match unreadable.binary_search_by_key(&position, |(unreadable, _)| *unreadable) {
            Ok(place) => Err(Failure::new(ErrorCode::INVALID_BSON, unreadable[place].1.to_string())),
            Err(_) => stored_document::for_insert(*document, options.empty_timestamps, &service.world),
        };
        match checked {
            Ok(document) => storable.push(position, document),
            Err(failure) => {
                storable.skip(position);
                refused.push((position, failure));
                if order == Order::Ordered {
                    break;
                }
            }
        }
    }
    if let Some((count, failure)) =
        retries.begin_inserts((0..storable.documents.len()).map(|index| storable.position(index)))
    {
        // In an unordered insert the documents after the failed one fail too.
        let last = if order == Order::Ordered { count + 1 } else { storable.documents.len() };
        if order == Order::Ordered {
            refused.clear();
        }
        refused.extend((count..last).map(|index| (storable.position(index), failure.clone())));
        storable.documents.truncate(count);
    }
    let inserted = match &target {
        WriteTarget::TimeSeries(series) => {
            invocation.write_series(|writes| writes.insert(series, &storable.documents, order))
        }
        WriteTarget::Collection | WriteTarget::View => {
            insert(&service.catalog, &namespace, &storable.documents, order, invocation)?
        }
    };
    invocation.note_written(inserted.lsn.max(retries.written()));
    let stopped_early = order == Order::Ordered && !inserted.failures.is_empty();
    let stopped_by_refusal = order == Order::Ordered && !refused.is_empty();
    // If an ordered insert stopped, only the attempted documents count.
    let has_stopped = stopped_early || stopped_by_refusal;
    let attempted = if has_stopped { inserted.count + 1 } else { documents.len() - done_before };
    service.counters.note_inserts(attempted as u64, inserted.count as u64);
    invocation.observation.counts = WriteCounts::inserted(inserted.count, inserted.keys);
    if let Some(failure) = inserted.stopped_by {
        return Err(failure.into());
    }
    retries.end()?;
    let mut failures: Vec<(usize, Failure)> =
        inserted.failures.into_iter().map(|(index, failure)| (storable.position(index), failure)).collect();
    if !stopped_early {
        failures.extend(refused);
        failures.sort_by_key(|(position, _)| *position);
    }
    reply.append("n", (inserted.count + done_before) as i32);
    retries.write(reply);
    write_errors(reply, &failures);
    Ok(())
}

/// The documents of an insert that are to be stored.
struct Storable<'d> {
    documents: Vec<Cow<'d, [u8]>>,
    /// Their positions in the request. `None` while no document was left out.
    positions: Option<Vec<usize>>,
}

impl<'d> Storable<'d> {
    fn with_capacity(count: usize) -> Self {
        Self { documents: Vec::with_capacity(count), positions: None }
    }

    fn push(&mut self, position: usize, document: Cow<'d, [u8]>) {
        self.documents.push(document);
        if let Some(positions) = &mut self.positions {
            positions.push(position);
        }
    }

    /// Leaves out the document at that position.
    fn skip(&mut self, position: usize) {
        self.positions.get_or_insert_with(|| (0..position).collect());
    }

    fn position(&self, index: usize) -> usize {
        self.positions.as_ref().map_or(index, |positions| positions[index])
    }
}

/// Refuses an empty batch and one above [`WRITE_BATCH_MAX`].
pub(super) fn check_batch_size(count: usize) -> Result<(), Failure> {
    if (1..=WRITE_BATCH_MAX).contains(&count) {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::INVALID_LENGTH,
        format!("Write batch sizes must be between 1 and {WRITE_BATCH_MAX}. Got {count} operations."),
    ))
}

/// Appends `writeErrors` if there are any.
pub(super) fn write_errors(reply: &mut Writer<'_>, failures: &[(usize, Failure)]) {
    if failures.is_empty() {
        return;
    }
    // Space is reserved for all errors first, so that the reply always fits: details and messages are left out if
    // needed.
    let mut room = REPLY_BYTES_MAX.saturating_sub(reply.len_bytes() + failures.len() * BARE_ERROR_BYTES);
    let mut take = |bytes: usize| {
        let fits = bytes <= room;
        if fits {
            room -= bytes;
        }
        fits
    };
    reply.begin_array("writeErrors");
    for (index, (position, failure)) in failures.iter().enumerate() {
        let (details, message) = (failure.details(), failure.message());
        let is_told = index < WHOLE_MESSAGES || message.len() <= MESSAGE_BYTES_MAX;
        reply.begin_document(&index.to_string());
        reply.append("index", *position as i32).append("code", failure.code().0);
        if take(details.as_bytes().len()) {
            reply.extend(details);
        }
        let message = if is_told && take(message.len()) { message } else { "" };
        reply.append("errmsg", ValueRef::String(message)).end();
    }
    reply.end();
}

/// After this many errors, a message longer than `MESSAGE_BYTES_MAX` is left empty, as in MongoDB.
const WHOLE_MESSAGES: usize = 2;
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Largest size of a reply, and size of an error without its message and details; both in bytes.
const REPLY_BYTES_MAX: usize = 15 << 20;
const BARE_ERROR_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    /// Returns the lengths of the reported messages, for errors whose messages have the given lengths.
    fn told(lengths: &[usize]) -> Vec<usize> {
        let failures: Vec<_> =
            lengths.iter().map(|length| Failure::bad_value("x".repeat(*length))).enumerate().collect();
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        write_errors(&mut writer, &failures);
        writer.end();
        assert!(bytes.len() <= 16 << 20, "{} bytes", bytes.len());
        let document = DocumentBuf::parse(bytes).expect("a document");
        let errors = document.as_ref().get("writeErrors").and_then(ValueRef::as_array).expect("errors");
        let message = |error: ValueRef<'_>| error.as_document()?.get("errmsg")?.as_str().map(str::len);
        errors.iter().map(|error| message(error).expect("a message")).collect()
    }

    #[test]
    fn all_errors_are_told_and_long_messages_left_out() {
        const LONG: usize = MESSAGE_BYTES_MAX + 1;
        assert_eq!(told(&[LONG, 1, LONG, 1, MESSAGE_BYTES_MAX]), [LONG, 1, 0, 1, MESSAGE_BYTES_MAX]);
        let many = told(&vec![1_000; 100_000]);
        assert_eq!(many.len(), 100_000);
        assert!(many.iter().filter(|length| **length == 1_000).count() > 8_000 && many.last() == Some(&0));
    }
}
