//! `replSetGetStatus` and `replSetGetConfig`: clients ask to find out that this is no replica set.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command =
    Command { name: "replSetGetStatus", aliases: &[], fields: &["initialSync"], databases: Databases::Admin, run };
pub(super) const GET_CONFIG: Command =
    Command { name: "replSetGetConfig", aliases: &[], fields: &["commitmentStatus"], databases: Databases::Admin, run };

fn run(_: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    Err(Failure::new(ErrorCode::NO_REPLICATION_ENABLED, "not running with --replSet").into())
}
