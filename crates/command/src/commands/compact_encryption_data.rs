//! `compactStructuredEncryptionData` and `cleanupStructuredEncryptionData`: tidy the collections that queryable
//! encryption keeps for queryable fields. Bunko has no such fields, so there is never anything to tidy.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::CommandFacts;
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMPACT: Command = Command {
    facts: CommandFacts {
        name: "compactStructuredEncryptionData",
        fields: &[
            field("compactionTokens", Kind::Own),
            field("encryptionInformation", Kind::Own),
            field("anchorPaddingFactor", Kind::Own),
        ],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::CompactStructuredEncryptionData),
    run: compact,
    ..Command::PLAIN
};

pub(super) const CLEANUP: Command = Command {
    facts: CommandFacts {
        name: "cleanupStructuredEncryptionData",
        fields: &[field("cleanupTokens", Kind::Own)],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::CleanupStructuredEncryptionData),
    run: cleanup,
    ..Command::PLAIN
};

fn compact(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    parse_padding(invocation)?;
    check(invocation, "compactionTokens", 6_346_807)?;
    write_statistics(reply);
    Ok(())
}

/// Refuses a padding factor that MongoDB refuses. It has no other effect, as `encryptionInformation` has none.
fn parse_padding(fields: &Fields<'_>) -> Result<(), Failure> {
    const FIELD: &str = "anchorPaddingFactor";
    fields.document("encryptionInformation")?;
    let Some(value) = fields.field(FIELD) else { return Ok(()) };
    match value {
        ValueRef::Double(factor) if (0.0..=1.0).contains(&factor) => Ok(()),
        ValueRef::Double(factor) => Err(Failure::bad_value(format!(
            "BSON field '{FIELD}' value must be >= 0 and <= 1, actual value '{factor}'"
        ))),
        other => Err(fields.mismatch(FIELD, other, "type 'double'")),
    }
}

fn cleanup(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    check(invocation, "cleanupTokens", 7_618_816)?;
    write_statistics(reply);
    Ok(())
}

/// Writes statistics that are all 0.
fn write_statistics(reply: &mut Writer<'_>) {
    reply.begin_document("stats");
    write_counts(reply, "ecoc", &["read", "deleted"]);
    write_counts(reply, "esc", &["read", "inserted", "updated", "deleted"]);
    reply.end();
}

/// Writes the counts of one of the collections that belong to the encrypted one.
fn write_counts(reply: &mut Writer<'_>, name: &str, counts: &[&str]) {
    reply.begin_document(name);
    for count in counts {
        reply.append(count, 0_i64);
    }
    reply.end();
}

fn parse_tokens<'a>(fields: &Fields<'a>, name: &str) -> Result<DocumentRef<'a>, Failure> {
    fields.document(name)?.ok_or_else(|| fields.missing(name))
}

/// Checks the collection, and that there is a token for each encrypted field.
fn check(invocation: &mut Invocation<'_>, tokens: &str, not_encrypted: i32) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let given = parse_tokens(invocation, tokens)?;
    let Some(collection) = invocation.collection_not_view(&namespace)? else {
        let message = format!("Collection '{namespace}' does not exist");
        return Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message).into());
    };
    let Some(encrypted) = collection.encrypted_fields() else {
        let message = format!("Target namespace is not an encrypted collection: {namespace}");
        return Err(Failure::new(ErrorCode(not_encrypted), message).into());
    };
    if let Some(path) = encrypted.paths().find(|path| given.get(path).is_none()) {
        let message = format!("No compaction token found for field '{path}'");
        return Err(Failure::new(ErrorCode(7_294_900), message).into());
    }
    Ok(())
}
