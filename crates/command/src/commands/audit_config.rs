//! `getAuditConfig` and `setAuditConfig`: the cluster parameter `auditConfig` under its older names.
//! Source: MongoDB manual 8.2, "getAuditConfig" and "setAuditConfig".

use super::cluster_parameter::{in_force, keep};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{DocumentBuf, Writer};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{Changes, CommandFacts, Databases, Secrets};
use bunko_request::field_kinds::{Field, Kind, field};
use bunko_request::fields::Fields;
use bunko_request::statement::required_value;
use bunko_session::Halt;
use bunko_settings::cluster_parameters::{self, AUDIT_CONFIG, ClusterParameter};

pub(super) const GET: Command = Command {
    facts: CommandFacts { name: "getAuditConfig", databases: Databases::Admin, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCluster(Action::AuditConfigure),
    run: get,
    ..Command::PLAIN
};

pub(super) const SET: Command = Command {
    facts: CommandFacts {
        name: "setAuditConfig",
        fields: &[field("filter", Kind::Own), field("auditAuthorizationSuccess", Kind::Own)],
        databases: Databases::Admin,
        changes: Changes::Other,
        secrets: Secrets::Named,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::AuditConfigure),
    run: set,
    ..Command::PLAIN
};

fn parameter() -> &'static ClusterParameter {
    cluster_parameters::find(AUDIT_CONFIG).expect("a parameter of the table")
}

fn get(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    if !invocation.service.authority.audit.is_on() {
        return Err(Failure::new(
            ErrorCode::AUDITING_NOT_ENABLED,
            "there is no audit log: auditLog.destination is not set",
        )
        .into());
    }
    let shown = in_force(invocation.service, parameter())?;
    for field in shown.as_ref().iter().filter(|field| field.name != "_id") {
        reply.append(field.name, field.value);
    }
    Ok(())
}

fn set(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let configuration = parse(invocation)?;
    keep(invocation, parameter(), configuration.as_ref())
}

fn parse(fields: &Fields<'_>) -> Result<DocumentBuf, Failure> {
    let mut configuration = DocumentBuf::new();
    for Field { name, .. } in SET.fields {
        configuration.append(name, required_value(fields, name)?);
    }
    Ok(configuration)
}
