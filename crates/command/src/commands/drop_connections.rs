//! `dropConnections`: closes the connections that the server has made to other servers. Bunko makes none.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{ArrayRef, ValueRef, Writer};
use bunko_errors::Failure;
use bunko_request::facts::{CommandFacts, Databases};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "dropConnections",
        fields: &[field("hostAndPort", Kind::Texts)],
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::DropConnections),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    parse(invocation)?.iter().filter_map(ValueRef::as_str).try_for_each(check_host)?;
    Ok(())
}

/// The hosts.
fn parse<'a>(fields: &Fields<'a>) -> Result<ArrayRef<'a>, Failure> {
    fields.array("hostAndPort")?.ok_or_else(|| fields.missing("hostAndPort"))
}

/// Refuses text that is not `host` or `host:port`. An address with colons must be in brackets.
/// # Errors
/// `FailedToParse`.
fn check_host(text: &str) -> Result<(), Failure> {
    let refused =
        |why: &str| Err(Failure::failed_to_parse(format!("{why} in '{text}', which is to be a host and port")));
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, rest)) => match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None => return refused("Extraneous characters after ']'"),
            },
            None => return refused("'[' without ']'"),
        },
        None if text.contains(['[', ']']) => return refused("A bracket amid the name"),
        None if text.matches(':').count() > 1 => return refused("More than one ':' without brackets"),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return refused("Empty host component");
    }
    if port.is_some_and(|port| !matches!(port.parse::<u16>(), Ok(1..))) {
        return refused("Port number out of range");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_host;

    #[test]
    fn hosts_have_a_name_and_may_have_a_port() {
        for sound in ["a", "a:1", "a:65535", "[::1]", "[::1]:5"] {
            assert!(check_host(sound).is_ok(), "{sound}");
        }
        for unsound in ["", ":1", "a:", "a:b", "a:0", "a:-1", "a:65536", "a:1:2", "[::1", "::1]", "[::1]5", "[]:1"] {
            assert!(check_host(unsound).is_err(), "{unsound}");
        }
    }
}
