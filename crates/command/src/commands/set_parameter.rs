//! `setParameter`: changes the server's parameters while it runs.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Databases, Queueing, Secrets};
use bunko_request::generic_fields::is_generic;
use bunko_session::Halt;
use bunko_settings::{PARAMETERS, is_known_parameter, not_settable};

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "setParameter",
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        queueing: Queueing::AtOnce,
        secrets: Secrets::Named,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::SetParameter),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let service = invocation.service;
    let mut changes = Vec::new();
    // All names are checked before any value changes.
    for element in invocation.request.body.iter().skip(1).filter(|element| !is_generic(element.name)) {
        let parameter =
            PARAMETERS.iter().find(|parameter| parameter.name == element.name).ok_or_else(|| missing(element.name))?;
        let write = parameter.write.ok_or_else(|| not_settable(parameter.name))?;
        changes.push((parameter, write, element.value));
    }
    let Some((first, ..)) = changes.first() else {
        return Err(
            Failure::new(ErrorCode::INVALID_OPTIONS, "no option found to set, use help:true to see options ").into()
        );
    };
    let was = (first.read)(service)?;
    for (_, write, value) in changes {
        write(service, value)?;
    }
    reply.append("was", &was);
    Ok(())
}

/// The error for a parameter that is not in the table.
fn missing(name: &str) -> Failure {
    if is_known_parameter(name) {
        return Failure::not_supported_yet(&format!("the parameter {name}"));
    }
    Failure::new(
        ErrorCode::INVALID_OPTIONS,
        format!("attempted to set unrecognized parameter [{name}], use help:true to see options "),
    )
}
