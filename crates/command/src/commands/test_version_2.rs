//! `testVersion2`: a command outside version 1 of the stable API, by which drivers' suites see what `apiStrict` refuses.

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
