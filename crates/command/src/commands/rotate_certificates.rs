//! `rotateCertificates`: reads the certificates from disk again, for new connections. A server without TLS has none.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{CommandFacts, Databases};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "rotateCertificates",
        fields: &[field("message", Kind::Text)],
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::RotateCertificates),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    if let Some(message) = parse(invocation)? {
        tracing::info!(target: "CONTROL", id = 5_462_100, ctx = "rotateCertificates", message, "Rotating certificates");
    }
    (invocation.service.process.rotate_certificates)().map_err(|error| {
        tracing::error!(target: "CONTROL", id = 132, ctx = "rotateCertificates", error, "Certificates could not be read: the old ones stay in force");
        let message = format!("the old certificates stay in force: {error}");
        Failure::new(ErrorCode::INVALID_SSL_CONFIGURATION, message).into()
    })
}

/// The message for the log.
fn parse<'a>(fields: &Fields<'a>) -> Result<Option<&'a str>, Failure> {
    fields.string("message")
}
