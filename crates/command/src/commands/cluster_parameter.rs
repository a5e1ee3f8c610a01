//! `getClusterParameter` and `setClusterParameter`: read and set parameters that are stored in the database.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::service::Service;
use crate::stored_settings;
use bunko_access::Action;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::stored_document::Stamps;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{ANY_FIELDS, Changes, CommandFacts, Databases, Secrets};
use bunko_request::fields::{Fields, wrong_type};
use bunko_session::Halt;
use bunko_settings::cluster_parameters::{self, AUDIT_CONFIG, COLLECTION, ClusterParameter, DATABASE};
use bunko_settings::find_stored;

pub(super) const GET: Command = Command {
    facts: CommandFacts {
        name: "getClusterParameter",
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::GetClusterParameter),
    run: get,
    ..Command::PLAIN
};

pub(super) const SET: Command = Command {
    facts: CommandFacts {
        name: "setClusterParameter",
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        changes: Changes::Other,
        secrets: Secrets::Named,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::SetClusterParameter),
    run: set,
    ..Command::PLAIN
};

fn get(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let mut asked = asked(invocation.argument())?;
    parse_omission(invocation)?;
    let service = invocation.service;
    match invocation.argument() {
        ValueRef::String("*") => asked.retain(|parameter| is_there(service, parameter)),
        _ => asked.iter().try_for_each(|parameter| check_there(service, parameter))?,
    }
    reply.begin_array("clusterParameters");
    for (index, parameter) in asked.into_iter().enumerate() {
        reply.push(index, &in_force(service, parameter)?);
    }
    reply.end();
    Ok(())
}

/// Checks `omitInFTDC`, which leaves out parameters that MongoDB keeps out of its diagnostic data. None of these is
/// such a parameter.
fn parse_omission(fields: &Fields<'_>) -> Result<(), Failure> {
    fields.strict_boolean("omitInFTDC", false).map(drop)
}

/// Whether the server has the parameter. A server without an audit log has no audit configuration.
fn is_there(service: &Service, parameter: &ClusterParameter) -> bool {
    parameter.name != AUDIT_CONFIG || service.authority.audit.is_on()
}

fn check_there(service: &Service, parameter: &ClusterParameter) -> Result<(), Failure> {
    if is_there(service, parameter) { Ok(()) } else { Err(unknown(parameter.name)) }
}

/// The stored value of the parameter, or its default. An audit configuration that cannot be changed at run time takes
/// precedence.
pub(super) fn in_force(service: &Service, parameter: &ClusterParameter) -> Result<DocumentBuf, Failure> {
    let options = service.authority.audit.configuration().filter(|_| parameter.name == AUDIT_CONFIG);
    if let Some(options) = &options
        && service.authority.audit.check_configurable().is_err()
    {
        return Ok(document(parameter, options, None));
    }
    let kept = find_stored(&service.catalog, DATABASE, COLLECTION, parameter.name)?;
    Ok(kept.unwrap_or_else(|| document(parameter, &parameter.default_value(), None)))
}

fn asked(argument: ValueRef<'_>) -> Result<Vec<&'static ClusterParameter>, Failure> {
    match argument {
        ValueRef::String("*") => Ok(cluster_parameters::all().collect()),
        ValueRef::String(name) => Ok(vec![named(name)?]),
        ValueRef::Array(names) if names.is_empty() => {
            Err(Failure::bad_value("Must supply at least one cluster parameter name to getClusterParameter"))
        }
        ValueRef::Array(names) => {
            let name = |(index, name): (usize, ValueRef<'_>)| match name {
                ValueRef::String(name) => named(name),
                _ => Err(wrong_type(&format!("getClusterParameter.getClusterParameter.{index}"), name, "string")),
            };
            names.iter().enumerate().map(name).collect()
        }
        _ => Err(Failure::wrong_type("getClusterParameter.getClusterParameter", argument, "types '[array, string]'")),
    }
}

fn named(name: &str) -> Result<&'static ClusterParameter, Failure> {
    cluster_parameters::find(name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Failure {
    Failure::new(ErrorCode::NO_SUCH_KEY, format!("Unknown server parameter: {name}"))
}

/// The document of a parameter, as it is stored and shown.
fn document(parameter: &ClusterParameter, value: &DocumentBuf, time: Option<ValueRef<'_>>) -> DocumentBuf {
    let mut document = DocumentBuf::new().with("_id", parameter.name);
    if let Some(time) = time {
        document.append("clusterParameterTime", time);
    }
    for field in value.as_ref() {
        document.append(field.name, field.value);
    }
    document
}

fn set(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let argument = invocation.argument();
    if argument.is_nullish() {
        return Err(Failure::missing_field("setClusterParameter.setClusterParameter").into());
    }
    let asked = argument
        .as_document()
        .ok_or_else(|| wrong_type("setClusterParameter.setClusterParameter", argument, "object"))?;
    let first = asked.first();
    let parameter = named(first.map_or("", |first| first.name))?;
    check_there(invocation.service, parameter)?;
    if asked.count() > 1 {
        let message = "setClusterParameter only supports setting exactly one parameter";
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message).into());
    }
    let value = first.map_or(ValueRef::Null, |first| first.value);
    let Some(fields) = value.as_document() else {
        let message =
            format!("Cluster parameter {} must be set to a document, found {}", parameter.name, value.kind().alias());
        return Err(Failure::bad_value(message).into());
    };
    if let Some(operator) = fields.iter().find(|field| field.name.starts_with('$')) {
        let message =
            format!("The dollar ($) prefixed field '{}' is not allowed in a cluster parameter", operator.name);
        return Err(Failure::new(ErrorCode::DOLLAR_PREFIXED_FIELD_NAME, message).into());
    }
    if fields.is_empty() && !parameter.is_choice() {
        // An empty document changes nothing.
        return Ok(());
    }
    keep(invocation, parameter, fields)
}

/// Stores a value and applies it.
pub(super) fn keep(
    invocation: &mut Invocation<'_>,
    parameter: &ClusterParameter,
    fields: DocumentRef<'_>,
) -> Result<(), Halt> {
    if parameter.name == AUDIT_CONFIG {
        invocation.service.authority.audit.check_configurable()?;
    }
    let parsed = parameter.parse(fields)?;
    let time = invocation.service.world.timestamp();
    let document = document(parameter, &parsed, Some(ValueRef::Timestamp(time)));
    stored_settings::keep(invocation, DATABASE, COLLECTION, &document)?;
    if parameter.name == AUDIT_CONFIG {
        invocation.service.authority.configure_audit(invocation.connection, document.as_ref())?;
    }
    cluster_parameters::apply(&invocation.service.parameters, parameter.name, document.as_ref());
    Ok(())
}
