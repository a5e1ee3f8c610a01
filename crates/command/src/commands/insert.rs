//! `insert`: stores documents. This is the most performance-critical command.

use super::hello::WRITE_BATCH_MAX;
use crate::authorization::Privileges;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::insertion::{Insert, Insertion};
use crate::invocation::Invocation;
use crate::retries::Retries;
use crate::system_namespace::{Creation, check_writable};
use crate::target::WriteTarget;
use crate::write_statement::WriteOptions;
use bunko_authority::is_on_users;
use bunko_authority::privileges::writes;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_catalog::Catalog;
use bunko_catalog::stored_document;
use bunko_errors::{ErrorCode, Failure};
use bunko_observe::observation::WriteCounts;
use bunko_request::counted_as::{Opcounter, OperationClass, UsageKind};
use bunko_request::facts::{
    Changes, CommandFacts, EncryptionUse, InvalidDocuments, Retry, Secrets, Stability, TransactionUse, WriteConcernUse,
};
use bunko_request::field_kinds::{Field, Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

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
    options.apply_bypass(invocation);
    check_batch_size(documents.len())?;
    let service = invocation.service;
    collection_uuid::check(&service.catalog, &namespace, options.uuid)?;
    check_writable(&service.catalog, &namespace, Creation::Implied)?;
    let target = WriteTarget::of(&invocation.service.catalog, invocation, &namespace)?;
    let mut retries = Retries::of(invocation, documents.len())?;
    let sequence = invocation.request.sequence("documents");
    let unreadable = sequence.map(|sequence| sequence.refused.as_slice()).unwrap_or_default();
    let prepare = |position, document| match unreadable.binary_search_by_key(&position, |(unreadable, _)| *unreadable) {
        Ok(place) => Err(Failure::new(ErrorCode::INVALID_BSON, unreadable[place].1.to_string())),
        Err(_) => stored_document::for_insert(document, options.empty_timestamps, &service.world),
    };
    let insertion = Insertion { namespace: &namespace, target: &target, order: options.order, first: 0, insert };
    let outcome = insertion.run(invocation, &mut retries, &documents, prepare)?;
    invocation.observation.counts = WriteCounts::inserted(outcome.inserted, outcome.keys);
    if let Some(failure) = outcome.stopped_by {
        return Err(failure.into());
    }
    retries.end()?;
    reply.append("n", (outcome.inserted + outcome.done_before) as i32);
    retries.write(reply);
    write_errors(reply, &outcome.failures);
    Ok(())
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
