//! `testVersion2`: a command outside version 1 of the Stable API. Drivers' test suites use it to check that `apiStrict`
//! refuses it.

use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, TransactionUse};

pub(super) const COMMAND: Command = Command {
    name: "testVersion2",
    aliases: &[],
    fields: &[],
    databases: Databases::AnyOfTests,
    transaction: TransactionUse::Refused,
    privileges: Privileges::Login,
    run: |_, _| Ok(()),
};
