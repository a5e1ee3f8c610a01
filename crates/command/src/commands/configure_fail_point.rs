//! `configureFailPoint`: makes commands fail or wait on request, if the server accepts test commands.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_errors::Failure;
use bunko_fail_points::{FailPoint, Mode};
use bunko_request::facts::{CommandFacts, Databases, FailPointUse, Secrets};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::{Fields, wrong_type};
use bunko_session::Halt;

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "configureFailPoint",
        fields: &[field("mode", Kind::Own), field("data", Kind::Own)],
        databases: Databases::AdminOfTests,
        secrets: Secrets::Named,
        fail_point: FailPointUse::Exempt,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::Login,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let ValueRef::String(name) = invocation.argument() else {
        let place = "configureFailPoint.configureFailPoint";
        return Err(wrong_type(place, invocation.argument(), "string").into());
    };
    let point = FailPoint::named(name)?;
    let (mode, data) = parse(invocation)?;
    let fired = invocation.service.fail_points.configure(point, mode, point.trouble(COMMAND.name, data)?);
    reply.append("count", fired as i64);
    Ok(())
}

fn parse<'a>(fields: &Fields<'a>) -> Result<(Mode, DocumentRef<'a>), Failure> {
    let mode = fields.field("mode").ok_or_else(|| Failure::bad_value("Missing required field 'mode'"))?;
    Ok((Mode::parse(mode)?, fields.document("data")?.unwrap_or(DocumentRef::EMPTY)))
}
