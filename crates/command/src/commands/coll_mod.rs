//! `collMod`: changes a collection's options; none of them is built, so all that would change something is refused.

use crate::collection_options::refuse_unsupported;
use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use crate::view_definition;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};

/// Every option, in MongoDB's order.
const OPTIONS: &[&str] = &[
    "index",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "changeStreamPreAndPostImages",
    "expireAfterSeconds",
    "timeseries",
    "cappedSize",
    "cappedMax",
    "dryRun",
];

pub(super) const COMMAND: Command =
    Command { name: "collMod", aliases: &[], fields: OPTIONS, databases: Databases::Any, run };

fn run(invocation: &mut Invocation<'_>, _reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    if invocation.collection(&namespace).is_none() {
        return Ok(view_definition::modify(invocation, &namespace)?);
    }
    if invocation.field("viewOn").is_some() || invocation.field("pipeline").is_some() {
        let message = "cannot modify view options on a non-view collection";
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message).into());
    }
    Ok(refuse_unsupported(invocation, OPTIONS)?)
}
