//! `testVersion2`: a command outside version 1 of the Stable API. Drivers' test suites use it to check that `apiStrict`
//! refuses it.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use bunko_request::facts::{CommandFacts, Databases};

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "testVersion2", databases: Databases::AnyOfTests, ..CommandFacts::PLAIN },
    privileges: Privileges::Login,
    run: |_, _| Ok(()),
    ..Command::PLAIN
};
