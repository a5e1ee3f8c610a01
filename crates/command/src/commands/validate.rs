//! `validate`: compares every record of a collection with every index.

use crate::authorization::Privileges;
use crate::collection_statistics::smallest_integer;
use crate::dispatch::{ANY_FIELDS, Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use crate::time_series;
use bunko_access::Action;
use bunko_bson::{BinarySubtype, ValueRef, Writer};
use bunko_catalog::Validation;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command = Command {
    name: "validate",
    aliases: &[],
    fields: ANY_FIELDS,
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCollection(Action::Validate),
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let repair = check_options(invocation)?;
    let collection = time_series::collection_or_buckets(invocation, &namespace)?.ok_or_else(|| {
        Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, format!("Collection '{namespace}' does not exist to validate."))
    })?;
    invocation.refuse_if_long(true)?;
    let validation = collection.validate()?;
    check_repaired(repair, &validation)?;
    let uuid = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &collection.uuid };
    reply.append("ns", namespace.as_str()).append("uuid", uuid);
    write(reply, &validation);
    reply.append("repairMode", format!("{repair:?}").as_str());
    Ok(())
}

/// Every validation is full, of a snapshot and beside others, and checks the BSON of every document: `full`,
/// `background`, `metadata` and `checkBSONConformance` ask for no more than that, but may not be combined at will.
fn check_options(invocation: &Invocation<'_>) -> Result<Repair, Failure> {
    let is_full = invocation.truth("full");
    let is_background = invocation.truth("background");
    let is_repair = invocation.truth("repair");
    let is_metadata = invocation.truth("metadata");
    let checks_bson = invocation.truth("checkBSONConformance");
    let refuse = |what: &str| {
        let message = format!("Running the validate command with {what} is not supported.");
        Err(Failure::new(ErrorCode::INVALID_OPTIONS, message))
    };
    if is_background && is_full {
        return refuse("both { background: true } and { full: true }");
    }
    if is_background && is_repair {
        return refuse("both { background: true } and { repair: true }");
    }
    if is_metadata && (is_full || is_background || is_repair || checks_bson) {
        return refuse("{ metadata: true } and any other option");
    }
    Ok(if is_repair {
        Repair::FixErrors
    } else if invocation.truth("fixMultikey") {
        Repair::AdjustMultikey
    } else {
        Repair::None
    })
}

/// What is to be put right. Which paths have arrays is known exactly here, so there is nothing to adjust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    AdjustMultikey,
    FixErrors,
}

/// What is wrong stays so: an index that does not agree with its collection has to be dropped and built again.
fn check_repaired(repair: Repair, validation: &Validation) -> Result<(), Failure> {
    if repair != Repair::FixErrors || validation.is_valid() {
        return Ok(());
    }
    let found = validation.errors.join("; ");
    Err(Failure::not_supported_yet(&format!("'repair: true' where there is something to repair ({found})")))
}

fn write(reply: &mut Writer<'_>, validation: &Validation) {
    reply
        .append("nInvalidDocuments", validation.invalid_documents as i64)
        .append("nNonCompliantDocuments", 0_i64)
        .append("nrecords", smallest_integer(validation.records))
        .append("nIndexes", validation.keys_per_index.len() as i32)
        .begin_document("keysPerIndex");
    for (name, keys) in &validation.keys_per_index {
        reply.append(name, smallest_integer(*keys));
    }
    reply.end().begin_document("indexDetails");
    for (name, _) in &validation.keys_per_index {
        reply.begin_document(name).append("valid", !validation.invalid_indexes.contains(name)).end();
    }
    reply
        .end()
        .append("valid", validation.is_valid())
        .append("repaired", false)
        .begin_array("warnings")
        .end()
        .begin_array("errors");
    for (position, error) in validation.errors.iter().enumerate() {
        reply.push(position, error.as_str());
    }
    reply.end();
    for list in ["extraIndexEntries", "missingIndexEntries", "corruptRecords"] {
        reply.begin_array(list).end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentRef;

    #[test]
    fn what_does_not_agree_is_reported() {
        let validation = Validation {
            records: 2,
            keys_per_index: vec![("_id_".into(), 2), ("a_1".into(), 1)],
            invalid_indexes: ["a_1".to_owned()].into(),
            errors: vec!["record 2 has no key in index a_1".into()],
            error_count: 1,
            ..Validation::default()
        };
        let mut bytes = Vec::new();
        let mut reply = Writer::new(&mut bytes);
        write(&mut reply, &validation);
        reply.end();
        let reply = DocumentRef::parse(&bytes).expect("well formed");
        assert!(matches!(reply.get("valid"), Some(ValueRef::Boolean(false))));
        let details = reply.get("indexDetails").and_then(ValueRef::as_document).expect("present");
        let is_valid = |name| details.get(name).and_then(ValueRef::as_document).and_then(|index| index.get("valid"));
        assert!(matches!(is_valid("_id_"), Some(ValueRef::Boolean(true))));
        assert!(matches!(is_valid("a_1"), Some(ValueRef::Boolean(false))));
        let errors = reply.get("errors").and_then(ValueRef::as_array).expect("present");
        assert_eq!(errors.get(0).and_then(ValueRef::as_str), Some("record 2 has no key in index a_1"));
    }
}
