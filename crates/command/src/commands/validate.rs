//! `validate`: compares every record of a collection with every index.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::target::Target;
use bunko_access::Action;
use bunko_bson::{BinarySubtype, ValueRef, Writer};
use bunko_catalog::{Namespace, Validation};
use bunko_errors::{ErrorCode, Failure};
use bunko_pipelines::{oplog, smallest_integer};
use bunko_request::deployment::Deployment;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, UnstoredUse};
use bunko_request::fields::{Fields, truth};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "validate",
        fields: ANY_FIELDS,
        unstored: UnstoredUse::ReadsOplog,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::Validate),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let is_member = invocation.service.deployment() == Deployment::SetMember;
    let repair = check_options(&Options::parse(invocation), is_member, &namespace)?;
    let collection = match Target::of(&invocation.service.catalog, invocation, &namespace)? {
        Target::Collection(collection) => Some(collection),
        Target::TimeSeries(series) => Some(series.buckets),
        // `unstored::check` admits only the oplog to this command.
        Target::Unstored(_) => None,
        Target::View | Target::Absent => {
            invocation.service.catalog.refuse_view(&namespace)?;
            let message = format!("Collection '{namespace}' does not exist to validate.");
            return Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message).into());
        }
    };
    invocation.refuse_if_long(true)?;
    let validation = match &collection {
        Some(collection) => collection.validate(invocation)?,
        None => oplog::validate(&invocation.service.catalog, invocation.operation())?,
    };
    check_repaired(repair, &validation)?;
    reply.append("ns", namespace.as_str());
    if let Some(collection) = &collection {
        reply.append("uuid", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &collection.uuid });
    }
    write(reply, &validation);
    reply.append("repairMode", format!("{repair:?}").as_str());
    Ok(())
}

/// The names of the options.
const OPTIONS: [&str; 7] =
    ["background", "checkBSONConformance", "enforceFastCount", "fixMultikey", "full", "metadata", "repair"];

/// Which options are given, and whether each is on.
struct Options([Option<bool>; OPTIONS.len()]);

impl Options {
    fn parse(fields: &Fields<'_>) -> Self {
        Self(OPTIONS.map(|name| fields.value(name).map(truth)))
    }

    /// Whether an option is given and on, or given and off.
    fn is(&self, name: &str, on: bool) -> bool {
        OPTIONS.iter().zip(self.0).any(|(option, given)| *option == name && given == Some(on))
    }
}

/// Checks the options. Each validation is a full one: it reads a snapshot, lets other operations run, and checks the
/// BSON of each document. So no option asks for more, but MongoDB refuses some combinations. A standalone server
/// refuses to validate in the background, and a member of a set refuses to repair.
/// Source: MongoDB manual 8.2, "validate".
fn check_options(options: &Options, is_member: bool, namespace: &Namespace) -> Result<Repair, Failure> {
    let is_on = |name: &str| options.is(name, true);
    let is_off = |name: &str| options.is(name, false);
    let refuse = |what: &str| {
        let message = format!("Running the validate command with {what} is not supported.");
        Err(Failure::new(ErrorCode::INVALID_OPTIONS, message))
    };
    let is_full = is_on("full") || is_on("enforceFastCount");
    for (one, other) in [("background", "full"), ("background", "enforceFastCount")] {
        if is_on(one) && is_on(other) {
            return refuse(&format!("both {{ {one}: true }} and {{ {other}: true }}"));
        }
    }
    if is_off("checkBSONConformance") && is_full {
        let message = "Cannot explicitly set 'checkBSONConformance: false' with full validation set.";
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    if let Some(other) = ["background", "enforceFastCount", "checkBSONConformance"].iter().find(|other| is_on(other))
        && is_on("repair")
    {
        return refuse(&format!("both {{ {other}: true }} and {{ repair: true }}"));
    }
    if let Some(name) = ["repair", "fixMultikey"].iter().find(|name| is_on(name)).filter(|_| is_member) {
        let message =
            format!("Running the validate command with {{ {name}: true }} can only be performed in standalone mode.");
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    if is_off("fixMultikey") && is_on("repair") {
        return refuse("both { fixMultikey: false } and { repair: true }");
    }
    if is_on("metadata") && (is_full || ["background", "checkBSONConformance", "repair"].into_iter().any(is_on)) {
        let message = "Running the validate command with { metadata: true } is not supported with any other options";
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    if is_on("background") {
        check_background(is_member, namespace)?;
    }
    // `metadata` and `enforceFastCount` never repair.
    Ok(match (is_on("metadata") || is_on("enforceFastCount"), is_on("repair"), is_on("fixMultikey")) {
        (false, true, _) => Repair::FixErrors,
        (false, false, true) => Repair::AdjustMultikey,
        _ => Repair::None,
    })
}

/// Refuses background validation, which MongoDB allows only for replicated collections.
fn check_background(is_member: bool, namespace: &Namespace) -> Result<(), Failure> {
    let place = match (is_member, namespace.database()) {
        (false, _) => "in standalone mode",
        (true, "local") => "on unreplicated collections",
        (true, _) => return Ok(()),
    };
    let message = format!("Running the validate command with {{ background: true }} is not supported {place}");
    Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message))
}

/// The repair to make. `AdjustMultikey` has no effect, because Bunko knows exactly which paths have arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    AdjustMultikey,
    FixErrors,
}

/// Fails if `repair` was asked for and there are errors. Bunko repairs nothing: an index that does not agree with its
/// collection must be dropped and built again.
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
    fn disagreements_are_reported() {
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
