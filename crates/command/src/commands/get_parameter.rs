//! `getParameter`: reads the server's parameters.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{DocumentRef, ValueRef, Writer, number};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Databases};
use bunko_request::fields::wrong_type;
use bunko_session::Halt;
use bunko_settings::{PARAMETERS, Parameter};

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "getParameter",
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::GetParameter),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let request = Wanted::parse(invocation.argument())?;
    let body = invocation.request.body;
    let is_wanted =
        |parameter: &Parameter| request.is_all || body.iter().skip(1).any(|element| element.name == parameter.name);
    let mut count = 0;
    // `setAt` only restricts a request for all parameters.
    let is_shown =
        |parameter: &Parameter| is_wanted(parameter) && (!request.is_all || request.when.includes(parameter));
    for parameter in PARAMETERS.iter().filter(|parameter| is_shown(parameter)) {
        count += 1;
        let value = (parameter.read)(invocation.service)?;
        if request.has_details {
            reply
                .begin_document(parameter.name)
                .append("value", &value)
                .append("settableAtRuntime", parameter.write.is_some())
                .append("settableAtStartup", parameter.at_startup)
                .end();
        } else {
            reply.append(parameter.name, &value);
        }
    }
    if count == 0 {
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, "no option found to get").into());
    }
    Ok(())
}

/// A filter on parameters by the time when they may be set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SetAt {
    Any,
    Runtime,
    Startup,
}

impl SetAt {
    fn includes(self, parameter: &Parameter) -> bool {
        match self {
            Self::Any => true,
            Self::Runtime => parameter.write.is_some(),
            Self::Startup => parameter.at_startup,
        }
    }
}

/// The command's first value: which parameters it asks for, and in how much detail.
struct Wanted {
    is_all: bool,
    has_details: bool,
    when: SetAt,
}

impl Wanted {
    fn parse(argument: ValueRef<'_>) -> Result<Self, Failure> {
        let mut wanted = Self { is_all: argument.as_str() == Some("*"), has_details: false, when: SetAt::Any };
        if let Some(options) = argument.as_document() {
            wanted.read_options(options)?;
        }
        Ok(wanted)
    }

    fn read_options(&mut self, options: DocumentRef<'_>) -> Result<(), Failure> {
        for element in options {
            match element.name {
                "showDetails" | "allParameters" | "setAt" if element.value.is_nullish() => {}
                "showDetails" => self.has_details = truth(element.name, element.value)?,
                "allParameters" => self.is_all = truth(element.name, element.value)?,
                "setAt" => {
                    self.when = match element.value {
                        ValueRef::String("runtime") => SetAt::Runtime,
                        ValueRef::String("startup") => SetAt::Startup,
                        ValueRef::String(other) => {
                            return Err(Failure::bad_value(format!(
                                "Enumeration value '{other}' for field 'getParameter.setAt' is not a valid value."
                            )));
                        }
                        other => return Err(wrong_type("getParameter.setAt", other, "string")),
                    }
                }
                other => return Err(Failure::unknown_field(format_args!("getParameter.{other}"))),
            }
        }
        Ok(())
    }
}

fn truth(name: &str, value: ValueRef<'_>) -> Result<bool, Failure> {
    match value {
        ValueRef::Boolean(boolean) => Ok(boolean),
        _ => number::as_f64(value).map(|number| number != 0.0).ok_or_else(|| {
            Failure::wrong_type(
                format_args!("getParameter.{name}"),
                value,
                "types '[bool, long, int, decimal, double]'",
            )
        }),
    }
}
