//! `compactStructuredEncryptionData` and `cleanupStructuredEncryptionData`: tidy what queryable encryption keeps beside
//! its collections. There are no such collections here, since they take a replica set.

use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMPACT: Command = Command {
    name: "compactStructuredEncryptionData",
    aliases: &[],
    fields: &["compactionTokens", "encryptionInformation", "anchorPaddingFactor"],
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCollection(Action::CompactStructuredEncryptionData),
    run: compact,
};

pub(super) const CLEANUP: Command = Command {
    name: "cleanupStructuredEncryptionData",
    aliases: &[],
    fields: &["cleanupTokens"],
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCollection(Action::CleanupStructuredEncryptionData),
    run: cleanup,
};

fn compact(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    refuse(invocation, "compactionTokens", 6_346_807)
}

fn cleanup(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    refuse(invocation, "cleanupTokens", 7_618_816)
}

fn refuse(invocation: &mut Invocation<'_>, tokens: &str, code: i32) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let command = invocation.command.name;
    if invocation.document(tokens)?.is_none() {
        let message = format!("BSON field '{command}.{tokens}' is missing but a required field");
        return Err(Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message).into());
    }
    if invocation.collection_not_view(&namespace)?.is_none() {
        let message = format!("Collection '{namespace}' does not exist");
        return Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message).into());
    }
    let message = format!("Target namespace is not an encrypted collection: {namespace}");
    Err(Failure::new(ErrorCode(code), message).into())
}
