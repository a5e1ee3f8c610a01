//! `collStats`: sizes and counts of one collection.

use crate::collection_statistics::{CollectionStatistics, write_missing};
use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use crate::statistics_scale::scale;
use bunko_bson::Writer;

pub(super) const COMMAND: Command =
    Command { name: "collStats", aliases: &["collstats"], fields: &["scale"], databases: Databases::Any, run };

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let scale = scale(invocation)?;
    reply.append("ns", namespace.as_str());
    match invocation.collection_not_view(&namespace)? {
        Some(collection) => CollectionStatistics::of(&collection).write(reply, scale),
        None => write_missing(reply, scale),
    }
    Ok(())
}
