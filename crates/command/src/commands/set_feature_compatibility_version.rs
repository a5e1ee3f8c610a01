//! `setFeatureCompatibilityVersion`: stores the release to which the server can be downgraded.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};
use bunko_query::write::version_document;
use bunko_request::facts::{Changes, CommandFacts, Databases, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use bunko_settings::feature_compatibility::{self, COLLECTION, DATABASE};

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "setFeatureCompatibilityVersion",
        fields: &[field("confirm", Kind::BooleanLike), field("fromConfigServer", Kind::BooleanLike)],
        databases: Databases::Admin,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::SetFeatureCompatibilityVersion),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let argument = invocation.argument();
    let asked = argument
        .as_str()
        .ok_or_else(|| invocation.mismatch("setFeatureCompatibilityVersion", argument, "type 'string'"))?;
    let is_confirmed = parse(invocation)?;
    let version = version_document::version(asked)?;
    if !is_confirmed {
        let message = "Once you have changed the feature compatibility version, a downgrade of the server may be \
                       impossible. To go on, run this command again with 'confirm' set to true.";
        return Err(Failure::new(ErrorCode(7_369_100), message).into());
    }
    if feature_compatibility::version(&invocation.service.catalog)? != version {
        stored_settings::keep(invocation, DATABASE, COLLECTION, &feature_compatibility::document(version))?;
    }
    Ok(())
}

/// Whether the change is confirmed.
fn parse(fields: &Fields<'_>) -> Result<bool, Failure> {
    if fields.boolean("fromConfigServer", false)? {
        return Err(fields.unsupported("fromConfigServer"));
    }
    fields.boolean("confirm", false)
}
